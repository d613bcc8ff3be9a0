//! Addresses to functions, source lines, inline frames and instructions.
