//! `tools/test`, which runs the tests: what it makes of those that fail.

use crate::common::{Bench, Ran, make_executable, source_tree};

/// What a test program prints whose tests failed.
const FAILED: &str = "
failures:

---- {first} stdout ----
Ran {
    code,
}

failures:
{names}

test result: FAILED. 2 passed; {count} failed; 0 ignored; 0 measured; 0 filtered out
";

/// Runs the script with a `cargo` in which the given tests fail among those of the
/// file systems, and fail again if they are run alone.
fn with_failures(names: &[&str], fail_again: bool) -> Ran {
    let bench = Bench::new();
    let listed: String = names.iter().map(|name| format!("    {name}\n")).collect();
    let failed = FAILED
        .replace("{first}", names[0])
        .replace("{names}\n", &listed)
        .replace("{count}", &names.len().to_string());
    let failed = bench.write("failed", &failed).display().to_string();
    let alone = match fail_again {
        true => FAILED
            .replace("{first}", "a::b")
            .replace("{names}", "    a::b")
            .replace("{count}", "1")
            .replace("2 passed", "0 passed"),
        false => "test result: ok. 1 passed; 0 failed; 0 ignored\n".to_owned(),
    };
    let alone = bench.write("alone", &alone).display().to_string();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n*--exact*) cat {alone}; exit {};;\n\
         *file_systems::*--skip*kills::runs*) cat {failed}; exit 101;;\n\
         *) echo 'test result: ok. 10 passed; 0 failed; 0 ignored'; echo 'skipped: no such thing';;\n\
         esac\n",
        i32::from(fail_again)
    );
    let bin = bench.path("bin");
    std::fs::create_dir(&bin).unwrap();
    make_executable(&bench.write("bin/cargo", &script));
    let bin = bin.display();
    bench.shell(&format!(
        "PATH={bin}:$PATH {}/tools/test",
        source_tree().display()
    ))
}

fn last_line(ran: &Ran) -> &str {
    ran.stdout.lines().last().unwrap_or_default()
}

#[test]
fn a_test_that_fails_once_is_told_and_does_not_refuse_a_change() {
    let ran = with_failures(&["a::b"], false);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stdout.contains("\nflaky: a::b\n"), "{ran:#?}");
    assert!(last_line(&ran).contains(" passed, 0 failed, "), "{ran:#?}");
}

#[test]
fn a_test_that_fails_twice_has_failed() {
    let ran = with_failures(&["a::b"], true);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(!ran.stdout.contains("flaky"), "{ran:#?}");
    assert!(last_line(&ran).contains(" passed, 1 failed, "), "{ran:#?}");
}

#[test]
fn many_tests_that_fail_are_not_by_chance() {
    let ran = with_failures(&["a::b", "a::c", "a::d", "e"], false);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(!ran.stdout.contains("--exact"), "{ran:#?}");
    assert!(last_line(&ran).contains(" passed, 4 failed, "), "{ran:#?}");
}
