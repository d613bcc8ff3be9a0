//! What each tool answers: a page of `holdup-analysis`, shortened to what the next question needs.

pub(crate) mod code;
pub(crate) mod explain;
pub(crate) mod folder;
pub(crate) mod spans;
pub(crate) mod table;
