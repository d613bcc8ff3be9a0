//! The built-in program with a known culprit.

pub mod program;
