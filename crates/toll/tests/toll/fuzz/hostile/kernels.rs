//! Inputs of kernels: text that make, a shell, git or a path would obey must reach the build
//! unchanged, or be refused with its name.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use toll_testing::isolated;
use toll_testing::{Bench, Running, has, list, make_executable, skip, wait_until};

use super::text::{OBEYED, file_name, word};
use super::{check_inert, feed, obeyed_below, place, ran};

/// A repository that builds like Linux, but at once. Its image contains the environment of the
/// build.
const MAKEFILE: &str = "\
O ?= .
ifdef M
modules:
	@[ -e '$(M)/one.c' ]
	@echo module >'$(M)/one.ko'
else
tinyconfig:
	@mkdir -p '$(O)' && : >'$(O)/.config'
kernelversion:
	@echo 6.12.0
modules:
bzImage:
	@mkdir -p '$(O)/arch/x86/boot' '$(O)/include/config'
	@env | sort >'$(O)/arch/x86/boot/bzImage'
	@cp release '$(O)/include/config/kernel.release'
endif
";

const MERGE: &str = "#!/bin/bash\nout=$2; shift 3; cat \"$@\" >\"$out/.config\"\n";

fn make_tree(bench: &Bench, name: &str, release: &str) -> PathBuf {
    let tree = bench.path(name);
    for directory in ["arch/x86", "scripts/kconfig"] {
        std::fs::create_dir_all(tree.join(directory)).unwrap();
    }
    let write = |name: &str, text: &str| std::fs::write(tree.join(name), text).unwrap();
    write("Makefile", MAKEFILE);
    write("arch/x86/Kconfig", "config SMP\n");
    write("release", release);
    write("one.c", "one\n");
    write("scripts/kconfig/merge_config.sh", MERGE);
    make_executable(&tree.join("scripts/kconfig/merge_config.sh"));
    let own = "-c user.name=one -c user.email=one@example.org -c commit.gpgsign=false";
    let commit = format!("git init -q . && git add . && git {own} commit -q -m one");
    let status = std::process::Command::new("sh")
        .args(["-c", &commit])
        .current_dir(&tree)
        .status();
    assert!(status.unwrap().success());
    tree
}

/// Builds a kernel and returns its record; `None`, with a skip line, if nothing can be built here.
fn built(bench: &Bench, name: &str) -> Option<Value> {
    let ran = ran(bench, &["kernel", "build", name]);
    if ran.code == Some(5) {
        skip(ran.stderr.lines().last().unwrap_or_default());
        return None;
    }
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    Some(bench.json(&["kernel", "show", name, "--json"]))
}

const PATCH: &str = "--- a/one.c\n+++ b/one.c\n@@ -1 +1 @@\n-one\n+uno\n";

#[test]
fn hostile_names_of_files_reach_the_build_as_they_are() {
    isolated(|| {
        let bench = place();
        feed("kernel-files", 8, &bench, |text, case| {
            let (text, index) = (file_name(text), case.number);
            // With the prefix, a path that begins with a dash is not read as an option.
            let at = |end: &str| format!("./{index}{text}{end}");
            let tree = make_tree(&bench, &at(".tree"), "6.12.0-one\n");
            std::fs::create_dir_all(bench.path(&at(".patches"))).unwrap();
            std::fs::create_dir_all(bench.path(&at(".module"))).unwrap();
            bench.write(&format!("{}/{text}.patch", at(".patches")), PATCH);
            bench.write(&at(".config"), "CONFIG_SMP=y\n");
            bench.write(&format!("{}/one.c", at(".module")), "one\n");
            bench.write(&format!("{}/Makefile", at(".module")), "obj-m := one.o\n");
            let (name, tree) = (format!("hostile-{index}"), tree.display().to_string());
            let (patches, config, module) = (at(".patches"), at(".config"), at(".module"));
            let words = [
                "kernel",
                "add",
                &name,
                "--tree",
                &tree,
                "--patches",
                &patches,
            ];
            let more = ["--config", &config, "--module", &module];
            super::ok(&bench, &[&words[..], &more].concat());
            let Some(shown) = built(&bench, &name) else {
                return;
            };
            let shown_name = format!("{text}.patch").replace(char::is_control, "?");
            assert_eq!(list(&shown["patches"]), [shown_name]);
            assert_eq!(list(&shown["trial_modules"]).len(), 1, "{shown:#}");
            let config = std::fs::read_to_string(shown["config"].as_str().unwrap()).unwrap();
            assert!(config.ends_with("CONFIG_SMP=y\n"), "{config}");
        });
    });
}

#[test]
fn a_hostile_version_of_an_image_is_refused_by_name() {
    isolated(|| {
        let bench = place();
        feed("kernel-image", 30, &bench, |text, _| {
            // The version ends at the first blank, and has at most 128 bytes.
            let text = word(text).replace(' ', "\t");
            let text = &text[..text.floor_char_boundary(120)];
            let mut image = vec![0_u8; 0x1000];
            image[0x202..0x206].copy_from_slice(b"HdrS");
            image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
            image[0x300..0x300 + text.len()].copy_from_slice(text.as_bytes());
            std::fs::write(bench.path("bzImage"), image).unwrap();
            let added = ran(&bench, "kernel add one --image bzImage --replace");
            if is_word(text) {
                assert_eq!(added.code, Some(0), "{added:#?}");
                return;
            }
            assert_eq!(added.code, Some(2), "{added:#?}");
            has(&added.stderr, &["is not an image of Linux"]);
            // Nor is it accepted if the definition already exists.
            define(
                &bench,
                BTreeMap::from([("image", bench.path("bzImage").to_str().unwrap())]),
            );
            let ran = ran(&bench, "kernel build one");
            assert_ne!(ran.code, Some(0), "{ran:#?}");
            has(&ran.stderr, &["is not an image of Linux"]);
        });
    });
}

/// Returns whether a text is a plain word.
fn is_word(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
    !text.is_empty() && text.chars().all(is_plain) && !text.starts_with(['-', '.'])
}

/// Writes a definition of the kernel `one` without any check.
fn define(bench: &Bench, members: BTreeMap<&str, &str>) {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(bench.path("data/toll/kernels")).unwrap();
    bench.write(
        "data/toll/kernels/one.toml",
        &toml::to_string(&members).unwrap(),
    );
}

#[test]
fn hostile_words_of_a_definition_are_refused_by_name() {
    isolated(|| {
        let bench = place();
        make_tree(&bench, "tree", "6.12.0-one\n");
        let tree = bench.path("tree").display().to_string();
        feed("kernel-definition", 12, &bench, |text, _| {
            let name = format!("a{}", word(text));
            let is_name =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
            if !name.chars().all(is_name) {
                let added = ran(&bench, &["kernel", "add", &name, "--tree", "tree"]);
                assert_eq!(added.code, Some(2), "{added:#?}");
            }
            let revision = format!("--revision={}", word(text));
            let words = [
                "kernel",
                "add",
                "one",
                "--replace",
                "--tree",
                "tree",
                &revision,
            ];
            assert_eq!(ran(&bench, &words).code, Some(2));
            for members in [
                BTreeMap::from([("tree", tree.as_str()), ("revision", text)]),
                BTreeMap::from([("base", text)]),
                BTreeMap::from([("image", text)]),
                BTreeMap::from([("image", text), ("image_modules", text)]),
                BTreeMap::from([("tree", text)]),
            ] {
                define(&bench, members);
                let built = ran(&bench, "kernel build one");
                assert!(![Some(0), Some(5)].contains(&built.code), "{built:#?}");
                ran(&bench, "kernel show one");
                ran(&bench, "kernel list");
            }
            let lists =
                ["patches", "configs", "modules"].map(|list| format!("{list} = [{text:?}]\n"));
            bench.write("data/toll/kernels/one.toml", &lists.concat());
            assert_ne!(ran(&bench, "kernel build one").code, Some(0));
        });
    });
}

#[test]
fn a_hostile_value_of_an_option_is_refused_by_name() {
    isolated(|| {
        let bench = place();
        make_tree(&bench, "tree", "6.12.0-one\n");
        feed("kernel-option", 20, &bench, |text, _| {
            bench.write("one.config", &format!("CONFIG_LOCALVERSION=\"{text}\"\n"));
            let added = ran(&bench, "kernel add one --tree tree --config one.config");
            let is_text = |c: char| c.is_ascii_alphanumeric() || " ._,:=+/@%~()[]*-".contains(c);
            if text.chars().all(is_text) {
                assert_eq!(added.code, Some(0), "{added:#?}");
                super::ok(&bench, "kernel remove one");
            } else {
                assert_eq!(added.code, Some(2), "{added:#?}");
                has(&added.stderr, &["one.config", "line "]);
            }
            bench.write("one.config", &format!("CONFIG_SMP=y\n{text}\n"));
            let refused = ran(&bench, "kernel add one --tree tree --config one.config");
            if refused.code == Some(0) {
                super::ok(&bench, "kernel remove one");
            }
        });
        // A line without its `CONFIG_` prefix would be dropped silently.
        bench.write("one.config", "CONFIG_SMP=y\nNR_CPUS=4\n");
        let refused = bench.fails(2, "kernel add one --tree tree --config one.config");
        has(&refused, &["line 2", "\"NR_CPUS=4\"", "CONFIG_NAME=VALUE"]);
        // A later edit is checked at the build.
        bench.write("one.config", "CONFIG_SMP=y\n");
        bench.ok("kernel add one --tree tree --config one.config");
        bench.write(
            "one.config",
            "CONFIG_LOCALVERSION=\"$(shell touch OBEYED)\"\n",
        );
        let built = ran(&bench, "kernel build one");
        assert_ne!(built.code, Some(0), "{built:#?}");
        has(&built.stderr, &["one.config: line 1"]);
        check_inert(&bench);
    });
}

#[test]
fn a_hostile_release_of_a_tree_is_refused_by_name() {
    isolated(|| {
        let bench = place();
        make_tree(&bench, "tree", "6.12.0-one\n");
        super::ok(&bench, "kernel add one --tree tree");
        feed("kernel-release", 4, &bench, |text, _| {
            bench.write("tree/release", &format!("6.12{}\"\n", word(text)));
            let built = ran(&bench, "kernel build one");
            if built.code == Some(5) {
                return skip(built.stderr.lines().last().unwrap_or_default());
            }
            assert_eq!(built.code, Some(1), "{built:#?}");
            has(&built.stderr, &["cannot use the release"]);
        });
    });
}

#[test]
fn a_hostile_place_of_the_cache_is_refused_by_name() {
    isolated(|| {
        let bench = place();
        feed("kernel-cache", 8, &bench, |text, _| {
            let cache = bench.path(&format!("cache {}\"", file_name(text)));
            let mut command = bench.toll("kernel build");
            let output = command.env("XDG_CACHE_HOME", &cache).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(5), "{said}");
            has(&said, &["XDG_CACHE_HOME"]);
        });
    });
}

/// Variables that make, shells, compilers, git, tar and compressors read.
const READ_BY_TOOLS: [&str; 34] = [
    "ARCH",
    "CC",
    "CROSS_COMPILE",
    "HOSTCC",
    "HOSTCFLAGS",
    "HOSTLDFLAGS",
    "KCFLAGS",
    "KAFLAGS",
    "KCPPFLAGS",
    "KBUILD_BUILD_USER",
    "KBUILD_EXTMOD",
    "KCONFIG_CONFIG",
    "INSTALL_MOD_PATH",
    "LOCALVERSION",
    "LLVM",
    "M",
    "O",
    "V",
    "CPATH",
    "C_INCLUDE_PATH",
    "LIBRARY_PATH",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
    "CDPATH",
    "GIT_DIR",
    "GIT_EDITOR",
    "TAR_OPTIONS",
    "XZ_OPT",
    "GZIP",
    "POSIXLY_CORRECT",
    "PATCH_GET",
    "LANG",
    "SOURCE_DATE_EPOCH",
    "LANGUAGE",
];

#[test]
fn a_build_makes_the_same_bytes_in_any_environment() {
    isolated(|| {
        let bench = Bench::new();
        make_tree(&bench, "tree", "6.12.0-one\n");
        bench.ok("kernel add one --tree tree");
        let Some(shown) = built(&bench, "one") else {
            return;
        };
        let image = || std::fs::read_to_string(shown["image"].as_str().unwrap()).unwrap();
        let plain = image();
        bench.ok("kernel clean --all");
        std::fs::remove_dir_all(bench.path("cache/toll/kernels")).unwrap();
        let obeyed = bench.path(OBEYED).display().to_string();
        bench.write("evil.sh", &format!("touch {obeyed}\n"));
        bench.write("evil.mk", &format!("$(shell touch {obeyed})\n"));
        let mut command = bench.toll("kernel build one");
        for name in ["BASH_ENV", "ENV"] {
            command.env(name, bench.path("evil.sh"));
        }
        command.env("MAKEFILES", bench.path("evil.mk"));
        command.env("MAKEFLAGS", "-e --eval=$(shell touch OBEYED)");
        command.env("GNUMAKEFLAGS", "--eval=$(shell touch OBEYED)");
        command.env("BASH_FUNC_mkdir%%", "() { touch OBEYED; }");
        command.envs(READ_BY_TOOLS.map(|name| (name, "1")));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(obeyed_below(&bench.path("")), None, "{said}");
        assert_eq!(bench.json("kernel show one --json")["key"], shown["key"]);
        assert_eq!(image(), plain);
        for name in READ_BY_TOOLS {
            let is_set = plain.lines().any(|line| line == format!("{name}=1"));
            assert!(!is_set || name == "KBUILD_BUILD_VERSION", "{plain}");
        }
    });
}

#[test]
fn of_two_builds_of_a_kernel_the_second_finds_what_the_first_has_built() {
    isolated(|| {
        let bench = Bench::new();
        make_tree(&bench, "tree", "6.12.0-one\n");
        bench.ok("kernel add one --tree tree");
        if built(&bench, "one").is_none() {
            return;
        }
        std::fs::remove_dir_all(bench.path("cache/toll/kernels")).unwrap();
        // Holds the lock, as the build of another kernel does.
        let lock = std::fs::File::open(bench.path("cache/toll/kernel-work/lock")).unwrap();
        lock.lock().unwrap();
        let builds = ["first", "second"].map(|name| {
            let mut command = bench.spawnable("kernel build one");
            command.stderr(std::fs::File::create(bench.path(name)).unwrap());
            Running(command.spawn().unwrap())
        });
        let said = || bench.read("first") + &bench.read("second");
        wait_until("both builds wait", || {
            said().matches("waiting").count() == 2
        });
        drop(lock);
        for mut build in builds {
            assert!(build.end().success(), "{}", said());
        }
        assert_eq!(said().matches("configuring").count(), 1, "{}", said());
    });
}
