/* Interrupts: only to name the source of a wake-up. Included by recorder.bpf.c. */
#ifndef HOLDUP_IRQ_H
#define HOLDUP_IRQ_H

#include "recorder.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct timer_list {
	void (*function)(struct timer_list *);
};

#pragma clang attribute pop

SEC("tp_btf/irq_handler_entry")
int on_irq_entry(u64 *ctx)
{
	struct ring *r = this_ring();
	if (r)
		r->irq = (u32)ctx[0] + 1;
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int on_irq_exit(u64 *ctx)
{
	struct ring *r = this_ring();
	if (r)
		r->irq = 0;
	return 0;
}

SEC("tp_btf/softirq_entry")
int on_softirq_entry(u64 *ctx)
{
	struct ring *r = this_ring();
	if (r)
		r->softirq = (u32)ctx[0] + 1;
	return 0;
}

SEC("tp_btf/softirq_exit")
int on_softirq_exit(u64 *ctx)
{
	struct ring *r = this_ring();
	if (r)
		r->softirq = 0;
	return 0;
}

/* An acknowledgement that was held back is sent: what waited for it at the other end, on this machine, comes at once. */
SEC("tp_btf/timer_expire_entry")
int on_wheel_timer(u64 *ctx)
{
	struct timer_list *timer = (void *)ctx[0];
	if ((u64)timer->function != cfg.late_ack)
		return 0;
	struct ring *r = this_ring();
	if (r)
		r->acknowledged = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/hrtimer_expire_entry")
int on_timer_entry(u64 *ctx)
{
	struct ring *r = this_ring();
	if (r)
		r->timer = r->softirq == 9 ? 1 : 2;
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int on_timer_exit(u64 *ctx)
{
	struct ring *r = this_ring();
	if (r)
		r->timer = 0;
	return 0;
}

#endif
