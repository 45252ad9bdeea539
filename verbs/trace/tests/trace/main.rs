//! `toll trace` of real programs, with BPF and with strace.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the programs that they test"
)]

mod trace;
mod trace_prices;
mod trace_running;
