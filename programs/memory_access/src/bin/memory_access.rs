//! The program `memory_access [OPTION]... RANDOM MAPPING POPULATE MEMSET COMPETE`.

fn main() -> std::process::ExitCode {
    memory_access::access()
}
