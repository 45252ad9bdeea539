//! Texts of others in a kernel's inputs: what make, a shell, git or a path would obey must
//! reach the build as it is, or be refused by name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::{Bench, Ran, has, list, make_executable, skip};

/// What is made if one of [`HOSTILE`] is obeyed.
const OBEYED: &str = "OBEYED";

/// Texts without a slash, so that they can be names of files.
const HOSTILE: [&str; 22] = [
    "$(shell touch OBEYED)",
    "$(touch OBEYED)",
    "$$(touch OBEYED)",
    "${shell touch OBEYED}",
    "`touch OBEYED`",
    ";touch OBEYED;",
    "&touch OBEYED&",
    "|touch OBEYED",
    "x\ntouch OBEYED\n",
    "x\n\ttouch OBEYED",
    "$(error stop)",
    "\"",
    "'",
    "back\\slash",
    "#hash",
    "100%",
    "two words",
    "-rf",
    "--eval=$(shell touch OBEYED)",
    "{}",
    "colon:",
    "é~*?",
];

/// A repository that is built as Linux is, in no time. The image has the environment of its
/// build in it.
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

/// Whether something below a directory was made by a text that was obeyed.
fn is_obeyed(directory: &Path) -> bool {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            entry.file_name() == OBEYED || is_directory && is_obeyed(&entry.path())
        })
}

#[track_caller]
fn assert_inert(bench: &Bench, text: &str, ran: &Ran) {
    assert!(!is_obeyed(&bench.path("")), "{text:?} was obeyed: {ran:#?}");
}

/// Builds a kernel and returns its record, or none with the reason if nothing can be built here.
fn built(bench: &Bench, name: &str) -> Option<Value> {
    let ran = bench.run(&["kernel", "build", name]);
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
    let bench = Bench::new();
    for (index, text) in HOSTILE.iter().enumerate() {
        // A path that begins with a dash is not an option's value.
        let at = |end: &str| format!("./{text}{end}");
        let tree = make_tree(&bench, &at(".tree"), "6.12.0-one\n");
        std::fs::create_dir_all(bench.path(&at(".patches"))).unwrap();
        std::fs::create_dir_all(bench.path(&at(".module"))).unwrap();
        bench.write(&format!("{}/{text}.patch", at(".patches")), PATCH);
        bench.write(&at(".config"), "CONFIG_SMP=y\n");
        bench.write(&format!("{}/one.c", at(".module")), "one\n");
        bench.write(&format!("{}/Makefile", at(".module")), "obj-m := one.o\n");
        let name = format!("hostile-{index}");
        let tree = tree.display().to_string();
        let (patches, config, module) = (at(".patches"), at(".config"), at(".module"));
        let ran = bench.ok(&[
            "kernel",
            "add",
            &name,
            "--tree",
            &tree,
            "--patches",
            &patches,
            "--config",
            &config,
            "--module",
            &module,
        ]);
        assert_inert(&bench, text, &ran);
        let Some(shown) = built(&bench, &name) else {
            return;
        };
        assert_inert(&bench, text, &ran);
        let shown_name = format!("{text}.patch").replace(char::is_control, "?");
        assert_eq!(list(&shown["patches"]), [shown_name]);
        assert_eq!(list(&shown["trial_modules"]).len(), 1, "{shown:#}");
        let config = std::fs::read_to_string(shown["config"].as_str().unwrap()).unwrap();
        assert!(config.ends_with("CONFIG_SMP=y\n"), "{config}");
    }
}

#[test]
fn a_hostile_version_of_an_image_is_refused_by_name() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("data/toll/kernels")).unwrap();
    for text in HOSTILE {
        // The version ends at the first blank.
        let text = text.replace(' ', "\t");
        let mut image = vec![0_u8; 0x1000];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        image[0x300..0x300 + text.len()].copy_from_slice(text.as_bytes());
        let path = bench.path("bzImage");
        std::fs::write(&path, image).unwrap();
        let ran = bench.run("kernel add one --image bzImage --replace");
        assert_eq!(ran.code, Some(2), "{text:?}: {ran:#?}");
        has(
            &ran.stderr,
            &["is not an image of Linux", &format!("{text:?}")],
        );
        // Neither is it believed where the definition is there already.
        bench.write(
            "data/toll/kernels/one.toml",
            &format!("image = {:?}\n", path.display().to_string()),
        );
        let ran = bench.run("kernel build one");
        assert_ne!(ran.code, Some(0), "{text:?}: {ran:#?}");
        has(&ran.stderr, &[&format!("{text:?}")]);
        assert_inert(&bench, &text, &ran);
    }
}

#[test]
fn hostile_words_of_a_definition_are_refused_by_name() {
    let bench = Bench::new();
    make_tree(&bench, "tree", "6.12.0-one\n");
    std::fs::create_dir_all(bench.path("data/toll/kernels")).unwrap();
    for text in HOSTILE {
        let name = format!("a{text}");
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        if !name.bytes().all(is_name) {
            let ran = bench.run(&["kernel", "add", &name, "--tree", "tree"]);
            assert_eq!(ran.code, Some(2), "{text:?}: {ran:#?}");
        }
        let revision = format!("--revision={text}");
        let ran = bench.run(&[
            "kernel",
            "add",
            "one",
            "--replace",
            "--tree",
            "tree",
            &revision,
        ]);
        assert_eq!(ran.code, Some(2), "{text:?}: {ran:#?}");
        assert_inert(&bench, text, &ran);

        let tree = bench.path("tree").display().to_string();
        for (member, definition) in [
            (
                "revision",
                BTreeMap::from([("tree", tree.as_str()), ("revision", text)]),
            ),
            ("base", BTreeMap::from([("base", text)])),
            ("image", BTreeMap::from([("image", text)])),
            ("tree", BTreeMap::from([("tree", text)])),
        ] {
            let definition = toml::to_string(&definition).unwrap();
            bench.write("data/toll/kernels/one.toml", &definition);
            let ran = bench.run("kernel build one");
            assert!(
                ![Some(0), Some(5)].contains(&ran.code),
                "{member} {text:?}: {ran:#?}"
            );
            assert_inert(&bench, text, &ran);
        }
    }
}

#[test]
fn a_hostile_value_of_an_option_is_refused_by_name() {
    let bench = Bench::new();
    make_tree(&bench, "tree", "6.12.0-one\n");
    for text in HOSTILE {
        bench.write("one.config", &format!("CONFIG_LOCALVERSION=\"{text}\"\n"));
        let ran = bench.run("kernel add one --tree tree --config one.config");
        let is_text = |c: char| c.is_ascii_alphanumeric() || " ._,:=+/@%~()[]*-".contains(c);
        if text.chars().all(is_text) {
            assert_eq!(ran.code, Some(0), "{text:?}: {ran:#?}");
            bench.ok("kernel remove one");
            continue;
        }
        assert_eq!(ran.code, Some(2), "{text:?}: {ran:#?}");
        has(&ran.stderr, &["one.config", "line 1"]);
    }
    // Without its first letters a line would be dropped.
    bench.write("one.config", "CONFIG_SMP=y\nNR_CPUS=4\n");
    let refused = bench.fails(2, "kernel add one --tree tree --config one.config");
    has(&refused, &["line 2", "\"NR_CPUS=4\"", "CONFIG_NAME=VALUE"]);
    // An edit afterwards is checked at the build.
    bench.write("one.config", "CONFIG_SMP=y\n");
    bench.ok("kernel add one --tree tree --config one.config");
    bench.write(
        "one.config",
        "CONFIG_LOCALVERSION=\"$(shell touch OBEYED)\"\n",
    );
    let ran = bench.run("kernel build one");
    assert_ne!(ran.code, Some(0), "{ran:#?}");
    has(&ran.stderr, &["one.config: line 1"]);
    assert_inert(&bench, "an edited fragment", &ran);
}

#[test]
fn a_hostile_release_of_a_tree_is_refused_by_name() {
    let bench = Bench::new();
    make_tree(&bench, "tree", "6.12$(touch OBEYED)\"\n");
    bench.ok("kernel add one --tree tree");
    let ran = bench.run("kernel build one");
    if ran.code == Some(5) {
        return skip(ran.stderr.lines().last().unwrap_or_default());
    }
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    has(
        &ran.stderr,
        &["cannot use the release", "6.12$(touch OBEYED)"],
    );
    assert_inert(&bench, "a release", &ran);
}

#[test]
fn a_hostile_place_of_the_cache_is_refused_by_name() {
    let bench = Bench::new();
    for text in HOSTILE
        .into_iter()
        .filter(|text| *text != "100%" && *text != "-rf")
    {
        let cache = bench.path(&format!("cache {text}"));
        let mut command = bench.toll("kernel build");
        let output = command.env("XDG_CACHE_HOME", &cache).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{text:?}: {said}");
        has(&said, &["XDG_CACHE_HOME"]);
        assert!(!is_obeyed(&bench.path("")), "{text:?}: {said}");
    }
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
    assert!(!is_obeyed(&bench.path("")), "{said}");
    assert_eq!(bench.json("kernel show one --json")["key"], shown["key"]);
    assert_eq!(image(), plain);
    for name in READ_BY_TOOLS {
        let is_set = plain.lines().any(|line| line == format!("{name}=1"));
        assert!(!is_set || name == "KBUILD_BUILD_VERSION", "{plain}");
    }
}
