//! `toll observe` as its users see it: the built program, in separate directories.

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

/// Returns whether strace may trace here. Prints the reason if not.
fn can_trace(bench: &Bench) -> bool {
    let ran = bench.run("devices true");
    if ran.code == Some(5) {
        skip(ran.stderr.trim());
        return false;
    }
    true
}
