//! tenure-settlement
fn main() {}
