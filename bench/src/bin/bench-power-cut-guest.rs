//! `bench-power-cut-guest`: what the power-cut test runs inside a guest.
//!
//! - `work DIR` does file operations below `DIR` as standard input asks, one a
//!   line, and answers each when it has returned.
//! - `mounted MODE SOURCE DIR [without-fsync]` mounts `SOURCE` on `DIR` by the
//!   `toll` beside this program first.
//! - `dump DIR` writes every file below `DIR` to standard output.
//! - `without-fsync COMMAND…` runs a command whose calls of fsync(2) and its kin
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
            // Whoever reads it may be gone.
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("failed: {error}\n").as_bytes(),
            );
            ExitCode::FAILURE
        }
    }
}
