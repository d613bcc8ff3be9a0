/* Spans that programs tell themselves: lines that they write to a `trace_marker`, as Android's atrace writes them.
 * "B|1234|name" begins one that a line "E" of the same thread ends; "S|1234|name|7" begins one that "F|1234|name|7" ends, on any
 * thread. */
#ifndef HOLDUP_MARKER_H
#define HOLDUP_MARKER_H

#include "files.h"
#include "spans.h"

#define TRACEFS 0x74726163
#define NR_WRITE 1
#define NR_WRITEV 20

/* What spans of markers have for a probe's number. */
#define MARKER_ID 0xfffc
/* Most of a line that is looked at, and the words of it that are told: as many K_MORE as half of them. */
#define LINE_WORDS 32
#define LINE_BYTES (LINE_WORDS * 8)
#define TOLD_WORDS 12
/* Spans of a thread within each other; those deeper are counted only. */
#define MAX_MARKS 16

/* One that has begun. */
struct mark {
	u64 t;
	u32 tid; /* of the thread that began it */
	u32 counts; /* in span_counts */
	u64 line[TOLD_WORDS];
};

struct marks {
	u32 depth, unused;
	struct mark of[MAX_MARKS];
};

struct line {
	u64 words[LINE_WORDS];
	struct mark mark; /* the one that is made */
};

/* By thread. User space makes room where there are markers. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct marks);
} open_marks SEC(".maps");

/* By process, name and number: those that any thread may end. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct mark);
} keyed_marks SEC(".maps");

/* What a thread begins with. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct marks);
} no_marks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct line);
} lines SEC(".maps");

/* Whether a thread's open file `fd` is the trace_marker of tracefs, of whichever instance. */
INLINE bool is_marker(struct task_struct *task, u32 fd)
{
	static const char name[16] = "trace_marker";
	struct super_block *super = 0;
	struct dentry *dentry = 0;
	const unsigned char *at = 0;
	unsigned long magic = 0;
	u64 found[2] = {};
	struct file *file = file_of(task, fd);
	struct inode *inode = inode_of(file);

	if (!inode)
		return 0;
	if (read_field(super, inode->i_sb) || read_field(magic, super->s_magic) || magic != TRACEFS)
		return 0;
	if (read_field(dentry, file->f_path.dentry) || read_field(at, dentry->d_name.name))
		return 0;
	bpf_probe_read_kernel_str(found, sizeof(found), at);
	return found[0] == *(u64 *)name && found[1] == *(u64 *)(name + 8);
}

/* What is written. False if it cannot be read. */
INLINE bool read_line(struct line *l, struct pt_regs *regs, bool is_vector)
{
	u64 at = regs->si, bytes = regs->dx, vector[2] = {};
	barrier(); /* else one load is made of this and the vector's, which the verifier refuses */
	if (is_vector) {
		if (bpf_probe_read_user(vector, sizeof(vector), (void *)at))
			return 0;
		at = vector[0];
		bytes = vector[1];
	}
	for (int i = 0; i < LINE_WORDS; i++)
		l->words[i] = 0;
	if (!bytes || bytes >= LINE_BYTES) /* of longer ones the key would be unknown */
		return 0;
	return !bpf_probe_read_user(l->words, bytes & (LINE_BYTES - 1), (void *)at);
}

/* Where in a line one is. */
struct reading {
	char *text;
	u64 key, name;
	u32 bars, unused;
};

static long read_one(u32 i, struct reading *at)
{
	u32 place = i + 2;
	if (place >= LINE_BYTES)
		return 1;
	u8 c = at->text[place];
	if (!c || c == '\n')
		return 1;
	at->key = at->key * 33 + c;
	if (c == '|' && at->bars < 2) /* no more of them matter: each count is a state to the verifier */
		at->bars++;
	if (at->bars == 1)
		at->name = at->name * 33 + c;
	return 0;
}

/* Hashes (D. Bernstein's) of a line, which is of process, name and number, and of the name in it. */
INLINE u64 parse(struct line *l, u64 *name)
{
	struct reading at = { (char *)l->words, 5381, 5381, 0, 0 };
	bpf_loop(LINE_BYTES - 2, read_one, &at, 0);
	*name = at.name;
	return at.key;
}

static __attribute__((noinline)) void put_mark(struct ring *r, struct mark *m, u32 tid, u64 t, u64 weight)
{
	u64 at, more = 2 + TOLD_WORDS / 2;
	if (!side_reserve(r, 1 + more, &at))
		return;
	r->span_records += 1 + more;
	side_put(r, at++, K_SPAN_WHOLE, t, (m->tid & TID_MASK) | (u64)MARKER_ID << BIT_SECOND | more << BIT_PARTS, t - m->t);
	side_put(r, at++, K_MORE, t, (u64)tid << BIT_PROCESS, 0);
	for (int i = 0; i < TOLD_WORDS / 2; i++)
		side_put(r, at++, K_MORE, t, m->line[2 * i], m->line[2 * i + 1]);
	side_put(r, at, K_MORE, t, weight, 0);
}

INLINE void end_mark(struct ring *r, struct mark *m, struct task_struct *task, u64 t)
{
	u32 counts = m->counts;
	struct span_counts *c = bpf_map_lookup_elem(&span_counts, &counts);
	if (!c)
		return;
	c->ended++;
	u64 weight = weight_of(c, t - m->t, t);
	if (weight)
		put_mark(r, m, tid_of(r, task), t, weight);
}

/* One that ended, and whose begin was before the recording or has been forgotten. */
INLINE void stray(void)
{
	u32 at = STRAY_COUNTS;
	struct span_counts *c = bpf_map_lookup_elem(&span_counts, &at);
	if (c)
		c->skipped++;
}

INLINE struct marks *marks_of(u32 pid, bool create)
{
	u32 zero = 0;
	struct marks *all = bpf_map_lookup_elem(&open_marks, &pid), *none;
	if (all || !create)
		return all;
	none = bpf_map_lookup_elem(&no_marks, &zero);
	if (none)
		bpf_map_update_elem(&open_marks, &pid, none, 0);
	return bpf_map_lookup_elem(&open_marks, &pid);
}

INLINE void begin_mark(struct ring *r, struct task_struct *task, struct line *l, char kind, u64 t)
{
	u64 name = 0, key = parse(l, &name) ^ (u64)task->tgid << 32;
	u32 counts = MARKER_COUNTS + (u32)((name * 0x9e3779b97f4a7c15ULL) >> 58) % SOCKET_COUNTS;
	struct span_counts *c = bpf_map_lookup_elem(&span_counts, &counts);
	l->mark.t = t;
	l->mark.tid = tid_of(r, task);
	l->mark.counts = counts;
	for (int i = 0; i < TOLD_WORDS; i++)
		l->mark.line[i] = l->words[i];
	if (c)
		c->begun++;
	r->spans++;
	if (kind == 'S') {
		bpf_map_update_elem(&keyed_marks, &key, &l->mark, 0);
		return;
	}
	struct marks *all = marks_of(task->pid, 1);
	if (!all)
		return;
	u32 depth = all->depth++;
	if (depth < MAX_MARKS)
		all->of[depth] = l->mark;
}

INLINE void end_marks(struct ring *r, struct task_struct *task, struct line *l, char kind, u64 t)
{
	if (kind == 'F') {
		u64 name = 0, key = parse(l, &name) ^ (u64)task->tgid << 32;
		struct mark *m = bpf_map_lookup_elem(&keyed_marks, &key);
		if (!m) {
			stray();
			return;
		}
		end_mark(r, m, task, t);
		bpf_map_delete_elem(&keyed_marks, &key);
		return;
	}
	struct marks *all = marks_of(task->pid, 0);
	if (!all || !all->depth) {
		stray();
		return;
	}
	u32 depth = --all->depth;
	if (depth < MAX_MARKS)
		end_mark(r, &all->of[depth], task, t);
}

/* The recording or the thread ends: those that have not. They weigh nothing. */
INLINE void tell_open_marks(struct ring *r, struct task_struct *task, u64 t)
{
	struct marks *all = marks_of(task->pid, 0);
	for (u32 i = 0; all && i < MAX_MARKS; i++) {
		struct mark *m = &all->of[i];
		u32 counts = m->counts;
		struct span_counts *c = bpf_map_lookup_elem(&span_counts, &counts);
		if (i >= all->depth || m->t > t || !c)
			continue;
		c->open++;
		put_mark(r, m, m->tid, t, 0);
	}
}

INLINE void forget_marks(struct ring *r, struct task_struct *task, u64 t)
{
	u32 pid = task->pid;
	tell_open_marks(r, task, t);
	bpf_map_delete_elem(&open_marks, &pid);
}

SEC("tp_btf/sys_enter")
int on_write(u64 *ctx)
{
	struct pt_regs *regs = (void *)ctx[0];
	u64 call = ctx[1];
	u32 zero = 0;
	if (call != NR_WRITE && call != NR_WRITEV)
		return 0;
	struct task_struct *task = bpf_get_current_task_btf();
	if ((u16)regs->cs == COMPAT_CS || !is_marker(task, regs->di) || is_own(task))
		return 0;
	struct ring *r = this_ring();
	struct line *l = bpf_map_lookup_elem(&lines, &zero);
	if (!r || !l)
		return 0;
	u64 t = bpf_ktime_get_ns();
	if (!read_line(l, regs, call == NR_WRITEV))
		return 0;
	char *text = (char *)l->words, kind = text[0];
	bool has_name = text[1] == '|';
	if ((kind == 'B' || kind == 'S') && has_name)
		begin_mark(r, task, l, kind, t);
	else if ((kind == 'F' && has_name) || (kind == 'E' && (has_name || !text[1] || text[1] == '\n')))
		end_marks(r, task, l, kind, t);
	r->span_ns += bpf_ktime_get_ns() - t;
	return 0;
}

#endif
