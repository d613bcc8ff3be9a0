//! Intervals, blame and findings: pure functions over a trace.
