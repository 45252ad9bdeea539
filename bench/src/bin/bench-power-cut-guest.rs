//! `bench-power-cut-guest`: the part of the power-cut test that runs inside a guest.
//!
//! - `work DIR` does file operations below `DIR`. It reads one request per line from standard
//!   input, and answers each when the operation has returned.
//! - `mounted MODE SOURCE DIR [without-fsync]` first mounts `SOURCE` on `DIR`, with the `toll-mount` in
//!   the directory of this program.
//! - `dump DIR` writes every file below `DIR` to standard output.
//! - `without-fsync COMMAND…` runs a command whose calls of fsync(2) and related system calls
//!   return 0 and do nothing.

use std::process::ExitCode;

use toll_bench::power_cut::{dump, mounted, without_fsync, work};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["work", directory] => work::serve(directory.as_ref()),
        ["mounted", mode, source, at] => mounted::serve(mode, source.as_ref(), at.as_ref(), false),
        ["mounted", mode, source, at, "without-fsync"] => {
            mounted::serve(mode, source.as_ref(), at.as_ref(), true)
        }
        ["dump", directory] => dump::write(directory.as_ref()),
        ["without-fsync", program, ref arguments @ ..] => without_fsync::run(program, arguments),
        _ => return ExitCode::from(2),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The reader may have ended, so errors are ignored.
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("failed: {error}\n").as_bytes(),
            );
            ExitCode::FAILURE
        }
    }
}
