//! Names from repositories, schedulers, nodes, servers, sessions and traced commands.

use std::path::PathBuf;
use std::process::Command;

use toll_testing::isolated;
use toll_testing::{Bench, make_executable};

use super::checks::{check_markdown, check_page, markup};
use super::command_line::repository;
use super::text::{file_name, word};
use super::{check_ran, entries, feed, ok, place, ran};

/// Puts a program before all others of its name in PATH.
fn put_program(bench: &Bench, name: &str, script: &str) {
    let _ = std::fs::create_dir(bench.path("bin"));
    make_executable(&bench.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n")));
}

/// Runs git in the repository. Returns whether it succeeds.
fn git(bench: &Bench, words: &[&str]) -> bool {
    let mut git = Command::new("git");
    git.arg("-C").arg(bench.path("repo")).args(words);
    git.output().unwrap().status.success()
}

#[test]
fn commits_and_branches_stay_texts() {
    isolated(|| {
        let bench = place();
        repository(&bench);
        let words = [
            "ci",
            "-q",
            "-r",
            "2",
            "--tree",
            "repo",
            "--html",
            "page.html",
        ];
        let more = [
            "--export-markdown",
            "table.md",
            "--fail-on",
            "regression=1000%",
        ];
        let compare = |head: &str| {
            let head = format!("--head={head}");
            ran(
                &bench,
                &[&words[..], &more, &["--base=HEAD~1", &head, "{tree}/prog"]].concat(),
            )
        };
        compare("HEAD");
        let known = markup(&bench.read("page.html"));
        feed("commit", 6, &bench, |text, _| {
            let (subject, author) = (word(text), format!("--author={} <a@b>", file_name(text)));
            let commit = [
                "commit",
                "-q",
                "--allow-empty",
                "--cleanup=verbatim",
                "-m",
                &subject,
            ];
            if !git(&bench, &[&commit[..], &[&author]].concat()) {
                assert!(git(&bench, &commit[..]) || subject.trim().is_empty());
            }
            let branch = file_name(text).replace(' ', "-");
            let is_branch = git(&bench, &["branch", "--", &branch]);
            compare(if is_branch { &branch } else { "HEAD" });
            check_page(&bench.read("page.html"), &known);
            check_markdown(&bench.read("table.md"));
            ran(
                &bench,
                &[
                    "history",
                    "record",
                    "--tree=repo",
                    "--file=points.json",
                    "last",
                ],
            );
            let branch = format!("--branch={branch}");
            ran(
                &bench,
                &[
                    "history",
                    "show",
                    "--tree=repo",
                    "--file=points.json",
                    &branch,
                ],
            );
        });
    });
}

#[test]
fn what_a_scheduler_says_stays_a_text() {
    isolated(|| {
        let bench = place();
        let printed = |name: &str| format!("cat {}", bench.path(name).display());
        put_program(&bench, "sinfo", &printed("nodes"));
        put_program(&bench, "squeue", &printed("tasks"));
        put_program(&bench, "sacct", &printed("tasks"));
        put_program(&bench, "sbatch", "echo 7");
        put_program(&bench, "scontrol", "cat >>asked");
        let toll = |line: &str| {
            let ran = bench.shell(&format!("PATH=$PWD/bin:$PATH toll {line}"));
            check_ran(&ran);
            ran
        };
        feed("scheduler", 6, &bench, |text, _| {
            let _ = std::fs::remove_dir_all(bench.path("fleet"));
            bench.write(
                "nodes",
                &format!("n1|idle|batch*|none\n{text}|idle|batch*|{text}\n"),
            );
            bench.write("tasks", &format!("7_0|FAILED|{text}\n7|0|FAILED|{text}\n"));
            bench.write("asked", "");
            toll("fleet submit cat --slurm --dry-run --directory fleet");
            toll("fleet submit cat --slurm --directory fleet");
            for line in bench.read("asked").lines() {
                assert_eq!(line.split_whitespace().count(), 3, "{line:?}");
            }
            for verb in ["status", "status --json", "retry", "fetch"] {
                toll(&format!("fleet {verb} fleet"));
            }
        });
    });
}

#[test]
fn nodes_and_their_directories_stay_texts() {
    isolated(|| {
        let bench = place();
        bench.write(
            "true.toml",
            "format = 1\nname = 'true'\n[workload]\nkind = 'command'\ncommand = 'true'\n",
        );
        feed("node", 4, &bench, |text, _| {
            let work = bench
                .path(&format!("w{}", file_name(text)))
                .display()
                .to_string();
            let words = [
                "fleet",
                "submit",
                "--script",
                "--directory",
                "fleet",
                "--work-dir",
            ];
            ok(
                &bench,
                &[&words[..], &[&work, "true.toml", "--", "-r", "2"]].concat(),
            );
            let mut script = bench.spawnable_program("sh", "fleet/measure.sh");
            script.env("SLURMD_NODENAME", word(text));
            let status = script.status().unwrap();
            assert!(status.code().is_some_and(|code| code <= 6), "{status}");
            // A name that leads elsewhere, or that is too long for a directory, is refused.
            let measured: Vec<PathBuf> = entries(&bench.path("fleet/nodes"))
                .map(|one| one.path())
                .collect();
            let is_refused = [Some(1), Some(2)].contains(&status.code());
            assert!(measured.len() == 1 || is_refused, "{status}: {measured:?}");
            for verb in ["status", "fetch", "report"] {
                let place = if verb == "report" {
                    "fleet/tables"
                } else {
                    "fleet"
                };
                ran(&bench, &["fleet", verb, place]);
            }
            std::fs::remove_dir_all(bench.path("fleet")).unwrap();
        });
    });
}

#[test]
fn names_of_servers_reach_ssh_as_one_word() {
    isolated(|| {
        let bench = place();
        std::fs::create_dir(bench.path("at")).unwrap();
        // This ssh obeys an option in the place of the host.
        put_program(
            &bench,
            "ssh",
            "for word; do case $word in --) break;; -*OBEYED* | -*canary*) touch OBEYED;; esac; done\n\
             exit 255",
        );
        feed("server", 6, &bench, |text, _| {
            let word = word(text);
            for source in [
                format!("{word}:d"),
                format!("host:{word}"),
                format!("{word}@host:"),
            ] {
                bench.write("source", &source);
                let ran = bench.shell(
                    "PATH=$PWD/bin:$PATH timeout 60 toll mount -- \"$(cat source; echo .)\" at; \
                     code=$?; mountpoint -q at && umount at; exit $code",
                );
                check_ran(&ran);
            }
        });
    });
}

#[test]
fn sessions_and_names_of_opened_files_stay_texts() {
    isolated(|| {
        let bench = place();
        let header = "Script started on X [TERM=\"xterm\" COLUMNS=\"80\" LINES=\"24\"]\n";
        feed("session", 6, &bench, |text, _| {
            bench.write(
                "session",
                &format!("{header}{text}\r\n\u{1b}]0;{text}\u{7}x\r\n"),
            );
            for words in ["--titles", "--json", ""] {
                ran(&bench, &format!("observe session {words} session"));
            }
            let name = format!("./{}", file_name(text));
            bench.write(&name, "12345");
            for with in ["--with=strace", "--with=bpf"] {
                ran(&bench, &["trace", "--no-prices", with, "cat", &name]);
                ran(
                    &bench,
                    &[
                        "trace",
                        "--no-prices",
                        "--calls",
                        "--json",
                        with,
                        "cat",
                        &name,
                    ],
                );
            }
            ran(&bench, &["observe", "devices", "cat", &name]);
            std::fs::remove_file(bench.path(&name)).unwrap();
        });
    });
}
