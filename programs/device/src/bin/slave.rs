//! The program `slave FILE… METHOD ADDRESS`.

fn main() -> std::process::ExitCode {
    device::slave()
}
