//! Side-by-side measurements of toll's programs with their peers.
