//! The program `prime_sys_test [OPTION]... [N]...`.

fn main() -> std::process::ExitCode {
    primes::run(primes::Program::SystemCall)
}
