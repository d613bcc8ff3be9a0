//! Foreign traces into the tables of holdup.
