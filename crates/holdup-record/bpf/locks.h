/* Contention on kernel locks, and block I/O. Included by recorder.bpf.c, whose helpers it uses. */
#ifndef HOLDUP_LOCKS_H
#define HOLDUP_LOCKS_H

#include "recorder.h"

/* ---- kernel locks: written only if the thread really sleeps, or spins for long ---- */

INLINE u32 owner_of(u64 field)
{
	u64 owner = 0;
	if (!field || bpf_probe_read_kernel(&owner, sizeof(owner), (void *)field))
		return 0;
	struct task_struct *task = (void *)(owner & ~7ULL);
	return task ? tid_at(task) : 0;
}

/* On a real-time kernel every mutex is one that inherits priority, and has its owner elsewhere. */
INLINE u64 owner_field(u64 lock, const bool inherits)
{
	struct mutex *mutex = (void *)lock;
	struct rt_mutex_base *base = (void *)lock;
	if (inherits)
		return field_exists(base->owner) ? (u64)__builtin_preserve_access_index(&base->owner) : 0;
	return field_exists(mutex->owner) ? (u64)__builtin_preserve_access_index(&mutex->owner) : 0;
}

INLINE u64 owner_field_of_rwsem(u64 lock)
{
	struct rw_semaphore *sem = (void *)lock;
	return field_exists(sem->owner) ? (u64)__builtin_preserve_access_index(&sem->owner) : 0;
}

SEC("tp_btf/contention_begin")
int on_contention_begin(u64 *ctx)
{
	u64 lock = ctx[0];
	u32 flags = ctx[1];
	if ((flags & 1) && !(flags & 32)) { /* spins, no mutex */
		struct ring *r = this_ring();
		if (r) {
			r->spin_lock = lock;
			r->spin_since = bpf_ktime_get_ns();
		}
		return 0;
	}
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *w = thread_of(task, 1);
	if (!w || is_own(task))
		return 0;
	w->lock = lock;
	if (flags & (32 | 8)) { /* a mutex, of a real-time kernel or of threads that inherit priority */
		w->lock_kind = 1;
		w->lock_owner = owner_of(owner_field(lock, flags & 8));
	} else if ((flags & 6) && !(flags & 16)) { /* reads or writes; not per CPU */
		w->lock_kind = 2;
		w->lock_owner = owner_of(owner_field_of_rwsem(lock));
	} else {
		w->lock_kind = 4;
		w->lock_owner = 0;
	}
	return 0;
}

INLINE void end_of_spin(struct ring *r, u64 lock)
{
	u64 at, t = bpf_ktime_get_ns();
	if (t - r->spin_since >= cfg.min_wait && side_reserve(r, 2, &at)) {
		struct thread w = { .lock = lock, .lock_kind = 3 };
		u32 tid = tid_of(r, bpf_get_current_task_btf());
		side_put(r, at, K_LOCK, r->spin_since, lock, lock_word(&w, tid, 1));
		side_put(r, at + 1, K_LOCK, t, lock, lock_word(&w, tid, 0));
	}
	r->spin_lock = 0;
}

SEC("tp_btf/contention_end")
int on_contention_end(u64 *ctx)
{
	struct ring *r = this_ring();
	u64 lock = ctx[0], at;
	if (!r)
		return 0;
	if (r->spin_lock == lock) {
		end_of_spin(r, lock);
		return 0;
	}
	struct task_struct *task = bpf_get_current_task_btf();
	struct thread *w = thread_of(task, 0);
	if (!w || w->lock != lock)
		return 0;
	if (w->lock_told && side_reserve(r, 1, &at))
		side_put(r, at, K_LOCK, bpf_ktime_get_ns(), lock, lock_word(w, tid_of(r, task), 0));
	w->lock = 0;
	w->lock_told = 0;
	return 0;
}

/* ---- block I/O ---- */

#define ONLY_NEW 1 /* BPF_NOEXIST */

/* Who queued a request, which one of the kernel's workers may issue. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u32);
} queued SEC(".maps");

/* A worker that issues it for the second time queues it again: the first word stays. */
SEC("tp_btf/block_rq_insert")
int on_block_insert(u64 *ctx)
{
	struct ring *r = this_ring();
	u64 rq = ctx[0];
	if (r) {
		u32 tid = tid_of(r, bpf_get_current_task_btf());
		bpf_map_update_elem(&queued, &rq, &tid, ONLY_NEW);
	}
	return 0;
}

INLINE int block_io(u64 *ctx, bool issue, u64 bytes)
{
	struct request *rq = (void *)ctx[0];
	struct ring *r = this_ring();
	u64 at, device = 0;
	if (!r)
		return 0;
	u64 key = (u64)rq;
	u32 *by = bpf_map_lookup_elem(&queued, &key);
	u32 tid = !issue ? 0 : by ? *by : tid_of(r, bpf_get_current_task_btf());
	if (!issue && by)
		bpf_map_delete_elem(&queued, &key);
	struct gendisk *disk = field_exists(rq->q->disk) ? rq->q->disk : 0;
	if (disk)
		device = (u64)disk->major << 20 | disk->first_minor;
	if (side_reserve(r, 1, &at))
		side_put(r, at, K_BLOCK_IO, bpf_ktime_get_ns(),
		    (rq->__sector & 0xffffffffffULL) | (u64)(tid & 0x7fffff) << BIT_ISSUER |
			(u64)issue << BIT_ISSUE,
		    device | bytes << BIT_BYTES);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int on_block_issue(u64 *ctx)
{
	struct request *rq = (void *)ctx[0];
	return block_io(ctx, 1, rq->__data_len);
}

SEC("tp_btf/block_rq_complete")
int on_block_complete(u64 *ctx)
{
	return block_io(ctx, 0, (u32)ctx[2]);
}

#endif
