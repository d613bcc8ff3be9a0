/* The few kernel types that the recorder reads. Offsets are relocated against the running kernel's BTF (CO-RE),
 * so only the names of the fields used matter here. */
#ifndef HOLDUP_KERNEL_H
#define HOLDUP_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;

typedef struct {
	s64 counter;
} atomic_long_t;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rq;

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct thread_struct {
	unsigned long sp;
	unsigned long fsbase;
};

struct mm_struct {
	unsigned long start_code, end_code, start_stack;
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

/* A task's number in one namespace. */
struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	struct sched_entity se;
	void *stack;
	struct mm_struct *mm;
	unsigned int in_iowait : 1;
	s32 pid;
	s32 tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct files_struct *files;
	char comm[16];
	struct thread_struct thread;
};

/* Before 5.14. */
struct task_struct___old {
	long state;
};

struct pt_regs {
	unsigned long bp;
	unsigned long r10;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	u16 cs;
	unsigned long sp;
};

struct bpf_perf_event_data_kern {
	struct pt_regs *regs;
};

struct mutex {
	atomic_long_t owner;
};

struct rt_mutex_base {
	struct task_struct *owner;
};

struct rw_semaphore {
	atomic_long_t owner;
};

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int __data_len;
	u64 __sector;
};

struct bpf_iter__task {
	struct task_struct *task;
};

/* Any structure that begins with a 32-bit integer: how __preempt_count is read. */
struct refcount_struct {
	int refs;
};

#pragma clang attribute pop

/* What a perf_event program sees: the registers at the interrupted instruction, by the stable ABI. */
struct user_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

struct bpf_perf_event_data {
	struct user_regs regs;
	u64 sample_period;
	u64 addr;
};

struct bpf_dynptr {
	u64 opaque[2];
} __attribute__((aligned(8)));

#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD 0x00200000
#define TASK_DEAD 0x80

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_RB_NO_WAKEUP = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

/* Helpers, by their stable numbers. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static long (*const bpf_get_stack)(void *ctx, void *buf, u32 size, u64 flags) = (void *)67;
static long (*const bpf_probe_read_user)(void *dst, u32 size, const void *unsafe_ptr) = (void *)112;
static long (*const bpf_probe_read_kernel)(void *dst, u32 size, const void *unsafe_ptr) = (void *)113;
static long (*const bpf_probe_read_user_str)(void *dst, u32 size, const void *unsafe_ptr) = (void *)114;
static long (*const bpf_probe_read_kernel_str)(void *dst, u32 size, const void *unsafe_ptr) = (void *)115;
static long (*const bpf_get_task_stack)(struct task_struct *task, void *buf, u32 size, u64 flags) = (void *)141;
static void *(*const bpf_task_storage_get)(void *map, struct task_struct *task, void *value, u64 flags) = (void *)156;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static u64 (*const bpf_get_attach_cookie)(void *ctx) = (void *)174;
static long (*const bpf_task_pt_regs)(struct task_struct *task) = (void *)175;
static long (*const bpf_loop)(u32 n, void *callback, void *ctx, u64 flags) = (void *)181;
static long (*const bpf_copy_from_user_task)(void *dst, u32 size, const void *user_ptr, struct task_struct *tsk,
					     u64 flags) = (void *)191;
static long (*const bpf_ringbuf_reserve_dynptr)(void *ringbuf, u32 size, u64 flags, struct bpf_dynptr *ptr) =
	(void *)198;
static void (*const bpf_ringbuf_submit_dynptr)(struct bpf_dynptr *ptr, u64 flags) = (void *)199;
static void (*const bpf_ringbuf_discard_dynptr)(struct bpf_dynptr *ptr, u64 flags) = (void *)200;
static long (*const bpf_dynptr_write)(struct bpf_dynptr *dst, u32 offset, void *src, u32 len, u64 flags) = (void *)202;
static void *(*const bpf_dynptr_data)(struct bpf_dynptr *ptr, u32 offset, u32 len) = (void *)203;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name
#define barrier() asm volatile("" ::: "memory")
#define field_exists(expr) __builtin_preserve_field_info(expr, 2)

extern void *bpf_rdonly_cast(void *obj, u32 btf_id) __attribute__((section(".ksyms"), weak));

#endif
