//! The `toll` command. The library describes what it does.

use std::process::ExitCode;

fn main() -> ExitCode {
    toll::cmd::main()
}
