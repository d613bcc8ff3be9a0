/* Stacks: kernel frames, user registers and a copy of the user stack, each written once.
 *
 * A stack is known by a hash over the thread, its registers, the kernel frames and what looks like return addresses
 * in the first 4 KB of the user stack. Only a hash that was not seen lately costs a copy. */
#ifndef HOLDUP_STACK_H
#define HOLDUP_STACK_H

#include "recorder.h"

struct place {
	u64 ip, sp, bp;
	u64 seed; /* what else tells this stack from others */
	u32 kernel_frames;
	u32 hash_from; /* the first kernel frame that is hashed */
};

INLINE u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/* Where the copy may end: the thread's TCB lies above its stack, the arguments above the main thread's. */
INLINE u64 stack_end(struct task_struct *task, u64 sp, u64 limit)
{
	u64 fs = task->thread.fsbase;
	if (fs > sp && fs - sp < limit)
		return fs;
	struct mm_struct *mm = task->mm;
	u64 start = mm ? mm->start_stack : 0;
	if (start > sp && start - sp < limit)
		return start + 64;
	return 0;
}

/* Reads a chunk of the user stack of the current task, or (sleepable programs only) of another one. */
INLINE long read_chunk(void *to, u64 from, struct task_struct *task, const bool foreign)
{
	if (foreign)
		return bpf_copy_from_user_task(to, CHUNK, (void *)from, task, 0);
	return bpf_probe_read_user(to, CHUNK, (void *)from);
}

/* Reads the first chunks of the user stack and hashes the words that may be return addresses. Words of data are left
 * out, or no two stacks would be equal. */
INLINE u64 hash_user(struct scratch *s, struct task_struct *task, struct place *p, u64 base, u32 chunks, u32 *read,
		  const bool foreign)
{
	u64 hash = mix(p->seed, p->ip);
	struct mm_struct *mm = task->mm;
	u64 code = mm ? mm->start_code : 0;
	u64 code_size = mm ? mm->end_code - code : 0;
	u32 n = 0;

	for (u32 i = 0; i < HASHED_CHUNKS; i++) {
		if (i >= chunks || read_chunk((void *)s->user + i * CHUNK, base + i * CHUNK, task, foreign))
			break;
		n = i + 1;
	}
	*read = n;
	u32 words = n * (CHUNK / 8);
	for (u32 i = (p->sp - base) / 8 & 127; i < HASHED_CHUNKS * CHUNK / 8; i++) {
		if (i >= words)
			break;
		u64 w = s->user[i];
		bool library = w - 0x7f0000000000ULL < 0x00ff00000000ULL && w - (p->sp - (1 << 20)) > 9 << 20;
		if (w - code < code_size || library)
			hash = mix(hash, w);
	}
	return hash;
}

/* Takes `size` bytes from this CPU's allowance of new stacks. */
INLINE bool may_capture(struct ring *r, u64 t, u64 size)
{
	u64 since = t - r->refilled;
	if (since > 1 << 20) {
		u64 tokens = r->tokens + (since >> 20 > 1024 ? 1024 : since >> 20) * cfg.stack_rate;
		r->tokens = tokens > cfg.stack_burst ? cfg.stack_burst : tokens;
		r->refilled = t;
	}
	if (r->tokens < size) {
		__sync_fetch_and_add(&r->limited_stacks, 1);
		return 0;
	}
	r->tokens -= size;
	return 1;
}

/* Fills a reserved record. The chunks that were read for the hash are not read again. */
INLINE u32 fill(struct bpf_dynptr *d, struct raw_stack *head, struct scratch *s, struct task_struct *task, u32 chunks,
		 u32 read, bool known_end, const bool foreign)
{
	u32 i;
	for (i = 0; i < MAX_CHUNKS; i++) {
		if (i >= chunks)
			break;
		u32 at = sizeof(*head) + i * CHUNK;
		if (i < HASHED_CHUNKS && i < read) {
			if (bpf_dynptr_write(d, at, (void *)s->user + i * CHUNK, CHUNK, 0))
				break;
			continue;
		}
		void *to = bpf_dynptr_data(d, at, CHUNK);
		if (!to)
			break;
		if (read_chunk(to, head->base + i * CHUNK, task, foreign) && !known_end) {
			/* A page that was never touched reads as zeros; without a known end it is the end. */
			break;
		}
	}
	return i;
}

INLINE u64 new_stack(struct ring *r, struct scratch *s, struct task_struct *task, struct place *p, u64 t, u64 hash,
		     u64 base, u32 chunks, u32 read, bool known_end, const bool foreign)
{
	struct raw_stack *head;
	struct bpf_dynptr d;
	u8 one = 1;
	u32 size = sizeof(*head) + chunks * CHUNK;

	if (!may_capture(r, t, size))
		return hash;
	if (bpf_ringbuf_reserve_dynptr(&stacks, size, 0, &d)) {
		bpf_ringbuf_discard_dynptr(&d, 0);
		__sync_fetch_and_add(&r->lost_stacks, 1);
		return hash;
	}
	head = bpf_dynptr_data(&d, 0, sizeof(*head));
	if (!head) {
		bpf_ringbuf_discard_dynptr(&d, 0);
		return hash;
	}
	head->hash = hash;
	head->ip = p->ip;
	head->sp = p->sp;
	head->bp = p->bp;
	head->base = base;
	head->tgid = task->tgid;
	head->tid = task->pid;
	head->kernel_frames = p->kernel_frames;
	bpf_dynptr_write(&d, __builtin_offsetof(struct raw_stack, kernel), s->kernel, sizeof(s->kernel), 0);
	head->filled = fill(&d, head, s, task, chunks, read, known_end, foreign);
	bpf_ringbuf_submit_dynptr(&d, BPF_RB_NO_WAKEUP);
	__sync_fetch_and_add(&r->captured_stacks, 1);
	bpf_map_update_elem(&seen, &hash, &one, 0);
	return hash;
}

/* The hash of the stack of `task`, whose kernel frames are in `s`; it is written unless it was lately. */
INLINE u64 take_stack(struct ring *r, struct scratch *s, struct task_struct *task, struct place *p, u64 t,
		      const bool foreign)
{
	u64 limit = (u64)cfg.chunks * CHUNK;
	u64 base = p->sp & ~(u64)(CHUNK - 1);
	u64 end = 0;
	u32 chunks = 0, read = 0;

	p->seed = mix(mix(epoch ^ (u64)task->tgid << 32 ^ task->pid, p->sp), p->kernel_frames);
	for (u32 i = 0; i < MAX_KERNEL; i++) {
		if (i >= p->kernel_frames)
			break;
		if (i >= p->hash_from)
			p->seed = mix(p->seed, s->kernel[i]);
	}
	if (p->sp) {
		end = stack_end(task, p->sp, limit);
		chunks = end ? (end - base + CHUNK - 1) / CHUNK : cfg.chunks;
		if (chunks > MAX_CHUNKS)
			chunks = MAX_CHUNKS;
	}
	u64 hash = hash_user(s, task, p, base, chunks, &read, foreign);
	if (!hash)
		hash = 1;
	if (bpf_map_lookup_elem(&seen, &hash))
		return hash;
	return new_stack(r, s, task, p, t, hash, base, chunks, read, end != 0, foreign);
}

INLINE void set_user(struct place *p, struct pt_regs *regs)
{
	if (!regs)
		return;
	p->ip = regs->ip;
	p->sp = regs->sp;
	p->bp = regs->bp;
}

/* The stack of the current task, which is in the kernel; 0 if there is none. */
INLINE u64 current_stack(void *ctx, struct ring *r, u32 which, struct task_struct *task, u64 t)
{
	struct scratch *s = &r->scratch[which];
	struct place p = {};
	if (s->busy)
		return 0;
	s->busy = 1;
	long bytes = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), cfg.skip_frames & 0xff);
	p.kernel_frames = bytes > 0 ? (u64)bytes / 8 : 0;
	set_user(&p, user_regs_of(task));
	u64 hash = take_stack(r, s, task, &p, t, 0);
	s->busy = 0;
	return hash;
}

#endif
