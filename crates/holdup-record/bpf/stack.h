/* Stacks: kernel frames, user registers and a copy of the user stack, each written once.
 *
 * A stack is known by a hash over the layout of its address space, how deep it is, its instruction, the kernel frames,
 * the functions of an interpreter and what looks like return addresses in the first 2 KB of the user stack, so that threads that
 * do the same share it. Only a hash that was not seen lately is written, and only a user part that was not seen lately
 * costs a copy. */
#ifndef HOLDUP_STACK_H
#define HOLDUP_STACK_H

#include "recorder.h"

INLINE u64 mix(u64 hash, u64 word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/* What tells address spaces apart: drawn at random at each exec, and the same in what was forked from it since, so that
 * the workers of a server share their stacks. Kernel threads have a space each. */
INLINE u64 layout_of(struct task_struct *task)
{
	struct mm_struct *mm = task->mm;
	if (!mm)
		return task->pid;
	return mix(mix(mm->start_code, mm->end_code), mm->start_stack);
}

/* An index whose bound the verifier sees: the compiler would leave out a mask that it knows to be idle. */
INLINE u64 masked(u64 index, u64 mask)
{
	asm volatile("" : "+r"(index));
	return index & mask;
}

#include "interpreter.h"

/* Where the copy may end: the thread's TCB lies above its stack, the arguments above the main thread's. 0 where neither is near: what
 * lies above such a stack may be anything. */
INLINE u64 stack_end(struct task_struct *task, u64 sp)
{
	const u64 near = (MAX_CHUNKS - 1) * CHUNK;
	u64 fs = task->thread.fsbase;
	if (fs > sp && fs - sp < near)
		return fs;
	struct mm_struct *mm = task->mm;
	u64 start = mm ? mm->start_stack : 0;
	if (start > sp && start - sp < near)
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

#define WORDS_AT_ONCE 4 /* with more of them the verifier walks many times as long */

struct words {
	struct scratch *s;
	u64 hash;
	u64 at, end; /* from the loop's counter alone, which the verifier takes for unknown, or it would count */
	u64 code, code_size; /* of the program */
	u64 stack; /* what lies from here up to 16 MB above is the stack's */
};

static long hash_frames(u64 i, struct words *w)
{
	u64 hash = w->hash, at = w->at + i * WORDS_AT_ONCE;
	for (u32 k = 0; k < WORDS_AT_ONCE; k++, at++) {
		if (at >= w->end || at >= MAX_KERNEL)
			break;
		hash = mix(hash, w->s->kernel[masked(at, MAX_KERNEL - 1)]);
	}
	w->hash = hash;
	return at >= w->end;
}

/* The hash of the whole stack, whose user part is known. Never 0. */
INLINE u64 hash_kernel(struct scratch *s, struct place *p)
{
	struct words w = { .s = s, .hash = mix(p->user, p->kernel_frames), .at = p->hash_from, .end = p->kernel_frames };
	bpf_loop(MAX_KERNEL / WORDS_AT_ONCE, hash_frames, &w, 0);
	return w.hash ? w.hash : 1;
}

/* A callback, not a loop: the verifier walks it once instead of 500 times. */
static long hash_words(u64 i, struct words *w)
{
	u64 hash = w->hash, at = w->at + i * WORDS_AT_ONCE;
	for (u32 k = 0; k < WORDS_AT_ONCE; k++, at++) {
		if (at >= w->end || at >= HASHED_CHUNKS * CHUNK / 8)
			break;
		u64 word = w->s->user[masked(at, HASHED_CHUNKS * CHUNK / 8 - 1)];
		if (word - w->code < w->code_size ||
		    (word - 0x7f0000000000ULL < 0x00ff00000000ULL && word - w->stack > 16 << 20))
			hash = mix(hash, word);
	}
	w->hash = hash;
	return at >= w->end;
}

/* Reads the first chunks of the user stack and hashes the words that may be return addresses. Words of data are left
 * out, or no two stacks would be equal. */
INLINE u64 hash_user(struct scratch *s, struct task_struct *task, struct place *p, u64 base, u32 chunks, u32 *read,
		  const bool foreign)
{
	u64 hash = mix(p->seed, p->any_ip ? 0 : p->ip);
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
	struct words w = {
		.s = s,
		.hash = hash,
		.at = (p->sp - base) / 8 & 255,
		.end = n * (CHUNK / 8),
		.code = code,
		.code_size = code_size,
		.stack = p->sp - (8 << 20),
	};
	bpf_loop(HASHED_CHUNKS * CHUNK / 8 / WORDS_AT_ONCE, hash_words, &w, 0);
	return mix(w.hash, v8_functions(s, task, base, n * CHUNK, foreign));
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

/* What is copied into a reserved record. */
struct copy {
	struct bpf_dynptr *to;
	struct scratch *s;
	struct task_struct *task;
	u64 base;
	u32 read; /* chunks that were read for the hash */
	u32 known_end;
	u32 filled;
};

INLINE long copy_chunk(u32 i, struct copy *c, const bool foreign)
{
	u32 at = sizeof(struct raw_stack) + i * CHUNK;
	if (i >= MAX_CHUNKS)
		return 1;
	if (i < HASHED_CHUNKS && i < c->read) {
		if (bpf_dynptr_write(c->to, at, (void *)c->s->user + i * CHUNK, CHUNK, 0))
			return 1;
	} else {
		void *to = bpf_dynptr_data(c->to, at, CHUNK);
		if (!to)
			return 1;
		/* A page that was never touched reads as zeros; without a known end it is the end. */
		if (read_chunk(to, c->base + i * CHUNK, c->task, foreign) && !c->known_end)
			return 1;
	}
	c->filled = i + 1;
	return 0;
}

static long copy_own(u64 i, struct copy *c)
{
	return copy_chunk(i, c, 0);
}

static long copy_foreign(u64 i, struct copy *c)
{
	return copy_chunk(i, c, 1);
}

/* What it costs the reader to pack and write a byte of a stack, in 1/16 ns. */
#define WRITE_COST 48

/* Takes what a copy of `size` bytes for a sample costs from this CPU's allowance. Where that is spent, the sample tells its
 * instruction alone. */
INLINE bool affords_copy(struct ring *r, u64 t, u64 size)
{
	u64 since = t - r->sampled_at;
	if (since >> 20) {
		u64 left = r->sample_allowance + (since >> 20 > SAVED ? SAVED : since >> 20) * control.sample_allowance;
		u64 most = control.sample_allowance * SAVED;
		r->sample_allowance = left > most ? most : left;
		r->sampled_at = t;
	}
	u64 cost = size * WRITE_COST / 16;
	if (r->sample_allowance < cost) {
		r->bare_samples++;
		return 0;
	}
	r->sample_allowance -= cost;
	return 1;
}

INLINE u64 new_stack(struct ring *r, struct scratch *s, struct task_struct *task, struct place *p, u64 t, u64 hash,
		     u64 base, u32 chunks, u32 read, bool known_end, const bool foreign)
{
	struct raw_stack *head;
	struct bpf_dynptr d;
	u8 one = 1;
	u32 size = sizeof(*head) + (chunks + (s->interpreted_chunks & 1)) * CHUNK;

	if (p->any_ip && !control.always && !affords_copy(r, t, size))
		return 0;
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
	head->tgid = s->tgid;
	head->interpreted_frames = s->interpreted_frames;
	head->layout = s->layout;
	head->kernel_frames = p->kernel_frames;
	head->user = p->user;
	bpf_dynptr_write(&d, __builtin_offsetof(struct raw_stack, kernel), s->kernel, sizeof(s->kernel), 0);
	struct copy copy = { .to = &d, .s = s, .task = task, .base = base, .read = read, .known_end = known_end };
	bpf_loop(chunks, foreign ? copy_foreign : copy_own, &copy, 0);
	head->filled = copy.filled;
	if (s->interpreted_chunks)
		bpf_dynptr_write(&d, sizeof(*head) + chunks * CHUNK, s->interpreted, sizeof(s->interpreted), 0);
	bpf_ringbuf_submit_dynptr(&d, BPF_RB_NO_WAKEUP);
	__sync_fetch_and_add(&r->captured_stacks, 1);
	bpf_map_update_elem(&seen, &hash, &one, 0);
	if (chunks)
		bpf_map_update_elem(&seen, &p->user, &one, 0);
	return hash;
}

/* The hash of the stack of `task`, whose kernel frames are in `s`; it is written unless it was lately. */
INLINE u64 take_stack(struct ring *r, struct scratch *s, struct task_struct *task, struct place *p, u64 t,
		      const bool foreign)
{
	/* With the word below it, where a function that moves its stack may keep where that was. */
	u64 base = (p->sp - 8) & ~(u64)(CHUNK - 1);
	u64 end = 0;
	u32 chunks = 0, read = 0;

	if (cfg.no_stacks)
		return 0;
	if (p->sp) {
		end = stack_end(task, p->sp);
		chunks = end ? (end - base + CHUNK - 1) / CHUNK : cfg.chunks;
		if (chunks > MAX_CHUNKS)
			chunks = MAX_CHUNKS;
	}
	p->seed = mix(control.epoch ^ layout_of(task), end ? end - p->sp : 0);
	p->seed = mix(p->seed, interpreted_frames(s, task, t, MAX_INTERPRETED, foreign));
	p->user = hash_user(s, task, p, base, chunks, &read, foreign);
	u64 hash = hash_kernel(s, p);
	if (bpf_map_lookup_elem(&seen, &hash))
		return hash;
	if (chunks && bpf_map_lookup_elem(&seen, &p->user))
		chunks = s->interpreted_chunks = s->interpreted_frames = 0;
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
	struct place *p = &s->place;
	if (s->busy)
		return 0;
	s->busy = 1;
	*p = (struct place){};
	s->tgid = tgid_of(r, task);
	long bytes = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), cfg.skip_frames & 0xff);
	p->kernel_frames = bytes > 0 ? (u64)bytes / 8 : 0;
	set_user(p, user_regs_of(task));
	u64 hash = take_stack(r, s, task, p, t, 0);
	s->busy = 0;
	return hash;
}

#endif
