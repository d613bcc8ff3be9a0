/* The open files of a thread. */
#ifndef HOLDUP_FILES_H
#define HOLDUP_FILES_H

#include "recorder.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block {
	unsigned long s_magic;
};

struct inode {
	struct super_block *i_sb;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

#pragma clang attribute pop

/* What a thread has open as `fd`; 0 if that is nothing. */
INLINE struct file *file_of(struct task_struct *task, u32 fd)
{
	struct files_struct *files = 0;
	struct fdtable *table = 0;
	struct file **all = 0, *file = 0;
	u32 most = 0;

	if (read_field(files, task->files) || !files || read_field(table, files->fdt))
		return 0;
	if (read_field(most, table->max_fds) || fd >= most || read_field(all, table->fd))
		return 0;
	return bpf_probe_read_kernel(&file, sizeof(file), all + fd) ? 0 : file;
}

INLINE struct inode *inode_of(struct file *file)
{
	struct inode *inode = 0;
	return file && !read_field(inode, file->f_inode) ? inode : 0;
}

/* System calls below 64 that write to the file of their first argument: write, writev, sendfile, sendto, sendmsg. */
#define WRITING (1ULL << 1 | 1ULL << 20 | 1ULL << 40 | 1ULL << 44 | 1ULL << 46)
#define SENDMMSG 307

/* The file to which the thread writes, plus one: where it sends something to whom it wakes, it tells its connections apart. 0 for none. */
INLINE u64 written_to(struct pt_regs *regs)
{
	u64 call = regs->orig_ax, file = regs->di;
	bool writes = call < 64 ? WRITING >> call & 1 : call == SENDMMSG;
	return writes && file < 0xffff ? file + 1 : 0;
}

#endif
