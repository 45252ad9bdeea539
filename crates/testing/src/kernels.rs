//! Kernels for guests, in the user's own cache: building one takes minutes.

use std::process::Command;
use std::time::Duration;

use crate::{TOLL, full_or, output_within};

/// Longest time for building one kernel, on a slow machine.
pub const BUILD_PATIENCE: Duration = Duration::from_secs(50 * 60);

/// Returns the kernel of tests that need no patch. This is Debian's, which needs no compilation, or
/// in full runs the kernel of the experiments.
pub fn any_kernel() -> &'static str {
    full_or("stock", "toll")
}

/// Runs `toll kernel` with the user's cache. Returns its output, or the reason why it cannot build.
pub fn toll_kernel(arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(TOLL);
    command.arg("kernel").args(arguments);
    let output = output_within(&mut command, BUILD_PATIENCE);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => Ok(String::from_utf8(output.stdout).expect("the output is text")),
        Some(5) => Err(errors.lines().last().unwrap_or_default().to_owned()),
        code => panic!("{arguments:?} ended with {code:?}: {errors}"),
    }
}

/// Builds a kernel, or finds it in the cache; `Err` is the reason why a test cannot have it.
///
/// # Panics
/// If `make test` would have to compile it.
pub fn build_kernel(name: &str) -> Result<(), String> {
    let profile = std::env::var_os("NEXTEST_PROFILE").unwrap_or_default();
    assert!(
        name == "stock" || profile != "default",
        "make test compiles no kernel: boot any_kernel(), or run this test by --profile rest"
    );
    toll_kernel(&["build", name]).map(drop)
}
