//! Directories with unusual names, which toll puts into commands.

use std::process::Command;

use toll_core::spec::Shell;
use toll_core::spec::quoting::put_path;
use toll_testing::{Bench, all_are, has};
use toll_versions::notes;
use toll_versions::repository::Repository;

#[test]
fn a_command_that_cannot_hold_the_path_is_refused_before_anything_runs() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("two words")).unwrap();
    for (line, why) in [
        (["-N", "test -d `{workdir}`"], None),
        (["-i", "test -d `echo {workdir}`"], Some("backquotes")),
        (["-i", "cat <<E\n{workdir}\nE"], Some("here-document")),
        (
            ["-Spython3", "print('{workdir}')"],
            Some("python3 does not quote as sh does"),
        ),
    ] {
        let mut words = vec!["run", "-q", "--work-dir", "two words"];
        words.extend(line);
        let ran = bench.run(&words);
        if let Some(why) = why {
            assert_eq!(ran.code, Some(2), "{ran:#?}");
            has(&ran.stderr, &[why, "--work-dir"]);
        }
    }
}

/// Makes a repository with two commits of a program.
fn repository(bench: &Bench) {
    let ran = bench.shell(
        "git init -q repo && cd repo && git config user.email a@b && git config user.name n && \
         for i in 1 2; do printf '#!/bin/sh\\n: %s\\n' $i >prog; chmod +x prog; git add .; \
         git commit -qm $i; done",
    );
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn a_search_works_in_a_cache_whose_path_has_blanks() {
    let bench = Bench::new();
    repository(&bench);
    let mut toll = bench.toll("bisect --tree repo HEAD~1..HEAD '{tree}/prog'");
    toll.env("XDG_CACHE_HOME", bench.path("the $cache"));
    let ran = toll.output().unwrap();
    assert!(!bench.trials().is_empty(), "{ran:?}");
    all_are("completed", &bench.trials());
}

/// A shell must read the same path that was put in, wherever it is in the line.
#[test]
fn a_shell_reads_each_path_as_it_was_put() {
    let lines = [
        "printf %s {p}",
        "printf %s \"{p}\"",
        "printf %s '{p}'",
        "printf %s \"$(printf %s {p})\"",
        "printf %s \"$(printf %s \"{p}\")\"",
        "x=1 # it's\nprintf %s {p}",
        "(printf %s {p})",
        "printf %s `:`{p}",
        "printf '%s' \"${X}\"{p}",
        "case a in a) printf %s {p};; esac",
        "x='a\"' y=\"b'\"; printf %s {p}",
        "printf %s \\\n{p}",
        "cat <<<x >/dev/null; printf %s {p}",
    ];
    let special: Vec<char> = " '\"\\$`;&|<>()*?[]~#!\n\t=%{}é".chars().collect();
    let mut state = 1_u64;
    for round in 0..200 {
        let mut path = String::from("/");
        for _ in 0..6 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let one = special[(state >> 33) as usize % special.len()];
            // A brace begins a placeholder, and is refused.
            path.push(if one == '{' { 'x' } else { one });
        }
        path.push('/');
        let line = lines[round % lines.len()];
        for (shell, program) in [(Shell::Auto, "sh"), (Shell::Program("bash".into()), "bash")] {
            if program == "sh" && line.contains("<<<") {
                continue;
            }
            let put = put_path(line, "{p}", &path, &shell).unwrap();
            let output = Command::new(program).arg("-c").arg(&put).output().unwrap();
            assert_eq!(
                String::from_utf8_lossy(&output.stdout),
                path,
                "{program}: {put}"
            );
        }
        if !line.contains(['$', '`', ';', '(', '#', '<']) {
            let put = put_path(line, "{p}", &path, &Shell::None).unwrap();
            let words = shlex::split(&put).unwrap();
            assert_eq!(words.last(), Some(&path), "{put}");
        }
    }
}

#[test]
fn a_note_of_others_becomes_no_option_of_git() {
    let bench = Bench::new();
    repository(&bench);
    let note =
        "printf '\\001--output=pwned\\nsubject\\n' | git -C repo notes --ref=toll add -F - HEAD";
    assert_eq!(bench.shell(note).code, Some(0));
    let repository = Repository::open(&bench.path("repo")).unwrap();
    let error = notes::branch(&repository, "HEAD").map(|_| ()).unwrap_err();
    has(&error, &["cannot read the notes"]);
    assert!(repository.version("--output=pwned").is_err());
    assert!(!bench.path("repo/pwned").exists());
}
