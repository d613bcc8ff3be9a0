/* Begins and ends of spans: functions that are entered and left, and probes that programs have built in (USDT). User space says
 * by `probes` where their arguments lie, and pairs begins with ends. */
#ifndef HOLDUP_SPANS_H
#define HOLDUP_SPANS_H

#include "recorder.h"

#define MAX_PROBES 128
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
	struct argument arguments[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PROBES);
	__type(key, u32);
	__type(value, struct probe);
} probes SEC(".maps");

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

/* Whether this one is recorded. Of the outermost spans of a thread one in 2^span_shift is, with all that lies within it. Since not
 * each has an end that is seen, where the stack pointer is tells that one is over. */
INLINE bool is_chosen(struct thread *w, struct probe *p, u64 sp)
{
	if (!w || p->keyed)
		return 1;
	if (p->begins && sp >= w->span_sp) {
		u32 mask = (1U << (control.span_shift & 31)) - 1;
		w->span_sp = sp;
		w->span_skips = (bpf_get_prandom_u32() & mask) != 0;
		return !w->span_skips;
	}
	bool chosen = !w->span_skips;
	if (!p->begins && sp >= w->span_sp)
		w->span_sp = w->span_skips = 0;
	return chosen;
}

INLINE void put_text(struct ring *r, u64 at, u64 t, u64 *text)
{
	for (int i = 0; i < TEXT_WORDS / 2; i++)
		side_put(r, at + i, K_MORE, t, text[2 * i], text[2 * i + 1]);
}

INLINE void put_span(struct ring *r, struct user_regs *ctx, struct probe *p, u32 id, u32 tid, u64 sp, u64 t)
{
	u64 at, more = p->more, values[2] = {}, text[2][TEXT_WORDS] = {};
	if (more > 1 + TEXT_WORDS)
		return;
	for (int i = 0; i < 2; i++) {
		if (p->arguments[i].kind == A_NONE)
			continue;
		values[i] = argument_of(ctx, &p->arguments[i]);
		if (p->arguments[i].kind == A_TEXT &&
		    bpf_probe_read_user_str(text[i], sizeof(text[i]), (void *)values[i]) < 0)
			text[i][0] = UNREAD;
	}
	if (!side_reserve(r, 1 + more, &at))
		return;
	side_put(r, at++, K_SPAN, t, (tid & TID_MASK) | (u64)id << BIT_SECOND | more << BIT_PARTS |
		 (u64)control.span_shift << BIT_WEIGHT, sp);
	if (!more)
		return;
	side_put(r, at++, K_MORE, t, values[0], values[1]);
	for (int i = 0; i < 2; i++) {
		if (p->arguments[i].kind != A_TEXT)
			continue;
		put_text(r, at, t, text[i]);
		at += TEXT_WORDS / 2;
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
	if (is_chosen(thread_of(task, 1), p, sp))
		put_span(r, ctx, p, id, tid_of(r, task), sp, t);
	r->spans += p->begins;
	r->span_edges++;
	r->span_ns += bpf_ktime_get_ns() - t;
	return 0;
}

#endif
