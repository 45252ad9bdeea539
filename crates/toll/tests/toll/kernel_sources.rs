//! Sources that `kernel/` contains twice, because a patch series must be self-contained, must be
//! the same in both places. Also tests the steps of the kernel Makefile.

use std::path::Path;
use std::process::Command;

use toll_testing::{has, has_program, skip, source_tree};

fn text(path: &str) -> String {
    let path = source_tree().join("kernel").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the first patch, which adds the system calls.
fn first_patch() -> String {
    let directory = source_tree().join("kernel/patches");
    let first = std::fs::read_dir(directory)
        .expect("the patches can be listed")
        .map(|entry| entry.expect("the tree can be read").file_name())
        .find(|name| name.to_string_lossy().starts_with("0001-"))
        .expect("patch 0001 exists");
    text(&format!("patches/{}", first.to_string_lossy()))
}

/// Returns the lines that a patch adds to one file, as the content of the file.
fn added(patch: &str, path: &str) -> String {
    let header = format!("+++ b/{path}");
    let mut content = String::new();
    for line in patch
        .lines()
        .skip_while(|line| *line != header)
        .skip(1)
        .take_while(|line| !line.starts_with("diff --git") && *line != "-- ")
    {
        if let Some(line) = line.strip_prefix('+') {
            content.push_str(line);
            content.push('\n');
        }
    }
    assert!(!content.is_empty(), "the patch adds nothing to {path}");
    content
}

#[test]
fn the_patched_kernel_counts_by_the_shared_source() {
    let patch = first_patch();
    for (shared, patched) in [
        ("common/count_primes_core.c", "kernel/count_primes_core.c"),
        ("common/count_primes_core.h", "kernel/count_primes_core.h"),
        ("common/count_primes_work.c", "kernel/count_primes_work.c"),
        ("common/count_primes_work.h", "kernel/count_primes_work.h"),
        ("uapi/toll_primes.h", "include/uapi/linux/toll_primes.h"),
    ] {
        assert!(
            added(&patch, patched) == text(shared),
            "kernel/{shared} and {patched} of the first patch differ"
        );
    }
}

#[test]
fn the_patched_kernel_counts_with_the_shared_flags() {
    let flags = text("common/FLAGS");
    let expected: Vec<&str> = flags
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let makefile = added(&first_patch(), "kernel/Makefile");
    let makefile = makefile.replace("\\\n", " ");
    let patched: Vec<&str> = makefile
        .lines()
        .find_map(|line| line.strip_prefix("CFLAGS_count_primes_core.o :="))
        .expect("the Makefile sets the object's flags")
        .split_whitespace()
        .collect();
    assert_eq!(patched, expected);
}

/// Compiles the compatibility header for older kernels against headers like those of this version:
/// `vm_flags_set()` and `vm_flags_clear()` exist since 6.3, `copy_splice_read()` since 6.5.
fn compiles_against(minor: u32) {
    let directory = tempfile::tempdir().unwrap();
    let linux = directory.path().join("linux");
    std::fs::create_dir(&linux).unwrap();
    let flags = "static inline void vm_flags_set(struct vm_area_struct *v, vm_flags_t f) { (void)v; (void)f; }\n\
                 static inline void vm_flags_clear(struct vm_area_struct *v, vm_flags_t f) { (void)v; (void)f; }\n";
    let mm = "typedef unsigned long vm_flags_t;\nstruct vm_area_struct { vm_flags_t vm_flags; };\n";
    let fs = match minor {
        5.. => "void copy_splice_read(void);\n",
        _ => "void generic_file_splice_read(void);\n",
    };
    let version = format!(
        "#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))\n\
         #define LINUX_VERSION_CODE KERNEL_VERSION(6, {minor}, 0)\n"
    );
    let has_flags = if minor >= 3 { flags } else { "" };
    for (name, text) in [
        ("fs.h", fs.to_owned()),
        ("mm.h", format!("{mm}{has_flags}")),
        ("version.h", version),
    ] {
        std::fs::write(linux.join(name), text).unwrap();
    }
    let user = "#include \"tolldev_compat.h\"\nvoid use(struct vm_area_struct *vma);\n\
                void use(struct vm_area_struct *vma) { vm_flags_set(vma, 1); vm_flags_clear(vma, 1); copy_splice_read(); }\n";
    let file = directory.path().join("user.c");
    std::fs::write(&file, user).unwrap();
    let output = Command::new("cc")
        .args(["-fsyntax-only", "-Wall", "-Werror", "-I"])
        .arg(directory.path())
        .arg("-I")
        .arg(source_tree().join("kernel/modules/tolldev"))
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "6.{minor}: {said}");
}

#[test]
fn names_of_older_kernels_are_given_to_those_that_lack_them_alone() {
    for minor in [1, 2, 3, 4, 5, 12] {
        compiles_against(minor);
    }
}

/// Runs a line of bash with the shell functions of the Makefile's steps; `$D` is the directory.
fn step(directory: &Path, line: &str) -> Result<String, String> {
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c"])
        .arg(format!(". scripts/functions.sh; D=$1; {line}"))
        .args(["step".as_ref(), directory.as_os_str()])
        .current_dir(source_tree().join("kernel"))
        .output()
        .unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn options_that_did_not_take_effect_are_named_with_what_they_are() {
    let config = "#\n# General setup\n#\nCONFIG_SMP=y\nCONFIG_NR_CPUS=8\n\
                  # CONFIG_VT is not set\nCONFIG_LOCALVERSION=\"-toll\"\n";
    let cases = [
        (
            "CONFIG_SMP=y\nCONFIG_LOCALVERSION=\"-toll\"\nCONFIG_VT=n\n",
            "",
            "",
        ),
        (
            "CONFIG_EXT5_FS=y\nCONFIG_NR_CPUS=64\n",
            "",
            "CONFIG_EXT5_FS=y (is n)\nCONFIG_NR_CPUS=64 (is 8)\n",
        ),
        // An option that must be off may be unknown, but not on.
        (
            "# CONFIG_NEVER_HEARD is not set\n# CONFIG_SMP is not set\n",
            "",
            "CONFIG_SMP=n (is y)\n",
        ),
        // The last fragment wins.
        (
            "CONFIG_SMP=n\nCONFIG_VT=y\n",
            "CONFIG_SMP=y\n",
            "CONFIG_VT=y (is n)\n",
        ),
    ];
    let directory = tempfile::tempdir().unwrap();
    for (first, second, expected) in cases {
        for (name, text) in [("1", first), ("2", second), ("config", config)] {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        let line = "awk -f scripts/unmet-options.awk $D/1 $D/2 $D/config | sort";
        assert_eq!(step(directory.path(), line).unwrap(), expected, "{first}");
    }
}

#[test]
fn a_tree_goes_from_any_set_of_patches_to_any_other_and_what_stays_keeps_its_time() {
    let change = "Subject: change\n\n--- a/one.c\n+++ b/one.c\n@@ -1 +1 @@\n-one\n+uno\n";
    let addition = "--- /dev/null\n+++ b/new/two.c\n@@ -0,0 +1 @@\n+two\n";
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir(path("original")).unwrap();
    for (name, text) in [
        ("original/one.c", "one\n"),
        ("1", change),
        ("2", addition),
        ("again", change),
    ] {
        std::fs::write(path(name), text).unwrap();
    }
    let bring = |patches: &str| {
        let line = format!("update_source $D/log $D/original $D/tree {patches}");
        step(directory.path(), &line)
    };
    let text = |name: &str| std::fs::read_to_string(path("tree").join(name)).ok();
    let time = || path("tree/one.c").metadata().unwrap().modified().unwrap();

    bring("$D/1").unwrap();
    assert_eq!(text("one.c").as_deref(), Some("uno\n"));
    let before = time();
    bring("$D/1 $D/2").unwrap();
    assert_eq!(text("new/two.c").as_deref(), Some("two\n"));
    assert_eq!(time(), before);
    // A patch that does not apply leaves the tree unchanged.
    let error = bring("$D/1 $D/again").unwrap_err();
    has(&error, &["again failed", "  | "]);
    assert_eq!(text("one.c").as_deref(), Some("uno\n"));
    bring("$D/2").unwrap();
    assert_eq!(text("one.c").as_deref(), Some("one\n"));
    // The file has a newer time, so make rebuilds it.
    assert!(time() > before);
    bring("").unwrap();
    assert_eq!(text("new/two.c"), None);
    assert_eq!(std::fs::read(path("original/one.c")).unwrap(), b"one\n");
}

#[test]
fn a_patch_writes_nowhere_but_into_its_tree() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir(path("original")).unwrap();
    std::fs::write(path("original/one.c"), "one\n").unwrap();
    std::fs::create_dir(path("outside")).unwrap();
    let outside = path("outside/made").display().to_string();
    let addition = |name: &str| format!("--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+two\n");
    let link = format!(
        "diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n\
         @@ -0,0 +1 @@\n+{}\n\\ No newline at end of file\n{}",
        path("outside").display(),
        addition("b/link/made")
    );
    let editor = format!("--- a/one.c\n+++ b/one.c\n1c\nuno\n.\n!touch {outside}\n");
    for (what, patch) in [
        ("upwards", addition("b/../outside/made")),
        ("upwards twice", addition("b/x/../../outside/made")),
        ("absolute", addition(&outside)),
        ("by a link", link),
        ("by an editor", editor),
    ] {
        std::fs::write(path("patch"), patch).unwrap();
        // The patch is either refused or has no effect.
        let _ = step(
            directory.path(),
            "update_source $D/log $D/original $D/tree $D/patch",
        );
        assert!(!path("outside/made").exists(), "{what}");
        let _ = std::fs::remove_dir_all(path("tree"));
    }
}

#[test]
fn a_tree_follows_another_commit_whatever_its_names_and_kinds_of_files_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let write = |name: &str, text: &str| {
        std::fs::create_dir_all(path(name).parent().unwrap()).unwrap();
        std::fs::write(path(name), text).unwrap();
    };
    let bring = |from: &str| {
        let line = format!("update_source $D/log $D/{from} $D/tree");
        step(directory.path(), &line).unwrap();
    };
    write("outside/kept", "kept\n");
    write("first/kind/below", "a directory\n");
    write("first/other", "a file\n");
    std::os::unix::fs::symlink(path("outside"), path("first/link")).unwrap();
    // Read line by line, this name would be a path out of the tree.
    write("first/x\n../outside/kept", "1\n");
    write("first/ -n\ttab\\ ", "1\n");
    bring("first");
    write("second/kind", "now a file\n");
    write("second/other/below", "now a directory\n");
    write("second/link/kept", "now a directory\n");
    write("second/ -n\ttab\\ ", "2\n");
    bring("second");
    let listed = |name: &str| {
        let line = format!("cd $D/{name}; find . -type f -printf '%P %s\\0' | sort -z | od -c");
        step(directory.path(), &line).unwrap()
    };
    assert_eq!(listed("tree"), listed("second"));
    let kept = std::fs::read_to_string(path("outside/kept")).unwrap();
    assert_eq!(kept, "kept\n");
}

/// Lays out a kernel's modules as a distribution does, with one compressed module, and copies it
/// for guests. Returns the content of the copy, or the error.
fn copied_module(end: &str, compress: &str) -> Result<Vec<u8>, String> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("one.c"), "int one;\n").unwrap();
    let file = format!("one-two.ko{end}");
    let lay = format!(
        "PATH=$PATH:/usr/sbin:/sbin; cc -c -o $D/one.ko $D/one.c; m=$D/root/lib/modules/6.1; \
         mkdir -p $m; touch $m/modules.order $m/modules.builtin; {compress} <$D/one.ko >$m/{file}; \
         depmod -b $D/root 6.1; cat $m/modules.dep"
    );
    let listed = step(directory.path(), &lay).unwrap();
    // This machine's depmod may support fewer compression formats than the one that made a
    // distribution's list.
    let copy = if listed.is_empty() {
        format!("mkdir $D/boot; unpack_module $D/root/lib/modules/6.1/{file} $D/boot/one_two.ko")
    } else {
        "copy_boot_modules $D/root 6.1 $D/boot one_two missing?; [ \"$(<$D/boot/order)\" = \
         one_two.ko ]"
            .to_owned()
    };
    step(directory.path(), &copy)?;
    let plain = std::fs::read(directory.path().join("one.ko")).unwrap();
    let copied = std::fs::read(directory.path().join("boot/one_two.ko")).unwrap();
    assert!(copied == plain || !compress.ends_with("-c"), "{file}");
    Ok(copied)
}

fn has_compressors() -> bool {
    let programs = ["zstd", "gzip", "xz", "depmod", "modprobe"];
    let missing = programs.into_iter().find(|program| !has_program(program));
    if let Some(program) = missing {
        skip(&format!("{program} is missing"));
    }
    missing.is_none()
}

#[test]
fn modules_are_unpacked_however_distributions_compress_them() {
    if !has_compressors() {
        return;
    }
    for (end, compress) in [
        ("", "cat"),
        (".gz", "gzip -c"),
        (".xz", "xz -c"),
        (".zst", "zstd -q -c"),
    ] {
        let copied = copied_module(end, compress).unwrap_or_else(|why| panic!("{end}: {why}"));
        assert!(copied.starts_with(b"\x7fELF"), "{end}");
    }
}

#[test]
fn a_module_that_is_damaged_or_unpacks_to_too_much_is_refused() {
    if !has_compressors() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let bytes = 257_u64 << 20;
    for (end, pack) in [
        ("gz", "gzip -1 -c"),
        ("xz", "xz -0 -T1 -c"),
        ("zst", "zstd -q -1 -c"),
    ] {
        let line = format!(
            "head -c {bytes} /dev/zero | {pack} >$D/m.ko.{end}; unpack_module $D/m.ko.{end} $D/m"
        );
        has(
            &step(directory.path(), &line).unwrap_err(),
            &["over 256 MiB"],
        );
        let line = format!(
            "head -c 9999 /dev/urandom >$D/whole; {pack} <$D/whole >$D/packed; \
             head -c 5000 $D/packed >$D/m.ko.{end}; unpack_module $D/m.ko.{end} $D/m"
        );
        has(
            &step(directory.path(), &line).unwrap_err(),
            &["it is damaged"],
        );
    }
}

#[test]
fn a_list_of_modules_leads_to_no_file_elsewhere() {
    if !has_compressors() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("one.c"), "int one;\n").unwrap();
    let line = "PATH=$PATH:/usr/sbin:/sbin; m=$D/root/lib/modules/6.1; mkdir -p $m; \
                touch $m/modules.order $m/modules.builtin; cc -c -o $D/secret $D/one.c; \
                ln -s $D/secret $m/one.ko; depmod -b $D/root 6.1; \
                copy_boot_modules $D/root 6.1 $D/boot one";
    has(
        &step(directory.path(), line).unwrap_err(),
        &["which is not below"],
    );
}
