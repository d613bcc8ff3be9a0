//! What holds your cores up?
fn main() {}
