//! tenure-bench
fn main() {}
