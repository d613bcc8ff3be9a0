/* Threads that begin, end and take other names. Included by recorder.bpf.c. */
#ifndef HOLDUP_THREADS_H
#define HOLDUP_THREADS_H

#include "marker.h"

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	struct ring *r = this_ring();
	if (!r)
		return 0;
	u64 inner = inner_number(child);
	if (inner)
		side_put_one(r, K_INNER, bpf_ktime_get_ns(), tid_of(r, child) | (u64)tgid_of(r, child) << BIT_PROCESS, inner);
	side_put_one(r, K_FORK, bpf_ktime_get_ns(), tid_of(r, parent) | (u64)tgid_of(r, parent) << BIT_PROCESS,
		tid_of(r, child) | (u64)tgid_of(r, child) << BIT_PROCESS);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct ring *r = this_ring();
	if (r)
		side_put_one(r, K_EXIT, bpf_ktime_get_ns(), tid_of(r, task), 0);
	if (cfg.markers && r)
		forget_marks(r, task, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/task_rename")
int on_rename(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct ring *r = this_ring();
	u64 at, t, name[2] = {};
	if (!r)
		return 0;
	t = bpf_ktime_get_ns();
	bpf_probe_read_kernel_str(name, sizeof(name), (void *)ctx[1]);
	if (side_reserve(r, 2, &at)) {
		side_put(r, at, K_NAME, t, tid_of(r, task) | (u64)tgid_of(r, task) << BIT_PROCESS, name[0]);
		side_put(r, at + 1, K_MORE, t, name[1], 0);
	}
	return 0;
}

#endif
