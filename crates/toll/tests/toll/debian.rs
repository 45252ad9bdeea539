//! The Debian package, installed in a clean root and used there.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Bench, Ran, TOLL, has_program, is_root, skip, source_tree};

/// What a root directory needs to run programs, in a mount and process
/// namespace of its own: whatever is mounted or runs there is gone afterwards.
const ENTER: &str = "mount --bind \"$1\" \"$1\" && cd \"$1\" && mount -t proc proc proc && \
                     mount -t sysfs -o ro sys sys && mount --rbind /dev dev && \
                     exec chroot . /bin/bash -c \"$2\"";

fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("the program starts");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A fresh root directory, unpacked from the cached archive; `None` with the
/// reason told if this machine can make none.
fn clean_root(bench: &Bench) -> Option<PathBuf> {
    for program in ["debootstrap", "dpkg-deb", "make", "strip", "tar", "unshare"] {
        if !has_program(program) {
            skip(&format!(
                "{program} is missing; tools/install-prerequisites test installs it"
            ));
            return None;
        }
    }
    if !is_root() {
        skip("only root can make a root directory");
        return None;
    }
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let codename = release
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let name = format!("debian-root/{}.tar", codename.unwrap_or("unknown"));
    let archive = toll::environment::paths::kernels().with_file_name(name);
    let made = ran(Command::new(source_tree().join("tools/debian-root")).arg(&archive));
    match made.code {
        Some(0) => {}
        Some(5) => {
            skip(
                made.stderr
                    .lines()
                    .last()
                    .unwrap_or("no root directory can be made"),
            );
            return None;
        }
        _ => panic!("{made:#?}"),
    }
    let root = bench.path("root");
    std::fs::create_dir(&root).expect("the test's directory takes files");
    let unpacked = ran(Command::new("tar")
        .arg("-C")
        .arg(&root)
        .arg("-xpf")
        .arg(&archive));
    assert_eq!(unpacked.code, Some(0), "{unpacked:#?}");
    Some(root)
}

/// Packs the programs that the tests were built with.
fn package(bench: &Bench) -> PathBuf {
    let programs = Path::new(TOLL).parent().expect("it lies in a directory");
    let mut pack = Command::new(source_tree().join("tools/make-deb"));
    let packed = ran(pack.arg(bench.path("packages")).arg(programs));
    assert_eq!(packed.code, Some(0), "{packed:#?}");
    let path = PathBuf::from(packed.stdout.trim());
    assert!(path.is_file(), "{packed:#?}");
    path
}

/// Runs a line of shell in the clean root.
#[track_caller]
fn inside(root: &Path, line: &str) -> String {
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        ENTER,
        "enter",
    ]);
    command.arg(root).arg(format!("set -e; {line}")).env_clear();
    command.env(
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    );
    command.env("HOME", "/root").env("LC_ALL", "C.UTF-8");
    let ran = ran(&mut command);
    assert_eq!(ran.code, Some(0), "{line}: {ran:#?}");
    ran.stdout
}

/// All paths of the root but dpkg's own books and what lies below /tmp.
fn paths(root: &Path) -> Vec<String> {
    let listed = inside(
        root,
        "find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o -path /tmp \
         -o -path /var/lib/dpkg -o -path /var/log \\) -prune -o -print | sort",
    );
    listed.lines().map(str::to_owned).collect()
}

#[test]
fn a_package_installs_and_works_in_a_clean_root_and_its_removal_leaves_nothing() {
    let bench = Bench::new();
    let Some(root) = clean_root(&bench) else {
        return;
    };
    let before = paths(&root);
    std::fs::copy(package(&bench), root.join("tmp/toll.deb")).expect("the root takes files");
    inside(&root, "dpkg -i /tmp/toll.deb");

    let version = inside(&root, "toll --version");
    assert_eq!(version, format!("toll {}\n", env!("CARGO_PKG_VERSION")));
    // What a user makes lies in the user's directories, and stays.
    let home = "export HOME=/tmp/home; mkdir -p $HOME;";
    let doctor = inside(&root, &format!("{home} toll doctor --no-noise"));
    assert!(doctor.contains("probe"), "{doctor}");
    let line = format!("{home} toll run -q --no-html -r 3 true; toll show --json");
    let run = inside(&root, &line);
    let document = run.find("\n{").expect("a document follows");
    let document: serde_json::Value = serde_json::from_str(&run[document..]).expect("it is JSON");
    assert_eq!(document["trials"][0]["state"], "completed");
    let moved = inside(
        &root,
        "echo moved | meow; head -c 4096 /dev/zero | timewrite /tmp/out; prime_user 10",
    );
    assert!(moved.starts_with("moved\n"), "{moved}");

    for page in [
        "toll",
        "meow",
        "timewrite",
        "master",
        "slave",
        "prime_user",
        "prime_sys_test",
    ] {
        let text = inside(&root, &format!("zcat /usr/share/man/man1/{page}.1.gz"));
        assert!(text.contains(".TH "), "{page}: {text}");
    }
    let loaded = inside(
        &root,
        ". /usr/share/bash-completion/completions/toll; complete -p toll",
    );
    assert!(loaded.contains("-F _toll"), "{loaded}");
    for file in [
        "copyright",
        "changelog.gz",
        "changelog.Debian.gz",
        "METHODOLOGY.md",
    ] {
        inside(&root, &format!("test -s /usr/share/doc/toll/{file}"));
    }
    inside(
        &root,
        "cd / && md5sum --quiet -c /var/lib/dpkg/info/toll.md5sums",
    );

    inside(&root, "dpkg --purge toll");
    assert_eq!(paths(&root), before);
    // Nothing of it is mounted here.
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("/proc is mounted");
    assert!(!mounts.contains(&root.display().to_string()), "{mounts}");
}
