/* The beginning and the end: threads that wait there. Included by recorder.bpf.c. */
#ifndef HOLDUP_STANDING_H
#define HOLDUP_STANDING_H

#include "stack.h"

/* Whether a thread that was never seen has waited all the time, or since before the beginning: of those of programs whoever is
 * not running has. */
INLINE bool has_stood(struct task_struct *task)
{
	u32 state = 0;
	if (!task->mm || !field_exists(task->__state))
		return 0;
	bpf_probe_read_kernel(&state, sizeof(state), __builtin_preserve_access_index(&task->__state));
	/* TASK_INTERRUPTIBLE or TASK_UNINTERRUPTIBLE, and not TASK_NOLOAD */
	return (state & 3) && !(state & 0x400);
}

INLINE void tell_standing(struct ring *r, struct task_struct *task, struct pt_regs *regs, u64 call, u64 t, u64 hash)
{
	u64 at, a = 0, b = 0;
	bool futex = regs && call == FUTEX;
	if (futex)
		futex_words(&a, &b, regs, task, 1);
	if (!side_reserve(r, 1 + futex, &at))
		return;
	if (futex)
		side_put(r, at++, K_FUTEX, t, a, b);
	side_put(r, at, K_STANDING, t, tid_of(r, task) | (u64)tgid_of(r, task) << BIT_SECOND | call << BIT_CALL, hash);
}

/* Tells of the wait that a thread is in, with its stack. */
INLINE void tell_wait(struct ring *r, struct task_struct *task, u64 t)
{
	struct thread *w = thread_of(task, 0);
	struct place p = {};
	struct pt_regs *regs = user_regs_of(task);
	u64 call = call_of(regs);
	if (w ? !w->since || t - w->since < cfg.min_wait : !has_stood(task))
		return;
	struct scratch *s = &r->scratch[WAITER];
	if (s->busy)
		return;
	s->busy = 1;
	s->tgid = tgid_of(r, task);
	long bytes = bpf_get_task_stack(task, s->kernel, sizeof(s->kernel), 0);
	p.kernel_frames = bytes > 0 ? (u64)bytes / 8 : 0;
	set_user(&p, regs);
	u64 hash = take_stack(r, s, task, &p, t, 1);
	s->busy = 0;
	tell_standing(r, task, regs, call, t, hash);
}

/* PF_FORKNOEXEC */
#define FORKED_ONLY 0x40

/* Whether the recorder has forked it, and it may not begin yet: the command. */
INLINE bool is_own_child(struct task_struct *task)
{
	struct task_struct *parent = 0;
	u32 tgid = 0, flags = 0;
	read_field(flags, task->flags);
	return (flags & FORKED_ONLY) && !read_field(parent, task->real_parent) && parent &&
		!read_field(tgid, parent->tgid) && tgid == control.self_tgid;
}

SEC("iter.s/task")
int on_look(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct ring *r = this_ring();
	if (!task || !r)
		return 0;
	if (control.round == ROUND_ITSELF) {
		find_self(task);
		return 0;
	}
	if (is_own(task) || is_own_child(task))
		return 0;
	u64 t = bpf_ktime_get_ns();
	if (control.round == ROUND_END) { /* what is open is told as ended, too */
		tell_open_spans(r, task, t);
		if (cfg.markers)
			tell_open_marks(r, task, t);
	}
	tell_wait(r, task, t);
	return 0;
}

#endif
