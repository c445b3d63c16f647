//! Empty for now.
fn main() {}
