//! Tests whether a file can change again without a later timestamp, by the server's
//! clock, which may be years apart from this host's clock.

use toll_mount::source::{Source, Timespec};

use crate::sftp::common::{Bench, READ_WRITE, open};
use crate::sftp::scripted::{kind, source, stat_at, string};

fn time(seconds: u32) -> Timespec {
    Timespec {
        tv_sec: i64::from(seconds),
        tv_nsec: 0,
    }
}

#[test]
fn a_file_that_was_just_made_says_what_time_it_is_at_the_server() {
    for made in [1000, u32::MAX - 1000] {
        let (source, _) = source(move |request| match request.kind {
            kind::OPEN => request.answer(kind::HANDLE, &string(b"h")),
            kind::LSTAT => request.answer(kind::ATTRS, &stat_at(made)),
            _ => None,
        });
        assert!(!source.is_settled(time(0)), "the time is not known");
        let file = open(&source, "f", READ_WRITE).unwrap();
        assert!(source.is_settled(time(made - 2)));
        assert!(!source.is_settled(time(made + 1000)));
        // The time passes.
        while !source.is_settled(time(made)) {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        drop(file);
    }
}

#[test]
fn a_linux_server_says_what_time_it_is_without_a_change() {
    let Some(bench) = Bench::start() else { return };
    let source = bench.connect();
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let at = |seconds| Timespec {
        tv_sec: now.tv_sec + seconds,
        tv_nsec: 0,
    };
    assert!(source.is_settled(at(-10)));
    assert!(!source.is_settled(at(100)));
}
