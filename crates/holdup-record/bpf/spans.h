/* Begins and ends of spans: functions that are entered and left, and probes that programs have built in (USDT). User space says
 * by `probes` where their arguments lie, and pairs begins with ends. */
#ifndef HOLDUP_SPANS_H
#define HOLDUP_SPANS_H

#include "recorder.h"

#define MAX_PROBES 128
/* Counts of requests on sockets lie behind those of probes, and those of markers behind them; several ports or names may share one. */
#define SOCKET_COUNTS 64
#define MARKER_COUNTS (MAX_PROBES + SOCKET_COUNTS)
#define STRAY_COUNTS (MARKER_COUNTS + SOCKET_COUNTS)
#define TEXT_WORDS 8
/* "(unread)": the program itself has not touched the page yet, or there is none. */
#define UNREAD 0x29646165726e7528ULL

enum argument_kind { A_NONE, A_INTEGER, A_TEXT };
enum argument_place { A_CONSTANT, A_REGISTER, A_MEMORY };

/* One that a probe tells; mirrored by src/probes.rs. */
struct argument {
	u8 kind, place;
	u8 bytes; /* 1, 2, 4 or 8 */
	u8 is_signed;
	u32 at; /* of the register in struct user_regs */
	s64 value; /* the constant, or what is added to the register */
};

struct probe {
	u32 begins;
	u32 more; /* records that follow */
	u32 keyed; /* spans go from one thread to another */
	u32 returns; /* its function does */
	u32 kind; /* the same for all probes of one name */
	u32 unused;
	struct argument arguments[2];
};

/* A span of a thread, while it is not known whether it will be recorded: that is decided at its end, when its length is known. */
struct open_span {
	u64 t; /* when it began; 0 for none */
	u64 sp;
	u32 id, kind;
	u64 values[2];
	u64 text[2][TEXT_WORDS];
};

/* Spans within spans beyond are counted only. */
#define MAX_OPEN 4

struct open_spans {
	struct open_span of[MAX_OPEN];
};

/* Of spans of one kind that end on one CPU. */
struct span_counts {
	u64 slow_ns; /* one in fifty is longer */
	u64 skipped; /* shorter ones since the last that was recorded */
	u64 told_at;
	u64 begun; /* while it was not known whether they would be recorded */
	u64 ended; /* of these */
	u64 open; /* of these, when recording ended */
};

/* The share of spans that are called slow, and are all recorded. */
#define ONE_IN 50
/* At least one in so many ns is recorded of each kind on each CPU. */
#define RAREST_NS 20000000ULL
#define SHORTEST_SLOW 1024

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PROBES);
	__type(key, u32);
	__type(value, struct probe);
} probes SEC(".maps");

/* By thread. User space makes room where there are spans. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct open_spans);
} open_spans SEC(".maps");

/* What a thread begins with: too much for a program's stack. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct open_spans);
} no_spans SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STRAY_COUNTS + 1);
	__type(key, u32);
	__type(value, struct span_counts);
} span_counts SEC(".maps");

/* What an argument is, of the width that its probe says. */
INLINE u64 narrow(u64 value, struct argument *a)
{
	u32 shift = 64 - 8 * (a->bytes & 15);
	if (a->bytes >= 8 || !a->bytes)
		return value;
	return a->is_signed ? (u64)((s64)(value << shift) >> shift) : value << shift >> shift;
}

INLINE u64 argument_of(struct user_regs *ctx, struct argument *a)
{
	u64 value = 0, read = 0;
	if (a->place == A_CONSTANT)
		return a->value;
	if (a->at > sizeof(struct user_regs) - 8 || bpf_probe_read_kernel(&value, 8, (void *)ctx + a->at))
		return 0;
	if (a->place == A_MEMORY) {
		if (bpf_probe_read_user(&read, 8, (void *)(value + a->value)))
			return 0;
		value = read;
	}
	return narrow(value, a);
}

INLINE void put_text(struct ring *r, u64 at, u64 t, u64 *text)
{
	for (int i = 0; i < TEXT_WORDS / 2; i++)
		side_put(r, at + i, K_MORE, t, text[2 * i], text[2 * i + 1]);
}

INLINE void read_arguments(struct user_regs *ctx, struct probe *p, u64 values[2], u64 text[2][TEXT_WORDS])
{
	for (int i = 0; i < 2; i++) {
		if (p->arguments[i].kind == A_NONE)
			continue;
		values[i] = argument_of(ctx, &p->arguments[i]);
		if (p->arguments[i].kind == A_TEXT &&
		    bpf_probe_read_user_str(text[i], TEXT_WORDS * 8, (void *)values[i]) < 0)
			text[i][0] = UNREAD;
	}
}

INLINE void put_arguments(struct ring *r, struct probe *p, u64 at, u64 t, u64 values[2], u64 text[2][TEXT_WORDS])
{
	side_put(r, at++, K_MORE, t, values[0], values[1]);
	for (int i = 0; i < 2; i++) {
		if (p->arguments[i].kind != A_TEXT)
			continue;
		put_text(r, at, t, text[i]);
		at += TEXT_WORDS / 2;
	}
}

/* A begin or an end. */
INLINE void put_edge(struct ring *r, struct user_regs *ctx, struct probe *p, u32 id, u32 tid, u64 sp, u64 t)
{
	u64 at, more = p->more, values[2] = {}, text[2][TEXT_WORDS] = {};
	if (more > 1 + TEXT_WORDS)
		return;
	read_arguments(ctx, p, values, text);
	if (!side_reserve(r, 1 + more, &at))
		return;
	r->span_records += 1 + more;
	side_put(r, at++, K_SPAN, t, (tid & TID_MASK) | (u64)id << BIT_SECOND | more << BIT_PARTS, sp);
	if (more)
		put_arguments(r, p, at, t, values, text);
}

/* A whole span, which ends at `t`. */
INLINE void put_whole(struct ring *r, struct open_span *o, u32 tid, u64 t, u64 weight)
{
	struct probe *p = bpf_map_lookup_elem(&probes, &o->id);
	u64 at, more = p ? p->more : 0;
	if (!p || more > 1 + TEXT_WORDS || !side_reserve(r, 2 + more, &at))
		return;
	r->span_records += 2 + more;
	side_put(r, at++, K_SPAN_WHOLE, t, (tid & TID_MASK) | (u64)o->id << BIT_SECOND | (more + 1) << BIT_PARTS, t - o->t);
	if (more)
		put_arguments(r, p, at, t, o->values, o->text);
	side_put(r, at + more, K_MORE, t, weight, 0);
}

/* One begins. Stacks grow downwards: those that began where it does now, or below, have been left without an end. */
INLINE bool open_one(struct user_regs *ctx, struct open_spans *all, struct probe *p, u32 id, u64 sp, u64 t)
{
	struct open_span *room = 0;
	for (int i = 0; i < MAX_OPEN; i++) {
		struct open_span *o = &all->of[i];
		if (o->t && (o->sp < sp || (o->sp == sp && o->kind == p->kind)))
			o->t = 0;
		if (!o->t)
			room = o;
	}
	if (!room)
		return 0;
	room->t = t;
	room->sp = sp;
	room->id = id;
	room->kind = p->kind;
	for (int i = 0; i < TEXT_WORDS; i++)
		room->text[0][i] = room->text[1][i] = 0;
	read_arguments(ctx, p, room->values, room->text);
	return 1;
}

/* The innermost that this ends; what began within it is over too where its function returns. */
INLINE struct open_span *close_one(struct open_spans *all, struct probe *p, u64 sp)
{
	struct open_span *found = 0;
	for (int i = 0; i < MAX_OPEN; i++) {
		struct open_span *o = &all->of[i];
		if (o->t && o->kind == p->kind && (!p->returns || o->sp == sp) && (!found || o->t > found->t))
			found = o;
	}
	for (int i = 0; i < MAX_OPEN; i++)
		if (found && p->returns && all->of[i].sp < sp)
			all->of[i].t = 0;
	return found;
}

/* For how many spans this one stands; 0 if it is not recorded. The slow ones stand for themselves. Their limit goes up by each, and
 * down by each other one, so that it stays where one in ONE_IN is slower (a quantile by stochastic approximation: H. Robbins and
 * S. Monro 1951). Of the others one after a random number of them is recorded, for all since the last: weights add up to the spans. */
INLINE u64 weight_of(struct span_counts *c, u64 length, u64 t)
{
	u64 slow = c->slow_ns;
	bool is_slow = length > slow && slow;
	if (!slow)
		c->slow_ns = length > SHORTEST_SLOW ? length : SHORTEST_SLOW;
	else if (is_slow)
		c->slow_ns += (slow * (ONE_IN - 1)) >> 10;
	else if (slow > SHORTEST_SLOW)
		c->slow_ns -= slow >> 10;
	if (is_slow)
		return 1;
	u64 weight = ++c->skipped;
	u32 mask = (1U << (control.span_shift & 31)) - 1;
	if ((bpf_get_prandom_u32() & mask) && t - c->told_at < RAREST_NS)
		return 0;
	c->skipped = 0;
	c->told_at = t;
	return weight;
}

INLINE struct open_spans *spans_of(u32 pid, bool create)
{
	u32 zero = 0;
	struct open_spans *all = bpf_map_lookup_elem(&open_spans, &pid), *none;
	if (all || !create)
		return all;
	none = bpf_map_lookup_elem(&no_spans, &zero);
	if (none)
		bpf_map_update_elem(&open_spans, &pid, none, 0);
	return bpf_map_lookup_elem(&open_spans, &pid);
}

/* Whether all has been done for a span of which only the end decides. */
INLINE bool decide(struct ring *r, struct user_regs *ctx, struct probe *p, u32 id, u64 sp, u64 t, struct task_struct *task)
{
	u32 kind = p->kind;
	bool is_begin = p->begins && control.span_shift;
	struct open_spans *all;
	struct span_counts *c = bpf_map_lookup_elem(&span_counts, &kind);
	if (p->keyed || !c)
		return 0;
	all = spans_of(task->pid, is_begin);
	if (is_begin) {
		c->begun++;
		if (all)
			open_one(ctx, all, p, id, sp, t);
		return 1;
	}
	if (p->begins || !all)
		return 0;
	struct open_span *o = close_one(all, p, sp);
	if (!o) /* its begin was recorded, or found no room */
		return 0;
	c->ended++;
	u64 weight = weight_of(c, t - o->t, t);
	if (weight)
		put_whole(r, o, tid_of(r, task), t, weight);
	o->t = 0;
	return 1;
}

/* The recording ends: those that have not. They weigh nothing, by which they are known. */
INLINE void tell_open_spans(struct ring *r, struct task_struct *task, u64 t)
{
	struct open_spans *all = spans_of(task->pid, 0);
	for (int i = 0; all && i < MAX_OPEN; i++) {
		struct open_span *o = &all->of[i];
		u32 kind = o->kind;
		struct span_counts *c = bpf_map_lookup_elem(&span_counts, &kind);
		if (!o->t || o->t > t || !c)
			continue;
		c->open++;
		put_whole(r, o, tid_of(r, task), t, 0);
	}
}

SEC("uprobe")
int on_span(struct user_regs *ctx)
{
	u32 id = bpf_get_attach_cookie(ctx);
	struct probe *p = bpf_map_lookup_elem(&probes, &id);
	struct task_struct *task = bpf_get_current_task_btf();
	struct ring *r = this_ring();
	u64 sp = ctx->sp;
	if (!p || !r || is_own(task))
		return 0;
	u64 t = bpf_ktime_get_ns();
	if (p->returns) /* the address to which it did is not on the stack any more */
		sp -= 8;
	if (!decide(r, ctx, p, id, sp, t, task))
		put_edge(r, ctx, p, id, tid_of(r, task), sp, t);
	r->spans += p->begins;
	r->span_edges++;
	r->span_ns += bpf_ktime_get_ns() - t;
	return 0;
}

#endif
