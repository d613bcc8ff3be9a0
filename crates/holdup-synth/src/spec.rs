//! What to make, and what is planted in it.

/// The largest number of CPUs.
pub const MOST_CPUS: u16 = 512;
/// The largest number of threads.
pub const MOST_THREADS: u32 = 100_000;
/// The largest number of switches and wake-ups.
pub const MOST_EVENTS: u64 = 1_000_000_000;

/// Which program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A server: requests of several kinds come through dispatchers to a pool. Planted: a thread that holds a lock while
    /// it scans, again and again, so that in the end all requests queue for it.
    Lock,
    /// All threads get their work from one dispatcher, which works, waits for the disk, and waits for clients.
    Hub,
    /// All threads pass one lock to each other in the order in which they came.
    Chain,
    /// Servers that mostly wait for requests from outside: nobody is to blame.
    Pool,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Shape; 4] = [Shape::Lock, Shape::Hub, Shape::Chain, Shape::Pool];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Shape::Lock => "lock",
            Shape::Hub => "hub",
            Shape::Chain => "chain",
            Shape::Pool => "pool",
        }
    }

    /// The shape of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// What to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Which program runs.
    pub shape: Shape,
    /// CPUs, 1 to [`MOST_CPUS`].
    pub cpus: u16,
    /// Threads that exist from the beginning, 8 to [`MOST_THREADS`].
    pub threads: u32,
    /// Switches and wake-ups together, up to [`MOST_EVENTS`].
    pub events: u64,
    /// Another seed, another trace of the same kind.
    pub seed: u64,
    /// How often a CPU's records are lost for a while.
    pub losses: u32,
}

/// What is planted, and so what an explanation has to find first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Truth {
    /// The kind of finding; none where nobody is to blame.
    pub kind: Option<Planted>,
    /// The culprit's thread; empty where it is one of many alike.
    pub thread: String,
    /// Its tid; 0 for none.
    pub tid: u32,
    /// Its process.
    pub process: String,
    /// Its pid; 0 for none.
    pub pid: u32,
    /// The function to mend.
    pub function: String,
    /// The lock's address.
    pub lock: Option<u64>,
    /// For how many nanoseconds the culprit kept the others waiting: it held the lock, or ran.
    pub held_ns: u64,
    /// In how many stretches.
    pub phases: u64,
}

/// Kinds of findings that are planted, by the names that an explanation gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// A lock that is handed from thread to thread.
    Convoy,
    /// A lock that one thread holds for long.
    LockHeld,
    /// A thread for which the others wait.
    Serial,
}

impl Planted {
    /// The name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Planted::Convoy => "convoy",
            Planted::LockHeld => "lock-held",
            Planted::Serial => "serial",
        }
    }
}
