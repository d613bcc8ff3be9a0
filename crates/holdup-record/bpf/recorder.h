/* What the programs share: configuration, buffers, records. Mirrored by src/layout.rs and by records.rs of holdup-spool;
 * `cargo xtask tidy` compares them. */
// Long because it is one list, compared with its mirrors as a whole.
#ifndef HOLDUP_RECORDER_H
#define HOLDUP_RECORDER_H

#include "kernel.h"

/* A record: time | lap << BIT_LAP | kind << BIT_KIND, and two words. Some are prefixes of the next one. */
#define RECORD 24
#define TID_MASK 0xffffff

enum kind {
	K_SWITCH = 1,
	K_WAKE = 2,
	K_FUTEX = 3, /* prefix of the K_SWITCH or K_STANDING of the same thread */
	K_WAKE_KEY = 4, /* prefix of a K_WAKE: the futex that the waker released */
	K_WAKE_STACK = 5, /* prefix of a K_WAKE: the waker's stack */
	K_BLOCKED = 6,
	K_SAMPLE = 7, /* followed by a K_MORE */
	K_MORE = 8,
	K_LOCK = 9,
	K_BLOCK_IO = 10,
	K_FORK = 11,
	K_NAME = 12, /* followed by a K_MORE */
	K_EXIT = 13,
	K_MISSED_SWITCH = 14, /* no tracepoint told it; its time is that of its end */
	K_INNER = 15, /* a thread's number in a container: what its process calls it */
	K_SPAN = 16, /* a span begins or ends; followed by as many K_MORE as its BIT_PARTS say */
	K_SPAN_WHOLE = 17, /* one that ends now, with its length; followed by as many K_MORE, the last of which is its weight */
	K_STANDING = 18, /* at the end: where a thread still waits */
};

/* Where the parts of a record's words begin. */
enum bit {
	BIT_LAP = 56,
	BIT_KIND = 57,
	BIT_SECOND = 24, /* the second tid: who comes, who is woken, who owns the lock */
	BIT_CALL = 48, /* K_SWITCH, K_STANDING */
	BIT_PID = 16,
	BIT_IO_WAIT = 40,
	BIT_OPERATION = 48, /* K_FUTEX */
	BIT_PRIVATE = 56,
	BIT_TIMED = 57,
	BIT_OWNER = 32,
	BIT_KEY_OPERATION = 32, /* K_WAKE_KEY */
	BIT_CONTEXT = 48, /* K_WAKE */
	BIT_LOCK_KIND = 48, /* K_LOCK */
	BIT_BEGIN = 56,
	BIT_ISSUER = 40, /* K_BLOCK_IO */
	BIT_ISSUE = 63,
	BIT_BYTES = 32,
	BIT_PARTS = 40, /* K_SPAN */
	BIT_PROCESS = 32, /* K_FORK, K_NAME, K_INNER: above the tid */
};

enum context { CTX_TASK = 0, CTX_HARDIRQ = 1, CTX_SOFTIRQ = 2, CTX_TIMER = 3, CTX_UNKNOWN = 255 };

#define MAX_KERNEL 128
#define CHUNK 1024
#define HASHED_CHUNKS 2
#define MAX_CHUNKS 65
#define SLOTS_AT 24576

struct config {
	u64 slot_mask; /* slots per CPU - 1 */
	u64 side_mask; /* the same of the side ring */
	u64 min_wait; /* ns */
	u64 stack_rate; /* bytes of new stacks per CPU and 2^20 ns */
	u64 stack_burst; /* bytes */
	u64 late_ack; /* what a timer calls that sends an acknowledgement; 0 for unknown */
	s64 preempt_delta; /* &__preempt_count - &runqueues; 0 for unknown */
	u32 namespace; /* the recorder's, of processes, by its number; 0 for that of the whole machine */
	u32 own; /* the recorder's process there */
	u32 chunks; /* chunks of the copy of a stack whose end is not known */
	u32 has_state_argument; /* sched_switch has a fourth argument */
	u32 skip_frames; /* BPF's own kernel frames */
	u32 no_storage; /* storage of tasks cannot be had, see thread_of */
	u32 no_stacks; /* the buffer for stacks cannot be used */
	u32 no_interpreters; /* the kernel refuses what walks interpreters' frames */
	u32 sockets; /* requests on sockets are spans: 1, with what they begin with: 2 */
	u32 markers; /* lines to trace_marker are begins and ends of spans */
};

#define PEEK 64 /* words of the user stack that are looked at */
#define CALLERS 8 /* how many return addresses among them tell a site */
#define ALL_NONE 0x4040404040404040ULL /* PEEK in each */

/* A place where threads wait or wake others; see site.h. */
struct site {
	u64 stack; /* hash of the stack that was seen there last */
	u64 sights;
};

/* What registers tell: where return addresses lie, and the site that was seen there first. */
struct spot {
	u64 key; /* of the site */
	struct site site;
	u8 callers[CALLERS]; /* words above the stack pointer; PEEK for none */
};

#define MAX_INTERPRETED (CHUNK / 8) /* words for frames of an interpreter: a chunk */

struct place {
	u64 ip, sp, bp;
	u64 seed; /* what else tells this user stack from others */
	u64 user; /* hash of the user part */
	u32 kernel_frames;
	u32 hash_from; /* the first kernel frame that is hashed */
	u64 any_ip; /* the user part may begin anywhere: a sample tells its own instruction */
};

/* Where a stack is put together before it is known whether it is new. */
struct scratch {
	u64 busy;
	u32 tid, tgid; /* whose it is: kept here, not in a register, where the verifier would follow each of their values */
	struct spot spot; /* what is looked up */
	struct place place; /* of what is in the kernel: here, not on the program's own stack, of which kernels before 6.13 allow 512 bytes with
			       all calls */
	u64 kernel[MAX_KERNEL];
	u64 user[HASHED_CHUNKS * CHUNK / 8];
	u64 layout; /* of the address space, if it has an interpreter; see interpreter.h */
	u64 interpreted_frames; /* how many, and INTERPRETED_ENDED */
	u64 interpreted_chunks; /* 1 if there are any, which a record has to take */
	u64 interpreted_hash;
	u64 interpreted[CHUNK / 8]; /* MAX_INTERPRETED */
	u64 frame[16]; /* the one that is looked at */
};

/* Whose stack is put together. */
enum whose { WAITER, WAKER, SAMPLED };

/* The header of a CPU's rings; the slots follow at SLOTS_AT, those of the side ring behind them.
 *
 * sched_switch and sched_waking run with interrupts off, so that their ring needs no atomic instruction, which would
 * wait for all stores before it. Everything else may be interrupted by them, and goes to the side ring. */
struct ring {
	u64 head; /* slots ever reserved */
	u64 lost; /* records that found no room */
	u64 lost_stacks; /* stacks that found no room */
	u64 limited_stacks; /* stacks left out to limit the rate */
	u64 captured_stacks;
	u64 preempt_count; /* address of this CPU's */
	u64 tokens;
	u64 refilled;
	u32 resumed; /* tid that comes back from a long wait */
	u32 irq; /* number + 1 while its handler runs */
	u32 softirq; /* vector + 1 */
	u32 timer; /* an hrtimer expires: 1 in softirq, 2 in hard irq */
	u64 spin_lock; /* contended spinlock and since when */
	u64 spin_since;
	u64 side_head;
	u64 running; /* the task that was switched in last: its address, only to be compared and probed */
	u64 tail; /* slots read: written by user space */
	u64 side_tail;
	u64 waited; /* by the thread that is `resumed`, ns */
	u64 context; /* address of a program's arguments, which lie on the kernel stack */
	s64 allowance; /* ns left for stacks */
	u64 allowed_at;
	u64 stack_ns; /* spent on stacks */
	u64 base_ns; /* spent on switches and wake-ups, without stacks: of one in 64, times 64 */
	u64 looks; /* stacks put together */
	u64 sights; /* stacks known by their site */
	u64 skipped; /* stacks left out to keep to the budget */
	u64 calls; /* of all programs */
	u64 timed; /* calls at which a switch or wake-up was timed last */
	u64 sample_ns; /* spent on samples */
	u64 samples;
	u64 sample_allowance; /* ns left for copies of stacks of samples */
	u64 sampled_at;
	u64 bare_samples; /* whose stacks were left out */
	u64 seen_ns; /* of waits with a stack */
	u64 skipped_ns; /* of waits whose stack was left out */
	u64 spans; /* begun, recorded or not */
	u64 span_edges; /* begun and ended */
	u64 span_ns; /* spent on them */
	u64 span_records; /* of them */
	u64 acknowledged; /* when an acknowledgement that was held back was sent last */
	struct scratch scratch[3]; /* by enum whose */
};

_Static_assert(sizeof(struct ring) <= SLOTS_AT, "header");

/* A raw stack in the ring buffer; chunks of user memory from `base` on follow. */
struct raw_stack {
	u64 hash;
	u64 ip, sp, bp;
	u64 base;
	u32 tgid;
	u32 interpreted_frames; /* in one more chunk behind the copy */
	u32 kernel_frames;
	u32 filled; /* chunks */
	u64 user; /* hash of the user part: a stack without chunks shares that of another one */
	u64 layout; /* of its address space, if it has an interpreter */
	u64 kernel[MAX_KERNEL];
};

/* How frames tell where a call of the evaluation loop begins. */
enum entries {
	EACH = 0, /* each frame has a call of its own: Python up to 3.10 */
	FLAGGED = 1, /* the frame that began it is flagged: Python 3.11, PHP */
	SHIMMED = 2, /* a frame of another owner lies before it: Python 3.12 and later */
	POINTED = 3, /* that which began it is flagged where it points to: Ruby */
};

/* Where an interpreter keeps its frames: offsets in bytes, but for the first and the types. */
struct interpreter {
	u64 runtime; /* address of _PyRuntime; with `single` of what has the innermost frame */
	u32 interpreters; /* in it: the first interpreter */
	u32 next_interpreter; /* NOT_THROUGH if there is but one: nothing can be read so far away */
	u32 threads; /* in an interpreter: its first thread */
	u32 next_thread;
	u32 thread_id;
	u32 current; /* in a thread: the innermost frame, or where that is kept */
	u32 through; /* there: the frame; NOT_THROUGH if the thread has it itself */
	u32 previous; /* in a frame */
	u32 code;
	u32 entry; /* a byte that tells of `entries` */
	u32 entries; /* enum entries */
	u32 size; /* bytes of a frame that are read */
	u32 flag; /* the bits of that byte that do, if FLAGGED */
	u32 single; /* it runs in the process's first thread alone, and is not looked for */
	u32 shared; /* V8, of which nothing above is meant: in a function, what it shares with others of its text */
	u32 shared_type; /* the type of those, in the map that they begin with */
	u32 instruction; /* in a frame: where it runs; 0 if it does not tell */
	u32 bytecode; /* in its function: where those instructions begin */
	u32 id_through; /* in a thread: what has `thread_id`; NOT_THROUGH if it has it itself */
	u32 stride; /* from a frame to its caller, if not 0; what `through` leads to begins with the stack's begin and its length in words */
};

#define NOT_THROUGH 0xffffffff
#define INTERPRETED_ENDED (1 << 16) /* with the number of frames: the outermost one was reached */

/* What is known of a thread between its switch-out and its next switch-in. */
struct thread {
	u64 since; /* when it blocked; 0 while it runs */
	u64 lock; /* kernel lock that it contends for */
	u32 lock_kind; /* as LockKind: 1 mutex, 2 rwsem, 4 other, 5 of a file */
	u32 lock_owner;
	u32 lock_told; /* its K_LOCK was written */
	u32 tid, tgid; /* in cfg.namespace; 0 while they are not known */
	u32 whose; /* whose place this is, by the machine's number; 0 for nobody's */
	u32 unused[5];
};

_Static_assert(sizeof(struct thread) == 64, "a cache line");

/* How much of an allowance is saved up: that of so many times 2^20 ns, a second's. */
#define SAVED 1024

const volatile struct config cfg = {};
/* What user space changes while the programs run. */
struct control {
	u64 epoch; /* part of all hashes: a new one makes all stacks be told again */
	u64 allowance; /* ns for stacks per CPU and 2^20 ns */
	u64 sample_allowance; /* the same for copies of samples' stacks */
	u64 always; /* each stack is put together, as if no site was known */
	u32 span_shift; /* of 2 to this power spans one is recorded, and all slow ones; 0 for each begin and end */
	u32 round; /* what the iterator over all tasks is for */
	u64 interpreters; /* how many entries the map of that name has */
	u32 self_tgid; /* the recorder's process */
	u32 level; /* how deep cfg.namespace lies; 0 while it is not known */
};
struct control control = {};

/* For what the iterator over all tasks goes through them. */
enum round { ROUND_ITSELF = 0, ROUND_WAITS = 1, ROUND_END = 2 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, SLOTS_AT + RECORD * 4096);
	__uint(max_entries, 1);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, u8);
} seen SEC(".maps");

#define THREADS 65536

/* One for each thread, by the end of its number: a cache line, found without a call. Mappable, because such a map begins
 * at a page. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, THREADS);
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

/* Those whose place was taken. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} more_threads SEC(".maps");

INLINE struct ring *this_ring(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct ring *r = bpf_map_lookup_elem(&rings, &cpu);
	if (r)
		r->calls++;
	return r;
}

#define TIMED 64

/* What a program that began at `t` has cost, asked of few: a second look at the clock costs as much as what is timed. */
INLINE void timed(struct ring *r, u64 t)
{
	if (r->calls - r->timed < TIMED)
		return;
	r->base_ns += (bpf_ktime_get_ns() - t) * TIMED;
	r->timed = r->calls;
}

/* The first word is written last: its lap bit tells the reader that the slot is complete. */
INLINE void put_at(struct ring *r, u64 from, u64 at, u64 mask, u64 kind, u64 t, u64 a, u64 b)
{
	volatile u64 *slot = (void *)r + SLOTS_AT + (from + (at & mask)) * RECORD;
	u64 lap = (at & (mask + 1)) ? 0 : 1;
	slot[1] = a;
	slot[2] = b;
	barrier();
	slot[0] = (t & ((1ULL << BIT_LAP) - 1)) | lap << BIT_LAP | kind << BIT_KIND;
}

/* Reserves `n` slots of the ring; returns 0 and counts the loss if the reader is too far behind. Interrupts are off. */
INLINE bool reserve(struct ring *r, u64 n, u64 *at)
{
	u64 head = r->head;
	if (head + n - *(volatile u64 *)&r->tail > cfg.slot_mask + 1) {
		__sync_fetch_and_add(&r->lost, 1);
		return 0;
	}
	*at = head;
	r->head = head + n;
	return 1;
}

INLINE void put(struct ring *r, u64 at, u64 kind, u64 t, u64 a, u64 b)
{
	put_at(r, 0, at, cfg.slot_mask, kind, t, a, b);
}

/* The same in the side ring, whose writers may interrupt each other. The margin covers those that passed the check
 * meanwhile. */
INLINE bool side_reserve(struct ring *r, u64 n, u64 *at)
{
	u64 head = *(volatile u64 *)&r->side_head;
	if (head + n + 16 - *(volatile u64 *)&r->side_tail > cfg.side_mask + 1) {
		__sync_fetch_and_add(&r->lost, 1);
		return 0;
	}
	*at = __sync_fetch_and_add(&r->side_head, n);
	return 1;
}

INLINE void side_put(struct ring *r, u64 at, u64 kind, u64 t, u64 a, u64 b)
{
	put_at(r, cfg.slot_mask + 1, at, cfg.side_mask, kind, t, a, b);
}

INLINE void side_put_one(struct ring *r, u64 kind, u64 t, u64 a, u64 b)
{
	u64 at;
	if (side_reserve(r, 1, &at))
		side_put(r, at, kind, t, a, b);
}

INLINE struct thread *place_of(struct task_struct *task)
{
	u32 at = task->pid & (THREADS - 1);
	return bpf_map_lookup_elem(&threads, &at);
}

/* What is known of a thread. Real-time kernels before 6.4 allocate a task's storage under a lock that sleeps, which they
 * must not in sched_switch: nothing is known there of threads whose place is taken. */
INLINE struct thread *thread_of(struct task_struct *task, const bool create)
{
	struct thread *w = place_of(task);
	u32 pid = task->pid;
	if (!w || w->whose == pid)
		return w;
	if (create && !w->whose && !__sync_val_compare_and_swap(&w->whose, 0, pid))
		return w;
	if (cfg.no_storage)
		return 0;
	return bpf_task_storage_get(&more_threads, task, 0, create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
}

/* The last switch of a thread: another one may have its place. */
INLINE void leave_place(struct task_struct *task)
{
	struct thread *w = place_of(task);
	if (!w || w->whose != (u32)task->pid)
		return;
	w->since = w->lock = 0;
	w->lock_told = w->tid = w->tgid = 0;
	barrier();
	w->whose = 0;
}

INLINE struct pt_regs *user_regs_of(struct task_struct *task)
{
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER))
		return 0;
	return (struct pt_regs *)bpf_task_pt_regs(task);
}

#include "number.h"

#endif
