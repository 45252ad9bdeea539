//! What `kernel/` holds twice, since a patch series has to stand alone, must
//! be the same in both places.

use crate::common::source_tree;

fn text(path: &str) -> String {
    let path = source_tree().join("kernel").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The first patch, which adds the system calls.
fn first_patch() -> String {
    let directory = source_tree().join("kernel/patches");
    let first = std::fs::read_dir(directory)
        .expect("there are patches")
        .map(|entry| entry.expect("the tree can be read").file_name())
        .find(|name| name.to_string_lossy().starts_with("0001-"))
        .expect("patches are numbered");
    text(&format!("patches/{}", first.to_string_lossy()))
}

/// The lines that a patch adds to one file, as the file's content.
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
