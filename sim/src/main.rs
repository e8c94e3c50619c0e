//! The one door to every proof of Tenure.

fn main() {}
