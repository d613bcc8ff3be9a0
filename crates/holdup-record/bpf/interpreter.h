/* Frames of interpreters: the functions that a thread runs, read from the interpreter's own list.
 *
 *	Python	_PyRuntime -> interpreter -> thread (whose thread_id is ours) -> frame -> frame -> ...
 *	Ruby	ruby_current_vm_ptr -> machine -> main thread -> thread (whose thread_id is ours) -> context -> frame, frame, ...
 *	PHP	executor_globals (of the process's first thread) -> frame -> frame -> ...
 *	V8	the machine's own stack: a frame's pointer -> function -> what is shared
 *
 * User space tells where a process keeps them, by the layout of its address space: what was forked from it keeps them at the
 * same place. All of it is memory of the process, which may hold anything: each step is a read that may fail, and there
 * are so many steps and no more. From 3.11 on different functions of Python have the same C stack, and all of PHP have, so that they
 * are part of a stack's hash. */
#ifndef HOLDUP_INTERPRETER_H
#define HOLDUP_INTERPRETER_H

#include "recorder.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct interpreter);
} interpreters SEC(".maps");

/* The interpreter's thread of a thread, once it was found. */
struct interpreter_thread {
	u64 address; /* 0: it has none */
	u64 asked; /* when it was looked for */
	u64 pause; /* how long it is not looked for again then */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct interpreter_thread);
} interpreter_threads SEC(".maps");

/* Threads of the interpreters that are looked through. */
#define MOST_THREADS 512
/* How long a thread without one of the interpreter's is not looked for again in ns: at first, as one that has just begun gets it soon, and
 * at most. */
#define ASK_SOON 200000
#define ASK_LATE 50000000
/* How many of the innermost frames tell a site. */
#define SITE_FRAMES 8
/* What a frame costs in ns, for the allowance. */
#define FRAME_NS 45
#define OWNED_BY_C 3
#define HEAP_OBJECT(word) (((word) & 3) == 1) /* in V8 */
#define MAP_TYPE 12 /* where V8 has the type in a map */
#define UNIT_SHIFT 48
#define LAST_UNIT 0xffff
#define SHIM 1 /* in place of a code object: a call of the evaluation loop begins behind it */

INLINE long read_user(void *to, u32 size, u64 from, struct task_struct *task, const bool foreign)
{
	if (foreign)
		return bpf_copy_from_user_task(to, size, (void *)from, task, 0);
	return bpf_probe_read_user(to, size, (void *)from);
}

struct hunt {
	struct interpreter *where;
	struct task_struct *task;
	u64 id;
	u64 interpreter, thread;
	u64 found;
};

/* What the thread at `thread` is known by, as `pthread_self` gives it there; 0 if that cannot be read. */
INLINE u64 thread_id_of(struct interpreter *where, u64 thread, struct task_struct *task, const bool foreign)
{
	u64 id = 0;
	if (where->id_through != NOT_THROUGH && read_user(&thread, 8, thread + where->id_through, task, foreign))
		return 0;
	read_user(&id, 8, thread + where->thread_id, task, foreign);
	return id;
}

/* Looks at a thread, or takes the threads of the next interpreter. */
INLINE long hunt_step(struct hunt *h, const bool foreign)
{
	struct interpreter *where = h->where;
	u64 next = 0;
	if (!h->thread) {
		if (!h->interpreter || read_user(&next, 8, h->interpreter + where->threads, h->task, foreign))
			return 1;
		h->thread = next;
		next = 0;
		read_user(&next, 8, h->interpreter + where->next_interpreter, h->task, foreign);
		h->interpreter = next;
		return 0;
	}
	if (thread_id_of(where, h->thread, h->task, foreign) == h->id) {
		h->found = h->thread;
		return 1;
	}
	read_user(&next, 8, h->thread + where->next_thread, h->task, foreign);
	h->thread = next;
	return 0;
}

static long hunt_own(u64 i, struct hunt *h)
{
	return hunt_step(h, 0);
}

static long hunt_foreign(u64 i, struct hunt *h)
{
	return hunt_step(h, 1);
}

/* The interpreter's thread of `task`; 0 if it has none. */
INLINE u64 interpreter_thread(struct interpreter *where, struct task_struct *task, u64 layout, u64 t, const bool foreign)
{
	if (where->single)
		return task->pid == task->tgid ? where->runtime : 0;
	/* The memory of a thread that has ended is soon the next one's. */
	u64 self = task->thread.fsbase, key = mix(mix(layout, self), task->pid), pause = ASK_SOON;
	struct interpreter_thread *known = bpf_map_lookup_elem(&interpreter_threads, &key);
	if (known && known->address) {
		u64 address = known->address;
		if (thread_id_of(where, address, task, foreign) == self)
			return address;
	} else if (known) {
		pause = known->pause;
		if (t - known->asked < pause)
			return 0;
		pause = pause > ASK_LATE / 2 ? ASK_LATE : 2 * pause;
	}
	struct hunt h = { .where = where, .task = task, .id = self };
	read_user(&h.interpreter, 8, where->runtime + where->interpreters, task, foreign);
	bpf_loop(MOST_THREADS, foreign ? hunt_foreign : hunt_own, &h, 0);
	struct interpreter_thread found = { .address = h.found, .asked = t, .pause = pause };
	bpf_map_update_elem(&interpreter_threads, &key, &found, 0);
	return h.found;
}

struct walk {
	struct scratch *s;
	struct interpreter *where;
	struct task_struct *task;
	u64 frame;
	u64 hash;
	u64 frames;
};

/* Which unit of two bytes of the function `code` runs, from 1 on, in the upper bits of a word, where addresses have none; 0 if it is not known. */
INLINE u64 instruction_bits(struct interpreter *where, u64 instruction, u64 code)
{
	u64 unit = ((instruction - code - where->bytecode) >> 1) + 1;
	return where->instruction && unit <= LAST_UNIT ? unit << UNIT_SHIFT : 0;
}

/* The `i`-th frame. Nothing is counted but by the loop, whose counter the verifier takes for unknown, or it would count, too. */
INLINE long walk_step(struct walk *w, u64 i, const bool foreign)
{
	struct interpreter *where = w->where;
	struct scratch *s = w->s;
	u64 size = masked(where->size, sizeof(s->frame) - 1);
	if (read_user(s->frame, size, w->frame, w->task, foreign))
		return 1;
	u64 code = s->frame[masked(where->code >> 3, 15)] & ~1ULL, word;
	u64 previous = where->stride ? w->frame + where->stride : s->frame[masked(where->previous >> 3, 15)];
	u8 entry = ((u8 *)s->frame)[masked(where->entry, sizeof(s->frame) - 1)];
	if (where->entries == POINTED)
		read_user(&entry, 1, s->frame[masked(where->entry >> 3, 15)], w->task, foreign);
	if (where->entries == SHIMMED)
		word = entry == OWNED_BY_C ? SHIM : code;
	else
		word = code | (where->entries == EACH || (entry & where->flag));
	word |= instruction_bits(where, s->frame[masked(where->instruction >> 3, 15)], code);
	s->interpreted[masked(i, MAX_INTERPRETED - 1)] = word;
	w->hash = mix(w->hash, word);
	w->frames = i + 1;
	w->frame = previous;
	return !previous;
}

static long walk_own(u64 i, struct walk *w)
{
	return walk_step(w, i, 0);
}

static long walk_foreign(u64 i, struct walk *w)
{
	return walk_step(w, i, 1);
}

/* Puts the innermost frames of an interpreter of `task`, at most `limit`, into `s`. Returns their hash; 0 if there are none. */
INLINE u64 walk_interpreter(struct scratch *s, struct task_struct *task, u64 t, u32 limit, const bool foreign)
{
	u64 layout = layout_of(task);
	struct interpreter *where = bpf_map_lookup_elem(&interpreters, &layout);
	if (!where)
		return 0;
	s->layout = layout;
	/* Not 0: a stack that was taken before it was known is another one, and is taken again. */
	if (where->shared)
		return 1;
	u64 thread = interpreter_thread(where, task, layout, t, foreign);
	struct walk w = { .s = s, .where = where, .task = task };
	u64 most = limit;
	if (!thread || read_user(&w.frame, 8, thread + where->current, task, foreign) || !w.frame)
		return 0;
	if (where->through != NOT_THROUGH) {
		u64 through = w.frame, stack[2] = {};
		if (read_user(&w.frame, 8, through + where->through, task, foreign) || !w.frame)
			return 0;
		if (where->stride && !read_user(stack, sizeof(stack), through, task, foreign))
			most = (stack[0] + 8 * stack[1] - w.frame) / where->stride;
	}
	bpf_loop(most < limit ? most : limit, foreign ? walk_foreign : walk_own, &w, 0);
	s->interpreted_frames = w.frames | (w.frame && most >= limit ? 0 : INTERPRETED_ENDED);
	s->interpreted_chunks = 1;
	return w.hash | 1;
}

/* The same of the current task, as a function of its own, which the verifier walks once. */
__attribute__((noinline)) int walk_interpreter_here(struct scratch *s, u64 t, u32 limit)
{
	if (s && control.interpreters)
		s->interpreted_hash = walk_interpreter(s, bpf_get_current_task_btf(), t, limit, 0);
	return 0;
}

/* Puts frames of an interpreter into `s`; returns their hash, or 0. Without branches, which would double what the verifier walks. */
INLINE u64 interpreted_frames(struct scratch *s, struct task_struct *task, u64 t, const u32 limit, const bool foreign)
{
	s->layout = s->interpreted_frames = s->interpreted_chunks = s->interpreted_hash = 0;
	if (cfg.no_interpreters)
		return 0;
	if (foreign)
		return walk_interpreter(s, task, t, limit, 1);
	walk_interpreter_here(s, t, limit);
	return *(volatile u64 *)&s->interpreted_hash;
}

/* The functions of V8 whose frames lie within what was read of the stack. */
struct functions {
	struct scratch *s;
	struct task_struct *task;
	u64 base, end; /* of what was read */
	u64 hash;
	u32 shared, type;
};

/* Takes a word for the pointer of a frame: below it are the context and the function. */
INLINE long function_step(struct functions *w, u64 i, const bool foreign)
{
	struct scratch *s = w->s;
	u64 pointer = i ? s->user[masked(i - 1, HASHED_CHUNKS * CHUNK / 8 - 1)] : s->place.bp;
	u64 at = pointer - 16 - w->base, shared = 0, map = 0;
	u16 type = 0;
	if (i > w->end / 8)
		return 1;
	/* Words below the stack pointer are no one's. */
	if ((i && i <= (s->place.sp - w->base) / 8) || (at & 7) || at + 16 > w->end || (i && at + 16 <= i * 8))
		return 0;
	u64 function = s->user[masked(at / 8, HASHED_CHUNKS * CHUNK / 8 - 1)];
	u64 context = s->user[masked(at / 8 + 1, HASHED_CHUNKS * CHUNK / 8 - 1)];
	if (!HEAP_OBJECT(function) || !HEAP_OBJECT(context) ||
	    read_user(&shared, 8, function - 1 + w->shared, w->task, foreign) || !HEAP_OBJECT(shared) ||
	    read_user(&map, 8, shared - 1, w->task, foreign) || !HEAP_OBJECT(map) ||
	    read_user(&type, 2, map - 1 + MAP_TYPE, w->task, foreign) || type != w->type)
		return 0;
	w->hash = mix(w->hash, shared);
	return 0;
}

static long function_own(u64 i, struct functions *w)
{
	return function_step(w, i, 0);
}

static long function_foreign(u64 i, struct functions *w)
{
	return function_step(w, i, 1);
}

/* The hash of the functions of V8 in the first `size` bytes of the stack from `base` on, which were read; 0 if there are none. */
INLINE u64 hash_functions(struct scratch *s, struct task_struct *task, u64 base, u64 size, const bool foreign)
{
	u64 layout = s->layout;
	struct interpreter *where = layout ? bpf_map_lookup_elem(&interpreters, &layout) : 0;
	if (!where || !where->shared)
		return 0;
	struct functions w = { .s = s, .task = task, .base = base, .end = size };
	w.shared = where->shared;
	w.type = where->shared_type;
	bpf_loop(1 + HASHED_CHUNKS * CHUNK / 8, foreign ? function_foreign : function_own, &w, 0);
	return w.hash;
}

/* The same of the current task, as a function of its own. */
__attribute__((noinline)) int hash_functions_here(struct scratch *s, u64 base, u64 size)
{
	if (s)
		s->interpreted_hash = hash_functions(s, bpf_get_current_task_btf(), base, size, 0);
	return 0;
}

/* Their hash, of any task. */
INLINE u64 v8_functions(struct scratch *s, struct task_struct *task, u64 base, u64 size, const bool foreign)
{
	if (cfg.no_interpreters)
		return 0;
	if (foreign)
		return hash_functions(s, task, base, size, 1);
	s->interpreted_hash = 0;
	hash_functions_here(s, base, size);
	return *(volatile u64 *)&s->interpreted_hash;
}

#endif
