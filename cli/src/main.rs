//! tenure-cli
fn main() {}
