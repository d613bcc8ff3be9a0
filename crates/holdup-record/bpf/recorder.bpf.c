/* holdup's recorder in the kernel: 24-byte records of switches, wake-ups and what surrounds them go into one ring per
 * CPU; stacks of long waits, of their wakers, and of samples go into a common ring buffer. One clock read each. */
#include "calls.h"
#include "files.h"
#include "site.h"

char LICENSE[] SEC("license") = "GPL";

#define FUTEX 202
#define FCNTL 72
#define FLOCK 73
/* As LockKind */
#define FILE_LOCK 5

/* ---- switches ---- */

INLINE u32 state_of(u64 *ctx, struct task_struct *prev)
{
	if (ctx[0]) /* preempted: whatever its state, it stays runnable */
		return 0;
	if (cfg.has_state_argument)
		return ctx[3];
	if (field_exists(prev->__state))
		return prev->__state;
	return ((struct task_struct___old *)prev)->state;
}

/* A thread blocks in futex(2): whose is the lock? glibc keeps a mutex's owner behind the word, PI locks in it. */
INLINE void futex_words(u64 *a, u64 *b, struct pt_regs *regs, struct task_struct *task, const bool foreign)
{
	u64 address = regs->di;
	u32 op = regs->si;
	u32 words[3] = {};
	u32 command = op & 0x7f;

	if (foreign ? bpf_copy_from_user_task(words, sizeof(words), (void *)address, task, 0)
		    : bpf_probe_read_user(words, sizeof(words), (void *)address))
		words[0] = words[2] = 0;
	u64 owner = command == 6 || command == 13 ? words[0] & 0x3fffffff : words[2];
	u64 flags = (op & 0x80 ? 1 : 0) | (regs->r10 ? 1 << (BIT_TIMED - BIT_PRIVATE) : 0);
	*a = (address & 0xffffffffffffULL) | (u64)command << BIT_OPERATION | flags << BIT_PRIVATE;
	*b = words[0] | owner << BIT_OWNER;
}

INLINE u64 lock_word(struct thread *w, u32 tid, bool begin)
{
	return (tid & TID_MASK) | (u64)(w->lock_owner & TID_MASK) << BIT_SECOND | (u64)w->lock_kind << BIT_LOCK_KIND |
	       (u64)begin << BIT_BEGIN;
}

/* A thread blocks in flock(2) or fcntl(2): the lock is that of the file. */
INLINE void begin_file_lock(struct thread *w, struct task_struct *task, u32 fd)
{
	w->lock = (u64)inode_of(file_of(task, fd));
	w->lock_kind = FILE_LOCK;
	w->lock_owner = 0;
}

/* It goes on. */
INLINE void end_file_lock(struct ring *r, struct thread *w, struct task_struct *task, u64 t)
{
	u64 at;
	if (w->lock_told && reserve(r, 1, &at))
		put(r, at, K_LOCK, t, w->lock, lock_word(w, tid_of(r, task), 0));
	w->lock = 0;
	w->lock_kind = 0;
	w->lock_told = 0;
}

/* A plain read of a bit field takes its place in this kernel's headers for that in the running kernel. */
INLINE u64 waits_for_io(struct task_struct *task)
{
	u32 word = *(u32 *)((void *)task + __builtin_preserve_field_info(task->in_iowait, 0));
	u64 bits = (u64)word << __builtin_preserve_field_info(task->in_iowait, 4);
	return bits >> __builtin_preserve_field_info(task->in_iowait, 5);
}

INLINE void leave(u64 *ctx, struct ring *r, struct task_struct *prev, struct task_struct *next, u64 t)
{
	u32 state = state_of(ctx, prev) & 0xffff;
	struct thread *w = 0;
	struct pt_regs *regs = 0;
	s64 call = -1;
	u64 n = 1, at;
	bool futex = 0, lock = 0;

	if (prev->pid) {
		regs = user_regs_of(prev);
		call = call_of(regs);
		if (state && !(state & TASK_DEAD)) {
			w = thread_of(prev, 1);
			if (w) {
				w->since = t;
				if (regs && !w->lock && (call == FLOCK || call == FCNTL))
					begin_file_lock(w, prev, regs->di);
				lock = w->lock && !w->lock_told;
			}
			futex = call == FUTEX && !is_own(prev);
		}
	}
	u64 prev_tid = tid_of(r, prev), next_tid = tid_of(r, next), prev_tgid = tgid_of(r, prev);
	n += futex + lock;
	if (!reserve(r, n, &at))
		return;
	if (lock && w) {
		put(r, at++, K_LOCK, t, w->lock, lock_word(w, prev_tid, 1));
		w->lock_told = 1;
	}
	if (futex && regs) {
		u64 a, b;
		futex_words(&a, &b, regs, prev, 0);
		put(r, at++, K_FUTEX, t, a, b);
	}
	u64 io = waits_for_io(prev);
	put(r, at, K_SWITCH, t, (prev_tid & TID_MASK) | (next_tid & TID_MASK) << BIT_SECOND | (u64)call << BIT_CALL,
	    state | (prev_tgid & TID_MASK) << BIT_PID | io << BIT_IO_WAIT);
	if (state & TASK_DEAD)
		leave_place(prev);
}

/* Whether `next` comes back from a wait whose stack is to be taken, for the end of this switch. */
INLINE void arrive(struct ring *r, struct task_struct *next, u64 t)
{
	r->resumed = 0;
	if (!next->pid)
		return;
	struct thread *w = thread_of(next, 0);
	if (w && w->lock_kind == FILE_LOCK)
		end_file_lock(r, w, next, t);
	if (w && w->since) {
		u64 wait = t - w->since;
		if (wait >= cfg.min_wait && !is_own(next) && may_look(r, WAITER, t, wait)) {
			r->resumed = next->pid;
			r->waited = wait;
		}
		w->since = 0;
	}
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct ring *r = this_ring();
	if (!r)
		return 0;
	u64 t = bpf_ktime_get_ns();
	leave(ctx, r, prev, next, t);
	r->running = (u64)next;
	arrive(r, next, t);
	timed(r, t);
	return 0;
}

/* Some guests never fire sched_switch for the switch-outs of some threads. The end of __schedule tells. */
INLINE void missed_switch(struct ring *r, struct task_struct *task)
{
	struct task_struct *prev = (void *)r->running;
	u32 state = 0;
	u32 prev_tid = 0, prev_pid = 0;
	u64 t = bpf_ktime_get_ns();
	if (prev) {
		struct task_struct *leader = 0;
		read_field(leader, prev->group_leader);
		prev_tid = tid_at(prev);
		prev_pid = leader ? tid_at(leader) : 0;
		if (field_exists(prev->__state))
			bpf_probe_read_kernel(&state, sizeof(state), __builtin_preserve_access_index(&prev->__state));
		side_put_one(r, K_MISSED_SWITCH, t,
			     (prev_tid & TID_MASK) | (u64)(tid_of(r, task) & TID_MASK) << BIT_SECOND | 0xffffULL << BIT_CALL,
			     (state & 0xffff) | (u64)(prev_pid & TID_MASK) << BIT_PID);
	}
	r->running = (u64)task;
	arrive(r, task, t);
}

/* The resumed thread is current again, with the stack of its wait. */
INLINE int resumed(void *ctx, struct ring *r, struct task_struct *task)
{
	if (r->resumed != task->pid)
		return 0;
	r->resumed = 0;
	u64 t = bpf_ktime_get_ns();
	/* Where its kernel stack had got to when it was switched out. */
	u64 depth = task->thread.sp & KERNEL_STACK;
	u64 hash = stack_of(ctx, r, WAITER, task, t, r->waited, depth);
	if (hash)
		side_put_one(r, K_BLOCKED, t, tid_of(r, task), hash);
	return 0;
}

INLINE int switched_in(void *ctx)
{
	struct ring *r = this_ring();
	struct task_struct *task = bpf_get_current_task_btf();
	if (!r || !r->running) /* the hook on switches is not there yet */
		return 0;
	if (r->running != (u64)task)
		missed_switch(r, task);
	return r->resumed ? resumed(ctx, r, task) : 0;
}

SEC("tp_btf/sched_exit_tp")
int on_resume(u64 *ctx)
{
	return switched_in(ctx);
}

/* Where sched_exit_tp is missing: threads that block come back from schedule(). */
SEC("fexit/schedule")
int on_schedule(u64 *ctx)
{
	return switched_in(ctx);
}

/* Where neither can be had: the stack at the end of the system call in which the thread waited. */
SEC("tp_btf/sys_exit")
int on_sys_exit(u64 *ctx)
{
	struct ring *r = this_ring();
	return r && r->resumed ? resumed(ctx, r, bpf_get_current_task_btf()) : 0;
}

/* ---- wake-ups ---- */

/* The context of this CPU: from its preemption count where that can be read, else from the handlers entered. */
INLINE u32 context_of(struct ring *r, struct task_struct *current)
{
	u32 count = 0;
	if (cfg.preempt_delta) {
		if (!r->preempt_count)
			r->preempt_count = (u64)current->se.cfs_rq->rq + cfg.preempt_delta;
		if (bpf_rdonly_cast) {
			count = *(u32 *)bpf_rdonly_cast((void *)r->preempt_count,
				__builtin_btf_type_id(*(struct refcount_struct *)0, 1));
		} else {
			bpf_probe_read_kernel(&count, sizeof(count), (void *)r->preempt_count);
		}
	} else {
		count = (r->irq || r->timer == 2 ? 0x10000 : 0) | (r->softirq ? 0x100 : 0);
	}
	if (count & 0xff0000)
		return r->timer == 2 ? CTX_TIMER : CTX_HARDIRQ;
	if (count & 0x100)
		/* softirqs TIMER and HRTIMER, and an hrtimer in the latter */
		return r->softirq == 2 || r->softirq == 9 || r->timer == 1 ? CTX_TIMER : CTX_SOFTIRQ;
	return current->pid ? CTX_TASK : CTX_UNKNOWN;
}

INLINE bool releases_futex(u32 command)
{
	return command < 13 && ((1 << command) & (1 << 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 10 | 1 << 12));
}

/* System calls below 64 in which a thread sends: write, close, writev, sendfile, connect, sendto, sendmsg, shutdown, and setsockopt,
 * which lets go what was corked. Receiving sends, too: that there is room again. */
#define SENDING (1ULL << 1 | 1ULL << 3 | 1ULL << 20 | 1ULL << 40 | 1ULL << 42 | 1ULL << 44 | 1ULL << 46 | 1ULL << 48 | 1ULL << 54)
#define RECEIVING (1ULL << 0 | 1ULL << 19 | 1ULL << 45 | 1ULL << 47)

/* Whether the thread is in a system call that sends: a softirq that runs inside is its own work, as on loopback. */
INLINE bool is_sending(struct task_struct *task)
{
	struct pt_regs *regs = user_regs_of(task);
	if (!regs || (u16)regs->cs == COMPAT_CS)
		return 0;
	u64 call = regs->orig_ax;
	if (call < 64)
		return (SENDING | RECEIVING) >> call & 1;
	/* splice, recvmmsg, sendmmsg, io_uring_enter */
	return call == 275 || call == 299 || call == 307 || call == 426;
}

/* How long `wakee` has waited, if that is long; else 0. */
INLINE u64 long_wait(struct task_struct *wakee, u64 t)
{
	struct thread *w = thread_of(wakee, 0);
	return w && w->since && t - w->since >= cfg.min_wait ? t - w->since : 0;
}

/* How deep the kernel stack of the current task is. What was stored is no pointer to the verifier any more. */
INLINE u64 depth_here(u64 *ctx, struct ring *r)
{
	r->context = (u64)ctx;
	return *(volatile u64 *)&r->context & KERNEL_STACK;
}

/* Of packets, that they waited for an acknowledgement that was sent within so many nanoseconds before. */
#define LATE_ACK 0x40
#define LATE_ACK_NS 100000

SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	struct task_struct *wakee = (void *)ctx[0];
	struct task_struct *current = bpf_get_current_task_btf();
	struct ring *r = this_ring();
	u64 at, n = 1, hash = 0, source = 0, address = 0, op = 0;
	bool key = 0;
	if (!r || wakee == current) /* a self-wake says nothing, and comes with interrupts on */
		return 0;
	u32 context = context_of(r, current);
	u64 t = bpf_ktime_get_ns();
	if (context == CTX_SOFTIRQ && r->softirq == 4 && current->pid && is_sending(current))
		context = CTX_TASK;
	if (context == CTX_TASK) {
		if (is_own(current))
			return 0;
		u64 wait = long_wait(wakee, t);
		if (wait && may_look(r, WAKER, t, wait))
			hash = stack_of(ctx, r, WAKER, current, t, wait, depth_here(ctx, r));
		struct pt_regs *regs = user_regs_of(current);
		if (regs && (u16)regs->cs != COMPAT_CS) {
			if (regs->orig_ax == FUTEX) {
				op = regs->si;
				address = regs->di;
				key = releases_futex(op & 0x7f);
			}
			source = written_to(regs);
		}
	} else if (context == CTX_HARDIRQ) {
		source = r->irq ? r->irq - 1 : 0;
	} else if (context != CTX_UNKNOWN) {
		source = r->softirq ? r->softirq - 1 : 0;
		if (source == 3 && t - r->acknowledged < LATE_ACK_NS)
			source |= LATE_ACK;
	}
	n += key + (hash != 0);
	if (!reserve(r, n, &at))
		return 0;
	if (key)
		put(r, at++, K_WAKE_KEY, t, address, tgid_of(r, current) | (op & 0xff) << BIT_KEY_OPERATION);
	if (hash)
		put(r, at++, K_WAKE_STACK, t, 0, hash);
	put(r, at, K_WAKE, t, (tid_of(r, current) & TID_MASK) | (u64)(tid_of(r, wakee) & TID_MASK) << BIT_SECOND |
	    (u64)context << BIT_CONTEXT, source);
	if (!hash)
		timed(r, t);
	return 0;
}

#include "irq.h"
#include "locks.h"
#include "marker.h"
#include "threads.h"
#include "sockets.h"

/* ---- samples ---- */

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct ring *r = this_ring();
	/* Volatile, or the compiler moves the context pointer, which the verifier refuses. */
	volatile struct user_regs *regs = &ctx->regs;
	u64 at, hash = 0, ip = regs->ip, sp = regs->sp, bp = regs->bp, cs = regs->cs;
	if (!r || !task->pid || is_own(task))
		return 0;
	u64 t = bpf_ktime_get_ns();
	struct scratch *s = &r->scratch[SAMPLED];
	s->tid = tid_of(r, task);
	if (!s->busy) {
		struct place *p = &s->place;
		s->busy = 1;
		s->tgid = tgid_of(r, task);
		*p = (struct place){ .hash_from = 1 };
		if (cs & 3) {
			p->ip = ip;
			p->sp = sp;
			p->bp = bp;
			p->any_ip = 1;
		} else {
			long bytes = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), 0);
			p->kernel_frames = bytes > 0 ? (u64)bytes / 8 : 0;
			set_user(p, user_regs_of(task));
		}
		hash = take_stack(r, s, task, p, t, 0);
		s->busy = 0;
	}
	if (side_reserve(r, 2, &at)) {
		side_put(r, at, K_SAMPLE, t, s->tid, hash);
		side_put(r, at + 1, K_MORE, t, ip, bp);
	}
	r->samples++;
	r->sample_ns += bpf_ktime_get_ns() - t;
	return 0;
}

#include "standing.h"
