//! Several threads and processes on one mount: every call returns what it
//! returns on ext4, and the content in the end is the same.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::mounts::common::{Mounted, SETTINGS, close, each, starting, without_new_processes};
use crate::mounts::script::{Content, Script, directory, tree};

const THREADS: u64 = 4;
const EXT4_MAGIC: i64 = 0xef53;

/// Runs a script in its own directory and in the common one. Also writes to a file that
/// another thread renames, each write followed by a close. No name is used by two threads,
/// so every result is determined.
fn run_script(mut script: Script, moved: File, operations: usize) -> Vec<(String, Content)> {
    let mut results = Vec::new();
    for _ in 0..operations {
        if script.random.below(6) == 0 {
            let length = 1 + script.random.below(3 << 14);
            let bytes = script.random.bytes(length);
            moved
                .write_all_at(&bytes, script.random.below(1 << 16) as u64)
                .unwrap();
            close(moved.try_clone().unwrap()).unwrap();
        }
        let (outcome, content) = script.step();
        results.push((outcome, Content(content)));
    }
    for file in script.open {
        close(file).unwrap();
    }
    close(moved).unwrap();
    results
}

/// Renames the common directory and each thread's `moved` file and back, while the threads
/// use them, until `is_over`. Returns the number of rounds.
fn rename_all(base: &Path, is_over: &AtomicBool) -> u64 {
    let files = (0..THREADS).map(|number| format!("moved{number}"));
    let names: Vec<_> = files.chain(["common".to_owned()]).collect();
    let mut rounds = 0;
    while !is_over.load(Ordering::Relaxed) {
        rounds += 1;
        for name in &names {
            let (old, new) = (base.join(name), base.join(format!("{name}-renamed")));
            fs::rename(&old, &new).unwrap();
            fs::rename(&new, &old).unwrap();
        }
    }
    rounds
}

fn run(base: &Path, operations: usize) -> Vec<Vec<(String, Content)>> {
    let common = base.join("common");
    fs::create_dir(&common).unwrap();
    let prepared = (0..THREADS).map(|number| {
        let own = base.join(format!("own{number}"));
        fs::create_dir(&own).unwrap();
        let moved = File::create_new(base.join(format!("moved{number}"))).unwrap();
        let directories = vec![directory(&own), directory(&common)];
        (Script::new(number, directories, number), moved)
    });
    let prepared: Vec<_> = prepared.collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let renames = scope.spawn(|| rename_all(base, &is_over));
        let run = |(script, moved)| scope.spawn(move || run_script(script, moved, operations));
        let threads: Vec<_> = prepared.into_iter().map(run).collect();
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(renames.join().unwrap() > 0, "nothing was renamed meanwhile");
        results.into_iter().map(|result| result.unwrap()).collect()
    })
}

fn each_without_write_back(test: impl Fn(&mut Mounted)) {
    let is_tested = |kernel| matches!(kernel, "pages" | "direct");
    each(
        SETTINGS.iter().filter(|setting| is_tested(setting.kernel)),
        test,
    );
}

#[test]
fn threads_get_from_every_call_what_ext4_returns_and_leave_the_same_files() {
    let plain = tempfile::tempdir().unwrap();
    if rustix::fs::statfs(plain.path()).unwrap().f_type != EXT4_MAGIC {
        eprintln!("skipped: temporary files are not on ext4");
        return;
    }
    let operations = std::env::var("USERFS_OPERATIONS");
    let operations = operations.map_or(400, |count| count.parse().expect("it is a number"));
    let expected = run(plain.path(), operations);
    let expected_tree = tree(plain.path());
    each_without_write_back(|mounted| {
        let alone = without_new_processes();
        let results = run(&mounted.at, operations);
        drop(alone);
        for (number, (results, expected)) in results.iter().zip(&expected).enumerate() {
            let mut pairs = results.iter().zip(expected);
            let different = pairs.find(|(one, other)| one != other);
            assert_eq!(different, None, "thread {number} in {:?}", mounted.setting);
        }
        assert_eq!(tree(&mounted.at), expected_tree, "{:?}", mounted.setting);
        mounted.stop_clean();
        assert_eq!(
            tree(&mounted.source),
            expected_tree,
            "{:?}",
            mounted.setting
        );
        assert_eq!(mounted.kept(), [] as [&Path; 0], "{:?}", mounted.setting);
    });
}

#[test]
fn appends_of_four_shells_lose_no_line() {
    let of_shell = |number| (1..=300).map(move |line| format!("{number} {line}"));
    let mut expected: Vec<_> = (0..4).flat_map(of_shell).collect();
    expected.sort();
    each_without_write_back(|mounted| {
        let log = mounted.path("log");
        let shells = [0, 1, 2, 3].map(|number| {
            let script = format!("for i in $(seq 300); do echo {number} $i >>\"$1\" || exit; done");
            let mut command = Command::new("sh");
            command.args(["-ec", &script, "sh"]).arg(&log);
            starting(|| command.stderr(Stdio::piped()).spawn().unwrap())
        });
        for shell in shells {
            let ended = shell.wait_with_output().unwrap();
            assert!(ended.status.success(), "{:?}: {ended:?}", mounted.setting);
        }
        for text in [mounted.read("log"), mounted.read_behind("log")] {
            let text = String::from_utf8(text).unwrap();
            let mut lines: Vec<_> = text.lines().collect();
            lines.sort_unstable();
            assert_eq!(lines, expected, "{:?}", mounted.setting);
        }
    });
}
