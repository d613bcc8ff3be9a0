//! What is to be known of an interpreter: where it keeps its frames, and what a function is.

/// Where a process keeps its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In lists of the interpreter's own.
    Listed(Listed),
    /// On the machine's stack, as those of other code: compiled functions' look the same.
    OnStack(OnStack),
}

/// Frames on the machine's stack that lead to their functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnStack {
    /// In a function: what it shares with others of the same text, in bytes.
    pub shared: u32,
    /// The type that those have.
    pub shared_type: u16,
}

/// Frames in lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Address of what leads to the frames.
    pub runtime: u64,
    /// First address of the function that evaluates frames, and the first one behind it.
    pub evaluation: (u64, u64),
    /// The way from there.
    pub frames: Frames,
}

/// How frames tell where a call of the evaluation began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entries {
    /// Each has a call of its own: Python up to 3.10.
    Each = 0,
    /// The frame that began it is flagged: Python 3.11, PHP.
    Flagged = 1,
    /// A frame of another owner lies before it: Python 3.12 and later.
    Shimmed = 2,
    /// The one that began it is flagged where it points to: Ruby.
    Pointed = 3,
}

/// The way from an interpreter's [`runtime`](Listed::runtime) to a thread's frames: offsets in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    /// There: the first interpreter.
    pub interpreters: u32,
    /// In an interpreter: the next one. `None` if there is but one.
    pub next_interpreter: Option<u32>,
    /// In an interpreter: its first thread.
    pub threads: u32,
    /// In a thread: the next one. A list may end where it began: so many are looked at and no more.
    pub next_thread: u32,
    /// In a thread: what `pthread_self` gives there.
    pub thread_id: u32,
    /// In a thread: what has that, if not the thread itself.
    pub id_through: Option<u32>,
    /// In a thread: the innermost frame, or what has it.
    pub current: u32,
    /// There: the frame. `None` if the thread has it itself.
    pub through: Option<u32>,
    /// In a frame: its caller.
    pub previous: u32,
    /// Bytes from a frame to its caller, if they lie one behind the other: in what `through` leads to are the begin of that
    /// stack and, behind it, its length in words. 0 if `previous` tells.
    pub stride: u32,
    /// In a frame: its function.
    pub code: u32,
    /// In a frame: the address of the instruction that runs; 0 if that is not to be read.
    pub instruction: u32,
    /// In a function: where its instructions begin.
    pub bytecode: u32,
    /// In a frame: the byte that tells of `entries`.
    pub entry: u32,
    /// How they tell where a call of the evaluation began.
    pub entries: Entries,
    /// Bytes of a frame that are to be read, at most 127.
    pub size: u32,
    /// The bits of that byte that do, if the first one is flagged.
    pub flag: u8,
    /// It runs in the process's first thread alone: `runtime` is what has the frames there.
    pub single: bool,
}

/// A function that is interpreted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name, with that of its class where that is known. Any characters.
    pub name: String,
    /// Its file. Any characters.
    pub file: String,
    /// The line that runs, or else the one in which it begins; 0 for unknown.
    pub line: u32,
}

/// What a function's place holds: where its texts are tells whether another one lies there by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Head {
    pub(crate) name: u64,
    /// Its class; 0 for none.
    pub(crate) class: u64,
    /// 0 if it is compiled into the program.
    pub(crate) file: u64,
    /// In which it begins.
    pub(crate) line: u32,
    /// What tells the lines of its instructions; 0 for nothing.
    pub(crate) lines: u64,
}

impl Head {
    pub(crate) fn is_evaluated(&self) -> bool {
        self.file != 0
    }
}

/// Longest name that is kept, in characters; longer ones end in an ellipsis.
pub(crate) const NAME: usize = 200;
/// The same of a path.
pub(crate) const PATH: usize = 1000;
