//! Namespaces for tests that plant files of other users or run hostile programs.

use std::process::Command;

/// Environment variable that is set in the process that runs a test in namespaces.
const INSIDE: &str = "TOLL_TEST_IS_INSIDE";

/// Mounts empty directories for temporary files in the namespaces. The shell stays as their first
/// process, which adopts orphans.
const PREPARE: &str =
    "for place in /tmp \"$0\"; do mount -t tmpfs none \"$place\" || exit; done; \"$@\"";

/// Runs the body of a test in new namespaces. Its mounts, its temporary files and its processes
/// vanish with them. `F` must be a closure of the test's function.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the function starts the test again, and prints why the test skips"
)]
pub fn isolated<F: FnOnce()>(body: F) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let place = std::path::Path::new(env!("TOLL_TARGET")).join("tmp");
    std::fs::create_dir_all(&place).expect("a directory can be made in the build directory");
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
            .args(["sh", "-c", PREPARE])
            .arg(&place)
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
        eprintln!("skipped: hostile tests need namespaces, which are refused here: {reason}");
        return;
    }
    let (_, path) = std::any::type_name::<F>()
        .split_once("::")
        .expect("the type name starts with a crate");
    let name = path.trim_end_matches("::{{closure}}");
    let own = std::env::current_exe().expect("the test program has a path");
    let own = own.to_str().expect("the test program's path is UTF-8");
    let ran = unshare(&[own, name, "--exact", "--nocapture"]).expect("unshare starts");
    let [printed, errors] = [&ran.stdout, &ran.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    eprint!("{errors}");
    assert!(
        ran.status.success() && printed.contains("1 passed"),
        "{printed}{errors}"
    );
}
