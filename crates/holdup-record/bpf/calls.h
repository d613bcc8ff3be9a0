/* The system call that a thread is in, on x86-64. */
#ifndef HOLDUP_CALLS_H
#define HOLDUP_CALLS_H

#include "recorder.h"

#define POLL 7
#define PPOLL 271
#define SELECT 23
#define PSELECT 270
#define NANOSLEEP 35

/* Of programs of 32 bits, whose calls have other numbers. */
#define COMPAT_CS 0x23

/* The system call of a thread; -1 for none. One that is to look at no file sleeps, as programs did when there was nothing better. */
INLINE s64 call_of(struct pt_regs *regs)
{
	if (!regs || (u16)regs->cs == COMPAT_CS)
		return -1;
	s64 call = regs->orig_ax;
	bool of_select = call == SELECT || call == PSELECT, of_poll = call == POLL || call == PPOLL;
	return (of_select && !(u32)regs->di) || (of_poll && !(u32)regs->si) ? NANOSLEEP : call;
}

#endif
