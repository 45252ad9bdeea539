//! Files that a counted program needs. They are found by reading the program, never by executing
//! it.

use std::path::{Path, PathBuf};
use std::process::Command;

use toll_host::environment::program_files::{ProgramFiles, add_program};
use toll_testing::{Bench, has, make_executable, skip};

/// Compiles a C source below a bench; `None`, with a skip line, if there is no C compiler.
fn compile(bench: &Bench, output: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
    let file = bench.write("source.c", source);
    let output = bench.path(output);
    let status = Command::new("cc")
        .arg(file)
        .arg("-o")
        .arg(&output)
        .args(options)
        .current_dir(bench.path(""))
        .status();
    if !status.is_ok_and(|status| status.success()) {
        skip("there is no C compiler");
        return None;
    }
    Some(output)
}

fn files_of(program: &Path) -> Result<ProgramFiles, String> {
    let mut files = ProgramFiles::new();
    add_program(&program.display().to_string(), &mut files)?;
    Ok(files)
}

const MAIN: &str = "int main(void) { return 0; }\n";

#[test]
fn the_interpreter_that_a_program_names_is_not_executed() {
    let bench = Bench::new();
    let made = bench.path("made");
    // A program that creates a file, and a script that does the same.
    let source = format!(
        "#include <fcntl.h>\nint main(void) {{ open(\"{}\", O_CREAT, 0600); return 0; }}\n",
        made.display()
    );
    let Some(program) = compile(&bench, "evil", &source, &["-static"]) else {
        return;
    };
    let script = bench.write("evil.sh", &format!("#!/bin/sh\ntouch {}\n", made.display()));
    make_executable(&script);
    for interpreter in [&program, &script] {
        let option = format!("-Wl,--dynamic-linker={}", interpreter.display());
        let victim = compile(&bench, "victim", MAIN, &[&option]).unwrap();
        let found = files_of(&victim);
        assert!(!made.exists(), "{interpreter:?}");
        match found {
            Ok(files) => assert!(files.contains_key(interpreter), "{files:?}"),
            Err(why) => has(&why, &["its interpreter", "is not an ELF program"]),
        }
    }
    // Control: executing the victim does run its interpreter.
    assert!(Command::new(bench.path("victim")).status().is_err() || made.exists());
}

#[test]
fn libraries_are_found_as_the_dynamic_linker_finds_them() {
    let bench = Bench::new();
    for directory in ["bin", "lib", "lib/glibc-hwcaps/x86-64-v3", "elsewhere"] {
        std::fs::create_dir_all(bench.path(directory)).unwrap();
    }
    let library = ["-shared", "-fPIC", "-Wl,-soname,libinner.so"];
    if compile(
        &bench,
        "lib/libinner.so",
        "int inner(void) { return 1; }\n",
        &library,
    )
    .is_none()
    {
        return;
    }
    std::fs::copy(
        bench.path("lib/libinner.so"),
        bench.path("lib/glibc-hwcaps/x86-64-v3/libinner.so"),
    )
    .unwrap();
    let outer = "int inner(void);\nint outer(void) { return inner(); }\n";
    let options = [
        "-shared",
        "-fPIC",
        "-Llib",
        "-linner",
        "-Wl,-soname,libouter.so",
        "-Wl,-rpath,$ORIGIN",
    ];
    compile(&bench, "lib/libouter.so", outer, &options).unwrap();
    let main = "int outer(void);\nint main(void) { return outer(); }\n";
    let options = [
        "-Llib",
        "-louter",
        "-Wl,-rpath-link,lib",
        "-Wl,-rpath,$ORIGIN/../lib",
    ];
    let program = compile(&bench, "bin/program", main, &options).unwrap();
    let files = files_of(&program).unwrap();
    let named = |name: &str| files.keys().filter(|path| path.ends_with(name)).count();
    assert_eq!(
        (named("libouter.so"), named("libinner.so")),
        (1, 2),
        "{files:?}"
    );
    assert_eq!(named("libc.so.6"), 1, "{files:?}");
    assert!(files.keys().all(|path| path.is_absolute()));

    // Started through a link, the program still knows its real directory, and the guest has a file
    // there.
    let link = bench.path("elsewhere/program");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    let files = files_of(&link).unwrap();
    let guest = bench.path("elsewhere/../lib/libouter.so");
    let host = files.get(&guest).unwrap_or_else(|| panic!("{files:?}"));
    assert!(host.is_file());

    std::fs::remove_file(bench.path("lib/libinner.so")).unwrap();
    std::fs::remove_dir_all(bench.path("lib/glibc-hwcaps")).unwrap();
    let why = files_of(&program).unwrap_err();
    has(
        &why,
        &["libinner.so, which", "libouter.so needs, is not found"],
    );
}

#[test]
fn the_libraries_of_programs_here_are_those_that_the_dynamic_linker_lists() {
    for program in [
        "/bin/sh",
        "/bin/ls",
        "/usr/bin/git",
        "/usr/bin/python3",
        "/usr/bin/perl",
    ] {
        let Ok(files) = files_of(Path::new(program)) else {
            continue;
        };
        // These programs are trusted, so ldd may execute them.
        let listed = Command::new("ldd").arg(program).output().unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout);
        for line in listed.lines() {
            let Some((name, path)) = line.trim().split_once(" => ") else {
                continue;
            };
            let path = Path::new(path.split(" (0x").next().unwrap());
            assert!(files.contains_key(path), "{program} {name}: {files:?}");
        }
    }
}

#[test]
fn scripts_lead_to_their_interpreters_and_not_to_devices() {
    let bench = Bench::new();
    let script = |name: &str, line: &str| {
        let path = bench.write(name, &format!("{line}\necho one\n"));
        make_executable(&path);
        path
    };
    let inner = script("inner", "#!/bin/sh");
    let outer = script("outer", &format!("#!{} -x", inner.display()));
    let files = files_of(&outer).unwrap();
    assert!(files.contains_key(&inner) && files.contains_key(Path::new("/bin/sh")));
    let env = script("env", "#!/usr/bin/env -S A=1 sh -e");
    let files = files_of(&env).unwrap();
    assert!(files.keys().any(|path| path.ends_with("sh")), "{files:?}");
    let device = script("device", "#!/dev/zero");
    has(&files_of(&device).unwrap_err(), &["not a regular file"]);
}
