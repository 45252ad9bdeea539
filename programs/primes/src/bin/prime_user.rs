//! The program `prime_user [OPTION]... [N]...`.

fn main() -> std::process::ExitCode {
    primes::run(primes::Program::User)
}
