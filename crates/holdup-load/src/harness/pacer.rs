//! Waits until a call is due, to the microsecond.
//!
//! The runtime's own timers tick in milliseconds, which would show as response time. One timer of the kernel for each thread
//! does better: calls become due in order, so only the first of a queue needs it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Notify;

/// The queue of one thread's slots that wait for their time.
pub(super) struct Pacer {
    timer: AsyncFd<Timer>,
    waiting: RefCell<VecDeque<(Instant, Waker)>>,
    /// Somebody waits, and nobody did before.
    changed: Notify,
}

/// A kernel timer as the runtime wants it.
struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Pacer {
    /// Call it inside the thread's runtime.
    // What replaces it is unsafe, for types that answer with another descriptor than their own; `Timer` does not.
    #[allow(deprecated)]
    pub(super) fn new() -> io::Result<Pacer> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        Ok(Pacer {
            timer: AsyncFd::with_interest(Timer(timer), Interest::READABLE)?,
            waiting: RefCell::default(),
            changed: Notify::new(),
        })
    }

    /// Waits until `due`, or until [`Pacer::wake_all`].
    pub(super) async fn until(&self, due: Instant) {
        let mut is_first = true;
        poll_fn(|context| {
            if !is_first || Instant::now() >= due {
                return Poll::Ready(());
            }
            is_first = false;
            let mut waiting = self.waiting.borrow_mut();
            if waiting.is_empty() {
                self.changed.notify_one();
            }
            waiting.push_back((due, context.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    /// Ends all waits now: the run is over.
    pub(super) fn wake_all(&self) {
        for (_, waker) in self.waiting.borrow_mut().drain(..) {
            waker.wake();
        }
    }

    /// Wakes whoever is due. Never returns: the thread drops it.
    pub(super) async fn serve(&self) -> io::Result<()> {
        loop {
            let Some(due) = self.wake_due() else {
                self.changed.notified().await;
                continue;
            };
            self.sleep_until(due).await?;
        }
    }

    /// Wakes what is due; the time of the next one.
    fn wake_due(&self) -> Option<Instant> {
        let mut waiting = self.waiting.borrow_mut();
        let now = Instant::now();
        while waiting.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, waker)) = waiting.pop_front() {
                waker.wake();
            }
        }
        waiting.front().map(|(due, _)| *due)
    }

    async fn sleep_until(&self, due: Instant) -> io::Result<()> {
        // A timer of zero is no timer at all.
        let left = due.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        self.timer.get_ref().0.set(Expiration::OneShot(left.into()), TimerSetTimeFlags::empty())?;
        loop {
            let mut ready = self.timer.readable().await?;
            match ready.try_io(|timer| timer.get_ref().0.wait().map_err(io::Error::from)) {
                Ok(done) => return done,
                Err(_would_block) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::rc::Rc;

    use super::*;

    /// Waits until 300 µs after the slot before it, or after now if that is over. A slot that comes too late to wait, as on a
    /// busy machine, has no place in the queue and takes a later time.
    async fn in_the_queue(pacer: &Pacer, last: &Cell<Instant>) {
        loop {
            let due = last.get().max(Instant::now()) + Duration::from_micros(300);
            let mut wait = pin!(pacer.until(due));
            let mut waited = false;
            poll_fn(|context| {
                let polled = wait.as_mut().poll(context);
                if polled.is_pending() {
                    waited = true;
                    last.set(due);
                }
                polled
            })
            .await;
            if waited {
                assert!(Instant::now() >= due, "too early");
                return;
            }
        }
    }

    #[test]
    fn slots_wake_in_order_and_never_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let local = tokio::task::LocalSet::new();
        let order = Rc::new(RefCell::new(Vec::new()));
        local.block_on(&runtime, async {
            let pacer = Rc::new(Pacer::new().unwrap());
            let server = Rc::clone(&pacer);
            tokio::task::spawn_local(async move { server.serve().await });
            let last = Rc::new(Cell::new(Instant::now()));
            let slots: Vec<_> = (0..20_u32)
                .map(|k| {
                    let (pacer, order, last) = (Rc::clone(&pacer), Rc::clone(&order), Rc::clone(&last));
                    tokio::task::spawn_local(async move {
                        in_the_queue(&pacer, &last).await;
                        order.borrow_mut().push(k);
                    })
                })
                .collect();
            for slot in slots {
                slot.await.unwrap();
            }
        });
        assert_eq!(*order.borrow(), (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn all_waits_end_when_the_run_does() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let pacer = Rc::new(Pacer::new().unwrap());
            let slot = Rc::clone(&pacer);
            let far = tokio::task::spawn_local(async move {
                slot.until(Instant::now() + Duration::from_secs(3600)).await;
            });
            tokio::task::yield_now().await;
            pacer.wake_all();
            far.await.unwrap();
        });
    }
}
