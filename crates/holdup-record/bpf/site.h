/* Sites: the place at which a thread waits, or wakes another, is known again by a few words. Its stack is put together at
 * the first sight, and now and then afterwards.
 *
 * A site is told in two steps. What is in registers (process, system call, instruction, how deep both stacks are) says
 * which words of the user stack are return addresses: that is looked up once, by the call instruction before each. Those
 * words then tell the callers. Words of data never count, so that equal stacks look equal. */
#ifndef HOLDUP_SITE_H
#define HOLDUP_SITE_H

#include "stack.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct spot);
} spots SEC(".maps");

/* Sites that share a spot. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, u64);
	__type(value, struct site);
} sites SEC(".maps");

/* Whether a call ends right before `address`: E8 with a distance, or FF /2 through a register or memory, which is 7, 6, 4, 3
 * or 2 bytes long. A function of its own, which the verifier walks once. */
__attribute__((noinline)) int follows_call(u64 address)
{
	u8 code[8];
	if (address - 0x10000 > 0x7fffffff0000ULL || bpf_probe_read_user(code, 7, (void *)(address - 7)))
		return 0;
	if (code[2] == 0xe8)
		return 1;
	for (u32 i = 0; i < 6; i++)
		if (i != 2 && code[i] == 0xff && (code[i + 1] & 0x38) == 0x10)
			return 1;
	return 0;
}

struct learn {
	struct scratch *s;
	u64 words; /* how many were read */
	u64 stack; /* words between here and 16 MB above point into the stack */
	u64 found;
};

static long learn_word(u64 i, struct learn *l)
{
	u64 word = l->s->user[masked(i, PEEK - 1)];
	if (i >= l->words || l->found >= CALLERS)
		return 1;
	if (word - l->stack > 16 << 20 && follows_call(word))
		l->s->spot.callers[masked(l->found++, CALLERS - 1)] = i;
	return 0;
}

/* Finds the return addresses among the words in `s`. */
INLINE void learn_callers(struct scratch *s, u64 words, u64 sp)
{
	struct learn l = { .s = s, .words = words, .stack = sp - (8 << 20) };
	*(u64 *)s->spot.callers = ALL_NONE;
	bpf_loop(PEEK, learn_word, &l, 0);
}

/* Without branches: the verifier would walk each way. */
INLINE u64 hash_callers(struct scratch *s, struct spot *spot, u64 hash)
{
	for (u32 i = 0; i < CALLERS; i++) {
		u64 at = spot->callers[i];
		u64 is_one = (at >> 6 & 1) - 1; /* all ones below PEEK */
		hash = mix(hash, s->user[masked(at, PEEK - 1)] & is_one);
	}
	return hash;
}

INLINE void refill(struct ring *r, u64 t)
{
	u64 since = t - r->allowed_at;
	if (since >> 20) {
		s64 left = r->allowance + (s64)((since >> 20 > SAVED ? SAVED : since >> 20) * control.allowance);
		s64 most = (s64)control.allowance * SAVED;
		r->allowance = left > most ? most : left;
		r->allowed_at = t;
	}
}

/* What a look at a stack that may be new costs more than a sight of a known one: two to this power. */
#define LOOK 4
#define SIGHT 0

/* Whether a wait of `wait` ns may have its stack, by what is left of the allowance, in ns of this CPU's time. While half of
 * it is left, --min-wait is enough; with each sixteenth less it takes twice as much. Long waits may run into debt, so that
 * none is left out because many short ones came before it: 5 ms where nothing is left, a second where half is owed. A site that is
 * known costs a sixteenth, and may have been waited at for a sixteenth of that: what has run into debt by many new stacks, as the
 * start of a virtual machine, goes on to tell the sites that are known by then. */
INLINE bool affords(struct ring *r, u64 t, u64 wait, u64 what)
{
	refill(r, t);
	u64 sixteenth = control.allowance * (SAVED / 16) | 1;
	s64 missing = (s64)(8 * sixteenth) - r->allowance;
	if (missing <= 0)
		return wait >= cfg.min_wait;
	u64 doubled = (u64)missing / sixteenth + what;
	doubled = doubled > LOOK ? doubled - LOOK : 0;
	return doubled <= 24 && wait >> doubled >= (cfg.min_wait | 1);
}

/* Whether the stack of a site is put together at its n-th sight: at the 16th, 64th, 256th, and each thousandth. Its callers
 * further up may be others by now; whichever was seen there last stands for those that follow, so that each gets its share. */
INLINE bool is_due(u64 n)
{
	return !(n & 1023) || (!(n & (n - 1)) && n & 0x150);
}

/* The hash of the stack that was seen at the site last; 0 if none was, or if it is time to look again, and that is afforded. */
INLINE u64 known_stack(struct scratch *s, u64 seed, u64 words, u64 sp, bool may_be_new)
{
	struct spot *spot = bpf_map_lookup_elem(&spots, &seed);
	struct site *site;
	if (!spot && !may_be_new)
		return 0;
	if (!spot) {
		learn_callers(s, words, sp);
		s->spot.key = hash_callers(s, &s->spot, seed);
		return 0;
	}
	u64 key = hash_callers(s, spot, seed);
	s->spot.key = key;
	if (spot->key == key)
		site = &spot->site;
	else
		site = bpf_map_lookup_elem(&sites, &key);
	if (!site || control.always)
		return 0;
	return is_due(++site->sights) && may_be_new ? 0 : site->stack;
}

/* `hash` is the stack of the site that was looked up last in `s`. */
INLINE void remember(struct scratch *s, u64 seed, u64 hash)
{
	struct spot *spot = bpf_map_lookup_elem(&spots, &seed);
	u64 key = s->spot.key;
	s->spot.site.stack = hash;
	s->spot.site.sights = 1;
	if (!spot) {
		bpf_map_update_elem(&spots, &seed, &s->spot, 0);
	} else if (spot->key == key) {
		spot->site.stack = hash;
	} else {
		struct site *site = bpf_map_lookup_elem(&sites, &key);
		if (site)
			site->stack = hash;
		else
			bpf_map_update_elem(&sites, &key, &s->spot.site, 0);
	}
}

/* What a sight costs, for the allowance, without a look at the clock. */
#define SIGHT_NS 550
/* Who waits for so many times what a sight costs may be seen wherever he is known, whatever is owed. */
#define TIMES 4096

/* What a wait counts for in the share of those whose stacks are left out: who sleeps for hours says little about the rest. */
INLINE u64 counted(u32 which, u64 wait)
{
	const u64 most = 10000000;
	return which != WAITER ? 0 : wait < most ? wait : most;
}

INLINE void skip(struct ring *r, u32 which, u64 wait)
{
	r->skipped++;
	r->skipped_ns += counted(which, wait);
}

/* Whether a wait of `wait` ns, or what ends it, gets a stack if its site is known; counts those that don't. */
INLINE bool may_look(struct ring *r, u32 which, u64 t, u64 wait)
{
	if (cfg.no_stacks)
		return 0;
	if (control.always || wait > SIGHT_NS * TIMES || affords(r, t, wait, SIGHT))
		return 1;
	skip(r, which, wait);
	return 0;
}

/* A kernel stack begins at a multiple of its size, which is 16 KB or more: these bits of an address say how deep in it that
 * is. Where a stack begins is told by a field that the verifier takes for a pointer, by Linux 6.18.44 at the latest, and
 * pointers it lets nobody mix. */
#define KERNEL_STACK 0x3fff

/* The hash of the stack of the current task, which waited, or ends a wait, of `wait` ns: that of the stack that was seen
 * at its site before, or one that is put together now, or 0. `depth` is where its kernel stack has got to. */
INLINE u64 stack_of(void *ctx, struct ring *r, u32 which, struct task_struct *task, u64 t, u64 wait, u64 depth)
{
	struct scratch *s = &r->scratch[which];
	if (s->busy)
		return 0;
	s->busy = 1;
	bool may_be_new = control.always || affords(r, t, wait, LOOK);
	struct pt_regs *regs = user_regs_of(task);
	u64 words = 0, sp = 0, hash;
	u64 seed = mix(mix(control.epoch ^ layout_of(task), which), depth);
	if (regs) {
		sp = regs->sp;
		u64 end = stack_end(task, sp);
		seed = mix(mix(seed, regs->ip), regs->orig_ax << 32 ^ (end ? end - sp : 0));
		words = PEEK;
		if (bpf_probe_read_user(s->user, PEEK * 8, (void *)sp))
			words = 0;
	}
	seed = mix(seed, interpreted_frames(s, task, t, SITE_FRAMES, 0));
	u64 cost = SIGHT_NS + FRAME_NS * (u16)s->interpreted_frames;
	hash = known_stack(s, seed, words, sp, may_be_new);
	s->busy = 0;
	if (!hash && !may_be_new) {
		r->allowance -= cost;
		skip(r, which, wait);
		return 0;
	}
	r->seen_ns += counted(which, wait);
	if (hash) {
		r->allowance -= cost;
		if (!(r->sights++ & 31))
			r->stack_ns += 32 * (bpf_ktime_get_ns() - t);
		return hash;
	}
	hash = current_stack(ctx, r, which, task, t);
	remember(s, seed, hash);
	cost = bpf_ktime_get_ns() - t;
	r->stack_ns += cost;
	r->allowance -= cost;
	r->looks++;
	return hash;
}

#endif
