//! The program `compete_for_memory [SIZE]`.

fn main() -> std::process::ExitCode {
    memory_access::compete()
}
