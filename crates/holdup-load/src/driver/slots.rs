//! A fixed number of connections that many calls share, each in its turn.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::{ConnectOptions, DriverError};

/// A connection that knows when it is lost.
pub(super) trait Live {
    /// Whether another call can be made over it.
    fn is_live(&self) -> bool;
}

/// The connections of one thread. A lost one is opened again by the next call that comes to it.
pub(super) struct Slots<C> {
    slots: Vec<Slot<C>>,
    next: Cell<usize>,
    patience: Duration,
    address: String,
}

struct Slot<C> {
    connection: RefCell<Option<Rc<C>>>,
    /// Held while it is opened, so that calls that come meanwhile wait for that one.
    opening: Mutex<()>,
}

impl<C: Live> Slots<C> {
    /// As many as the options say, all closed yet.
    pub(super) fn new(options: &ConnectOptions) -> Slots<C> {
        let slot = || Slot { connection: RefCell::new(None), opening: Mutex::new(()) };
        Slots {
            slots: std::iter::repeat_with(slot).take(options.connections).collect(),
            next: Cell::new(0),
            patience: options.connect_timeout,
            address: options.address.to_string(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The next connection in turn; `open` is told the number of the one to open.
    pub(super) async fn get(&self, open: impl AsyncFn(usize) -> Result<C, DriverError>) -> Result<Rc<C>, DriverError> {
        let index = self.next.get();
        self.next.set((index + 1) % self.slots.len());
        let slot = &self.slots[index];
        if let Some(live) = slot.live() {
            return Ok(live);
        }
        let _opening = slot.opening.lock().await;
        if let Some(live) = slot.live() {
            return Ok(live);
        }
        let opened = tokio::time::timeout(self.patience, open(index)).await.map_err(|_| {
            let seconds = self.patience.as_secs_f64();
            DriverError::transient(format!("{} did not take a connection within {seconds} s.", self.address))
        })??;
        let opened = Rc::new(opened);
        *slot.connection.borrow_mut() = Some(Rc::clone(&opened));
        Ok(opened)
    }
}

impl<C: Live> Slot<C> {
    fn live(&self) -> Option<Rc<C>> {
        self.connection.borrow().as_ref().filter(|connection| connection.is_live()).cloned()
    }
}
