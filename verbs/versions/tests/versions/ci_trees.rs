//! Work trees of two commits: which calls may use them, and what git does in them.

use serde_json::Value;
use toll_testing::isolated;
use toll_testing::{Bench, Running, all_are, has, list, wait_until};

use crate::ci::{GIT, ci, nothing_is_left, repository, shell, sized, takes};

/// Starts `toll ci`, with its messages in a file.
fn start(bench: &Bench, output: &str, words: &[&str], lock: &str) -> Running {
    let mut command = bench.spawnable(ci(bench, words).as_slice());
    command.env("TOLL_RUN_LOCK", bench.path(lock));
    command.stderr(std::fs::File::create(bench.path(output)).unwrap());
    Running(command.spawn().unwrap())
}

#[test]
fn two_commits_are_built_when_no_other_run_measures() {
    let Some(bench) = repository(&sized(20_000), &sized(20_000)) else {
        return;
    };
    let mut one = bench.start_measuring("run -q --no-html -r 999 'sleep 0.05'");
    let words = [
        "--build",
        "sh make.sh",
        "--store",
        "other.sqlite",
        &takes("built"),
    ];
    let output = bench.fails(
        1,
        ci(&bench, &[&words[..], &["--no-wait"]].concat()).as_slice(),
    );
    let holder = format!("process {} (", one.0.id());
    has(&output, &["cannot measure", &holder, "leave out --no-wait"]);
    let mut search = ["bisect", "--tree", "tree", "--no-wait", "main..change"].to_vec();
    search.extend(["--store", "other.sqlite", "cat {tree}/a"]);
    has(&bench.fails(1, search.as_slice()), &[&holder]);
    let mut waiting = start(&bench, "told", &words, "run.lock");
    let named = format!("waiting for {holder}");
    wait_until("it names the process that it waits for", || {
        bench.read("told").contains(&named)
    });
    assert!(!bench.path("cache/toll/versions").exists());
    one.kill();
    assert_eq!(waiting.end().code(), Some(0), "{}", bench.read("told"));
    nothing_is_left(&bench);
}

fn head_of(bench: &Bench, tree: &str) -> String {
    shell(bench, &format!("git -C {tree} log -1 --format=%s"))
}

#[test]
fn calls_that_share_kept_trees_have_a_pair_each_and_only_the_same_commits_are_gone_on_with() {
    let Some(bench) = repository(&sized(20_000), &sized(20_000)) else {
        return;
    };
    let slow = "sh -c 'sleep 0.05; cat {tree}/a'";
    let words = ["--keep-trees", "trees", "-r", "999", slow];
    let measures = |number: usize| {
        wait_until("it measures", || {
            let shown = bench.run(&["show", "--json", &number.to_string()]);
            let document = serde_json::from_str(&shown.stdout).unwrap_or(Value::Null);
            !list(&document["trials"]).is_empty()
        });
    };
    let mut one = start(&bench, "one", &words, "one.lock");
    measures(1);
    // Base and head are swapped, so that sharing the trees would be noticed.
    let mut turned = vec!["--base", "change", "--head", "main", "-r", "1"];
    turned.extend(["--keep-trees", "trees", slow]);
    let mut other = start(&bench, "other", &turned, "other.lock");
    assert_eq!(other.end().code(), Some(0), "{}", bench.read("other"));
    for (tree, subject) in [
        ("0/base", "Before"),
        ("0/head", "After"),
        ("1/base", "After"),
        ("1/head", "Before"),
    ] {
        assert_eq!(head_of(&bench, &format!("trees/{tree}")).trim(), subject);
    }
    let resume = ["run", "-q", "--no-html", "--resume", "1"];
    let output = bench.fails(2, &resume);
    has(&output, &["another toll ci is using its work trees"]);
    one.send(rustix::process::Signal::INT);
    assert_eq!(one.end().code(), Some(130), "{}", bench.read("one"));
    let resumed = bench.run(&[&resume[..], &["--max-runs", "2"]].concat());
    assert_eq!(resumed.code, Some(0), "{resumed:#?}");
    let before = bench.document("1");
    all_are("completed", list(&before["trials"]));
    // A run is not resumed if its trees hold other commits or are gone.
    let mut third = start(&bench, "third", &turned, "one.lock");
    assert_eq!(third.end().code(), Some(0), "{}", bench.read("third"));
    assert_eq!(head_of(&bench, "trees/0/head").trim(), "Before");
    let more = [&resume[..], &["--max-runs", "9"]].concat();
    has(
        &bench.fails(2, &more),
        &["no longer has the commits of this run"],
    );
    shell(&bench, "rm -r trees");
    has(
        &bench.fails(2, &more),
        &["no longer has the commits of this run"],
    );
    assert_eq!(bench.document("1")["trials"], before["trials"]);
}

#[test]
fn an_interrupted_comparison_without_kept_trees_is_not_gone_on_with() {
    let Some(bench) = repository(&sized(20_000), &sized(20_000)) else {
        return;
    };
    let words = ["-r", "999", "sh -c 'sleep 0.05; cat {tree}/a'"];
    let mut running = start(&bench, "told", &words, "run.lock");
    running.until("a trial is kept", || !bench.trials().is_empty());
    running.send(rustix::process::Signal::INT);
    assert_eq!(running.end().code(), Some(130));
    let before = bench.document("1");
    let output = bench.fails(2, "run -q --no-html --resume 1");
    has(&output, &["start the same toll ci again"]);
    assert_eq!(bench.document("1"), before);
    nothing_is_left(&bench);
}

#[test]
fn kept_trees_of_another_user_are_refused() {
    isolated(|| {
        for planted in ["mkdir -p trees/0", "mkdir trees && touch trees/0.lock"] {
            let Some(bench) = repository(&sized(20_000), &sized(20_000)) else {
                return;
            };
            shell(&bench, &format!("{planted} && chown -R 65534 trees/*"));
            let output = bench.fails(
                1,
                ci(&bench, &["--keep-trees", "trees", &takes("a")]).as_slice(),
            );
            has(&output, &["trees/0", "it belongs to "]);
        }
    });
}

#[test]
fn a_repository_of_another_user_is_compared_where_git_accepts_it() {
    isolated(|| {
        let part = format!(
            "{GIT} init -q -b main ../part && echo 20000 >../part/c && {GIT} -C ../part add . \
         && {GIT} -C ../part commit -q -m Part && {GIT} submodule --quiet add ../part part && {}",
            sized(20_000)
        );
        let Some(bench) = repository(&part, &sized(20_000)) else {
            return;
        };
        shell(
            &bench,
            "cd tree && git tag first main && chown -R 65534:65534 .",
        );
        let words = [
            "--submodules",
            "--build",
            "git describe --tags --always && sh make.sh",
        ];
        let words = [&words[..], &["-r", "2", "cat {tree}/built {tree}/part/c"]].concat();
        let output = bench.fails(5, ci(&bench, &words).as_slice());
        has(&output, &["as a git repository", "safe.directory"]);
        shell(
            &bench,
            "mkdir home && for one in tree tree/part; do \
         git config --file home/.gitconfig --add safe.directory $PWD/$one; done",
        );
        bench.ok(ci(&bench, &words).as_slice());
        nothing_is_left_but_the_tag(&bench);
        let mut search = ["bisect", "--tree", "tree", "--build", "git describe --tags"].to_vec();
        search.extend(["main..change", "cat {tree}/a"]);
        bench.ok(search.as_slice());
    });
}

fn nothing_is_left_but_the_tag(bench: &Bench) {
    let output = shell(
        bench,
        "git -C tree worktree list && ls -A cache/toll/versions",
    );
    assert_eq!(output.lines().count(), 1, "{output}");
}

/// Settings that make git run programs, or print more than by default.
const SETTINGS: &str = "
mkdir -p home templates/hooks && cd tree && here=$PWD/..
for name in post-checkout reference-transaction post-index-change; do
    printf '#!/bin/sh\\ntouch %s/ran\\n' $here >../templates/hooks/$name
done
printf '#!/bin/sh\\ntouch %s/ran\\n' $here >../monitor
cat >../gpg <<'END'
#!/bin/sh
cat >/dev/null
for word; do case $word in --verify) echo 'gpg: Good signature' >&2; exit 0; esac; done
printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'
echo '[GNUPG:] SIG_CREATED ' >&2
END
chmod +x ../templates/hooks/* ../monitor ../gpg
git -c user.name=A -c user.email=a@example.org -c gpg.program=$PWD/../gpg commit -q -S --amend --allow-empty -m Signed
git log -1 --format=%H --show-signature >/dev/null
set=\"git config --file ../home/.gitconfig\"
$set core.hooksPath $here/templates/hooks; $set init.templateDir $here/templates
$set core.fsmonitor $here/monitor; $set gpg.program $here/gpg
$set log.showSignature true; $set color.ui always; $set diff.relative true
$set submodule.recurse true; $set init.defaultRefFormat reftable; $set status.branch true
rm -f $here/ran
";

#[test]
fn settings_of_git_run_nothing_in_the_trees_and_change_nothing_that_is_read() {
    let Some(bench) = repository(&sized(20_000), &sized(20_000)) else {
        return;
    };
    bench.write("settings", SETTINGS);
    shell(&bench, "bash -e settings");
    let ran = bench.ok(ci(
        &bench,
        &["--build", "sh make.sh", "-r", "2", &takes("built")],
    )
    .as_slice());
    assert!(!bench.path("ran").exists(), "{ran:#?}");
    assert!(!ran.stdout.contains("gpg:"), "{ran:#?}");
    let mut search = ["bisect", "--tree", "tree", "main..change", "cat {tree}/a"].to_vec();
    search.extend(["--build", "true"]);
    let found = bench.ok(search.as_slice());
    has(&found.stdout, &["no culprit"]);
    assert!(!bench.path("ran").exists());
    // A change in the work tree is still noticed.
    shell(&bench, "echo 1 >tree/a");
    let output = bench.fails(2, ci(&bench, &[&takes("a")]).as_slice());
    has(&output, &["differs from it in 1 file (a)"]);
}
