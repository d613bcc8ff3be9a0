/* Interrupts: only to name the source of a wake-up. Included by recorder.bpf.c. */
#ifndef HOLDUP_IRQ_H
#define HOLDUP_IRQ_H

#include "recorder.h"

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
