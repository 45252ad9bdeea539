//! The program `master FILE… METHOD`.

fn main() -> std::process::ExitCode {
    device::master()
}
