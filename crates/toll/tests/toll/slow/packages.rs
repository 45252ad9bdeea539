//! Packages: each is installed offline into an empty root, used there, and removed.

use std::path::{Path, PathBuf};
use std::process::Command;

use toll_testing::{Bench, Ran, TOLL, has_program, is_root, skip, source_tree};

/// Prepares a root directory for programs, in mount and process namespaces of its own. All mounts
/// and processes end with the namespaces.
const ENTER: &str = "mount --bind \"$1\" \"$1\" && cd \"$1\" && mount -t proc proc proc && \
                     mount -t sysfs -o ro sys sys && mount --rbind /dev dev && \
                     exec chroot . /bin/bash -c \"$2\"";

/// The shortest list of prices that `toll prices` measures.
const PRICES: &str = "prices -q -r 1 --row 'empty system call'";

fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("the program can be started");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Unpacks a fresh root directory from the cached archive; `None`, with a skip line, if this
/// machine cannot make one.
fn clean_root(bench: &Bench) -> Option<PathBuf> {
    let programs = ["debootstrap", "dpkg-deb", "make", "strip", "tar", "unshare"];
    if !has_programs(&programs) {
        return None;
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
    let archive = toll_system::paths::kernels()
        .unwrap()
        .path()
        .unwrap()
        .with_file_name(name);
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
    std::fs::create_dir(&root).expect("the test's directory is writable");
    let unpacked = ran(Command::new("tar")
        .arg("-C")
        .arg(&root)
        .arg("-xpf")
        .arg(&archive));
    assert_eq!(unpacked.code, Some(0), "{unpacked:#?}");
    Some(root)
}

/// Packs the programs that the tests were built with, twice. The packages must be identical.
fn package(bench: &Bench, kind: &str) -> PathBuf {
    let programs = Path::new(TOLL).parent().expect("toll is in a directory");
    let [one, other] = ["packages", "again"].map(|directory| {
        let mut pack = Command::new(source_tree().join("tools/make-package"));
        let packed = ran(pack.arg(kind).arg(bench.path(directory)).arg(programs));
        assert_eq!(packed.code, Some(0), "{packed:#?}");
        PathBuf::from(packed.stdout.trim())
    });
    let [is, was] = [&one, &other].map(|path| std::fs::read(path).expect("it was packed"));
    assert!(is == was, "{} differs from its twin", one.display());
    one
}

/// Runs a shell line in the clean root.
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
    // A run outside may hold the machine's own lock.
    command.env("TOLL_RUN_LOCK", "/tmp/run.lock");
    let ran = ran(&mut command);
    assert_eq!(ran.code, Some(0), "{line}: {ran:#?}");
    ran.stdout
}

/// Returns all paths of the root except dpkg's own records, log files, and files below /tmp.
fn paths(root: &Path) -> Vec<String> {
    let listed = inside(
        root,
        "find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o -path /tmp \
         -o -path /var/lib/dpkg -o -path /var/log \\) -prune -o -print | sort",
    );
    listed.lines().map(str::to_owned).collect()
}

/// Returns whether all these programs are installed; prints a skip line if not.
fn has_programs(names: &[&str]) -> bool {
    let missing = names.iter().find(|name| !has_program(name));
    if let Some(name) = missing {
        skip(&format!(
            "{name} is missing; tools/prerequisites --install test installs it"
        ));
    }
    missing.is_none()
}

/// Runs a shell line in the test's directory, where `$root` is the empty root and `$package` the
/// package. toll finds only the files that are installed with it.
#[track_caller]
fn shell(bench: &Bench, package: &Path, line: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-euc", line]).envs(bench.environment());
    command.env_remove("TOLL_PROBE").env_remove("TOLL_STORE");
    command
        .env("root", bench.path("root"))
        .env("package", package);
    let ran = ran(command.current_dir(bench.path(".")));
    assert_eq!(ran.code, Some(0), "{line}: {ran:#?}");
    ran.stdout
}

/// Uses the toll that is installed in a directory.
#[track_caller]
fn uses(bench: &Bench, package: &Path, programs: &str) {
    let version = shell(bench, package, &format!("{programs}/toll --version"));
    assert_eq!(version, format!("toll {}\n", env!("CARGO_PKG_VERSION")));
    let prices = shell(bench, package, &format!("{programs}/toll {PRICES}"));
    assert!(prices.contains("empty system call"), "{prices}");
}

/// Installs a package into an empty root, uses it there and removes it.
fn round_trip(kind: &str, install: &str, programs: &str, remove: &str) {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("root")).expect("the test's directory is writable");
    let package = package(&bench, kind);
    shell(&bench, &package, install);
    uses(&bench, &package, programs);
    for file in [
        "man/man1/toll.1.gz",
        "toll/kernel/Makefile",
        "doc/toll/LICENSE-MIT",
    ] {
        let line = format!("test -s {programs}/../share/{file}");
        shell(&bench, &package, &line);
    }

    shell(&bench, &package, remove);
    let left = shell(&bench, &package, "find $root ! -type d -o -name '*toll*'");
    assert_eq!(left, "", "{kind} leaves files behind");
}

#[test]
fn a_tarball_unpacks_and_works_anywhere() {
    if has_programs(&["make", "strip", "tar"]) {
        round_trip(
            "dist",
            "tar -C $root -xf $package",
            "$root/toll-*/bin",
            "rm -r $root/toll-*",
        );
    }
}

#[test]
fn an_rpm_package_installs_and_works_and_its_removal_leaves_nothing() {
    if !has_programs(&["make", "rpm", "rpmbuild", "strip"]) {
        return;
    }
    if !is_root() {
        return skip("only root can install an RPM package");
    }
    // The RPM database is beside the root, so that the root is empty afterwards.
    let rpm = "rpm --root $root --dbpath /books";
    round_trip(
        "rpm",
        &format!("{rpm} --initdb; {rpm} --install $package"),
        "$root/usr/bin",
        &format!("{rpm} --erase toll; rm -r $root/books"),
    );
}

#[test]
fn a_wheel_installs_and_works_and_its_removal_leaves_nothing() {
    const PYTHON: &str = "/usr/bin/python3";
    for module in ["ensurepip", "wheel"] {
        let found = ran(Command::new(PYTHON).args(["-c", &format!("import {module}")]));
        if found.code != Some(0) {
            return skip(
                "tools/prerequisites --install test installs python3-venv and python3-wheel",
            );
        }
    }
    if has_programs(&["make", "strip"]) {
        // The virtual environment itself is not part of the package.
        round_trip(
            "wheel",
            "/usr/bin/python3 -m venv venv; find venv ! -type d | sort >before; \
             venv/bin/pip install -q --no-index $package",
            "venv/bin",
            "venv/bin/pip uninstall -q -y toll-cli; \
             find venv ! -type d ! -name '*.pyc' | sort >after; grep -v 'pyc$' before | cmp - after",
        );
    }
}

/// Installs the packed crates of the command and its probe into the root with cargo, without a
/// registry. The packed crates replace those of the registry.
const INSTALL_CRATES: &str = r#"
    make -s -C "$tree" crates CRATES_OPTIONS="--allow-dirty --offline --target-dir $PWD" 2>log ||
        { cat log >&2; exit 1; }
    for crate in package/*.crate; do tar -xf "$crate"; done
    for name in toll-cli toll-probe; do
        set --
        for crate in package/*.crate; do
            crate=$(basename "$crate" .crate)
            [ "${crate%-*}" = "$name" ] ||
                set -- "$@" --config "patch.crates-io.${crate%-*}.path=\"$PWD/$crate\""
        done
        CARGO_BUILD_BUILD_DIR=$target cargo install -q --offline --debug --root "$root" \
            --target-dir programs \
            --path "$name"-[0-9]* "$@"
    done"#;

#[test]
fn crates_install_and_work_and_their_removal_leaves_no_program() {
    if !has_programs(&["cargo", "make", "tar"]) {
        return;
    }
    let bench = Bench::new();
    let home = std::env::var("HOME").expect("HOME is set");
    // Builds of other crates are reused; the programs under test stay unchanged.
    let target = Path::new(TOLL).ancestors().nth(3);
    let line = format!(
        "export HOME={home} tree={} target={}; {INSTALL_CRATES}",
        source_tree().display(),
        target.expect("toll is in a build directory").display()
    );
    shell(&bench, Path::new(""), &line);
    uses(&bench, Path::new(""), "$root/bin");
    let remove = format!(
        "export HOME={home}; cargo uninstall -q --root $root toll-cli toll-probe; ls $root/bin"
    );
    assert_eq!(shell(&bench, Path::new(""), &remove), "");
}

#[test]
fn a_package_of_debian_installs_and_works_in_a_clean_root_and_its_removal_leaves_nothing() {
    let bench = Bench::new();
    let Some(root) = clean_root(&bench) else {
        return;
    };
    let before = paths(&root);
    std::fs::copy(package(&bench, "deb"), root.join("tmp/toll.deb")).expect("the root is writable");
    inside(&root, "dpkg -i /tmp/toll.deb");

    let version = inside(&root, "toll --version");
    assert_eq!(version, format!("toll {}\n", env!("CARGO_PKG_VERSION")));
    // Files that a user makes are in the user's directories, and stay.
    let home = "export HOME=/tmp/home; mkdir -p $HOME;";
    let doctor = inside(&root, &format!("{home} toll doctor --no-noise"));
    assert!(doctor.contains("probe"), "{doctor}");
    let line = format!("{home} toll run -q --no-html -r 3 true; toll show --json");
    let run = inside(&root, &line);
    let document = run.find("\n{").expect("the output has a document");
    let document: serde_json::Value = serde_json::from_str(&run[document..]).expect("it is JSON");
    assert_eq!(document["trials"][0]["state"], "completed");
    inside(&root, &format!("{home} toll {PRICES}"));
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
        "memory_access",
        "compete_for_memory",
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
    // Nothing below the root is still mounted.
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("/proc is mounted");
    assert!(!mounts.contains(&root.display().to_string()), "{mounts}");
}
