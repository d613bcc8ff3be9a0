/* Numbers of tasks. In a container they are those of the recorder's namespace, as /proc there tells them. Included by recorder.h. */
#ifndef HOLDUP_NUMBER_H
#define HOLDUP_NUMBER_H

/* What has no number in the recorder's namespace keeps the machine's, above all that there can be: PID_MAX_LIMIT. */
#define OUTSIDE (1 << 22)

#define read_field(to, field) bpf_probe_read_kernel(&(to), sizeof(to), __builtin_preserve_access_index(&(field)))

/* The number of `pid` in the namespace at `level`, if that is the recorder's; else 0. */
INLINE u32 number_at(struct pid *pid, u32 level)
{
	struct upid number = {};
	u32 inum = 0;
	u64 at = (u64)__builtin_preserve_access_index(&pid->numbers) + (u64)level * sizeof(number);
	if (bpf_probe_read_kernel(&number, sizeof(number), (void *)at))
		return 0;
	if (!number.ns || read_field(inum, number.ns->ns.inum))
		return 0;
	return inum == cfg.namespace ? number.nr : 0;
}

/* The same of the task at an address. */
INLINE u32 look_up(struct task_struct *task)
{
	struct pid *pid = 0;
	s32 everywhere = 0;
	u32 depth = 0, number = 0;
	if (read_field(everywhere, task->pid) || !everywhere)
		return 0;
	/* A task that has ended has none any more. */
	if (!read_field(pid, task->thread_pid) && pid && !read_field(depth, pid->level) && depth >= control.level)
		number = number_at(pid, control.level);
	return number ? number : OUTSIDE | everywhere;
}

/* Those outside cannot be looked up in /proc: their names are told at first sight. */
INLINE void introduce(struct ring *r, struct task_struct *task, u32 tid, u32 tgid)
{
	u64 at, t = bpf_ktime_get_ns(), name[2] = {};
	if (read_field(name, task->comm) || !side_reserve(r, 2, &at))
		return;
	side_put(r, at, K_NAME, t, tid | (u64)tgid << BIT_PROCESS, name[0]);
	side_put(r, at + 1, K_MORE, t, name[1], 0);
}

/* A thread's number, or with `process` its process's. It is kept: a thread that ends loses its numbers before its last switch. */
static __attribute__((noinline)) u32 number_of(struct ring *r, struct task_struct *task, bool process)
{
	if (!task->pid)
		return 0;
	struct thread *w = thread_of(task, 1);
	if (!w)
		return process ? look_up(task->group_leader) : look_up(task);
	if (!w->tid) {
		w->tgid = look_up(task->group_leader);
		w->tid = look_up(task);
		if (w->tid & OUTSIDE)
			introduce(r, task, w->tid, w->tgid);
	}
	return process ? w->tgid : w->tid;
}

INLINE u32 tid_of(struct ring *r, struct task_struct *task)
{
	return cfg.namespace ? number_of(r, task, 0) : task->pid;
}

INLINE u32 tgid_of(struct ring *r, struct task_struct *task)
{
	return cfg.namespace ? number_of(r, task, 1) : task->tgid;
}

/* The number of a task of which nothing but its address is known. */
INLINE u32 tid_at(struct task_struct *task)
{
	s32 tid = 0;
	if (cfg.namespace)
		return look_up(task);
	return read_field(tid, task->pid) ? 0 : tid;
}

/* The number that a thread has for itself, if it is in a container within the recorder's; else 0. */
INLINE u32 inner_number(struct task_struct *task)
{
	struct pid *pid = 0;
	struct upid number = {};
	u32 level = 0;
	if (read_field(pid, task->thread_pid) || !pid || read_field(level, pid->level) || level <= control.level)
		return 0;
	u64 at = (u64)__builtin_preserve_access_index(&pid->numbers) + (u64)level * sizeof(number);
	bpf_probe_read_kernel(&number, sizeof(number), (void *)at);
	return number.nr;
}

INLINE bool is_own(struct task_struct *task)
{
	return (u32)task->tgid == control.self_tgid;
}

/* If `task` is the recorder, notes where it lies: in its namespace and in none below. */
INLINE void find_self(struct task_struct *task)
{
	struct pid *pid = 0;
	u32 level = 0;
	if (read_field(pid, task->thread_pid) || !pid || read_field(level, pid->level))
		return;
	if (number_at(pid, level) != cfg.own)
		return;
	control.self_tgid = task->tgid;
	control.level = level;
}

#endif
