//! `meow`: `cat`, by the fastest right way for its source and sink.

fn main() {}
