//! `timewrite`: the price of `O_SYNC`.

fn main() {}
