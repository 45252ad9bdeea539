//! `toll observe` as its users meet it: the built program in directories of its own.

mod devices;
mod dhcp;
mod interface;
mod session;

use toll_testing::{Bench, skip};

/// The program under test.
const OBSERVE: &str = env!("CARGO_BIN_EXE_toll-observe");

fn bench() -> Bench {
    Bench::for_program(OBSERVE)
}

/// Whether strace may trace here; tells why not.
fn can_trace(bench: &Bench) -> bool {
    let ran = bench.run("devices true");
    if ran.code == Some(5) {
        skip(ran.stderr.trim());
        return false;
    }
    true
}
