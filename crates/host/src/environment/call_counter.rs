//! Counting system calls in the kernel, by `toll-callcount`.

pub use toll_callcount::{Counted, Counter, Marker, Scope};
