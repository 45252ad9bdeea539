//! Namespaces for tests that plant files of other users, or run hostile programs.

use std::process::Command;

/// Set in the process that runs such a test.
const INSIDE: &str = "TOLL_TEST_IS_INSIDE";

/// Gives the namespaces empty directories for temporary files. The shell stays as their first
/// process, which takes over orphans.
const PREPARE: &str =
    "for place in /tmp \"$0\"; do mount -t tmpfs none \"$place\" || exit; done; \"$@\"";

/// Runs the body of a test in namespaces of its own: what it mounts, makes in directories for
/// temporary files and starts goes with them. `F` must be a closure of the test's function.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "it starts the test again, and a skip tells its reason"
)]
pub fn isolated<F: FnOnce()>(body: F) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let unshare = |words: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args([
                "--mount",
                "--mount-proc",
                "--ipc",
                "--pid",
                "--fork",
                "--kill-child",
            ])
            .args(["sh", "-c", PREPARE, env!("CARGO_TARGET_TMPDIR")])
            .args(words)
            .env(INSIDE, "1")
            .env_remove("TMPDIR");
        command.output()
    };
    let reason = match unshare(&["true"]) {
        Ok(ran) if ran.status.success() => None,
        Ok(ran) => Some(String::from_utf8_lossy(&ran.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    };
    if let Some(reason) = reason {
        eprintln!("skipped: hostile tests run in namespaces, which are refused here: {reason}");
        return;
    }
    let (_, path) = std::any::type_name::<F>()
        .split_once("::")
        .expect("it is in a crate");
    let name = path.trim_end_matches("::{{closure}}");
    let own = std::env::current_exe().expect("the test is a program");
    let own = own.to_str().expect("its path is in UTF-8");
    let ran = unshare(&[own, name, "--exact", "--nocapture"]).expect("unshare starts");
    let [told, errors] = [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    eprint!("{errors}");
    assert!(
        ran.status.success() && told.contains("1 passed"),
        "{told}{errors}"
    );
}
