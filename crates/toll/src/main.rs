//! The `toll` command; see the library for what it does.

use std::process::ExitCode;

fn main() -> ExitCode {
    toll::cmd::main()
}
