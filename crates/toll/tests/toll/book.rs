//! The book and its pages: links lead somewhere, and commands that are marked so run.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;
use toll_testing::{Bench, TOLL, source_tree};

struct Page {
    links: Vec<String>,
    anchors: HashSet<String>,
}

fn found(pattern: &str, text: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).unwrap();
    let found = pattern.captures_iter(text);
    found.map(|found| found[1].to_owned()).collect()
}

fn html(text: &str) -> Page {
    Page {
        links: found(
            r#"<(?:a|img|link|script)\s[^>]*?(?:href|src)="([^"]*)""#,
            text,
        ),
        anchors: found(r#"\sid="([^"]*)""#, text).into_iter().collect(),
    }
}

/// Returns the links, and the anchors that a forge gives to headings.
fn markdown(text: &str) -> Page {
    let fence = Regex::new("(?ms)^```.*?^```$").unwrap();
    let text = fence.replace_all(text, "");
    let mut anchors = HashSet::new();
    for heading in found(r"(?m)^#+ (.*)$", &text) {
        let heading = heading.to_lowercase().replace(' ', "-");
        let kept = |letter: &char| letter.is_alphanumeric() || "-_".contains(*letter);
        let heading: String = heading.chars().filter(kept).collect();
        let again = (1..).map(|number| format!("{heading}-{number}"));
        let mut names = std::iter::once(heading.clone()).chain(again);
        names.find(|name| anchors.insert(name.clone()));
    }
    Page {
        links: found(r"\]\(([^)\s]+)\)", &text),
        anchors,
    }
}

/// Returns the links between files that lead to no file, or to no anchor in it.
fn dangling(paths: &[PathBuf], read: fn(&str) -> Page) -> Vec<String> {
    let page = |path: &PathBuf| (path.clone(), read(&std::fs::read_to_string(path).unwrap()));
    let pages: HashMap<PathBuf, Page> = paths.iter().map(page).collect();
    let mut dangling = Vec::new();
    for (path, page) in &pages {
        for link in page.links.iter().filter(|link| !link.contains(':')) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => Ok(path.clone()),
                file => path.with_file_name(file).canonicalize(),
            };
            let leads = target.is_ok_and(|target| {
                let anchors = pages.get(&target).map(|page| &page.anchors);
                anchor.is_empty() || anchors.is_some_and(|anchors| anchors.contains(anchor))
            });
            if !leads {
                dangling.push(format!("{}: {link}", path.display()));
            }
        }
    }
    dangling
}

/// Returns the files below directories whose names have this ending.
fn files(places: &[PathBuf], ending: &str) -> Vec<PathBuf> {
    let listed = Command::new("find")
        .args(places)
        .args(["-name", &format!("*{ending}")])
        .output()
        .unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let listed = String::from_utf8(listed.stdout).unwrap();
    listed.lines().map(PathBuf::from).collect()
}

/// Returns the pages that a forge shows, and from which the book is made.
fn sources() -> Vec<PathBuf> {
    let places = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "bench",
        "docs",
        "experiments",
        "kernel",
        "mount",
        "observe",
        "programs",
    ];
    let mut pages = files(&places.map(|name| source_tree().join(name)), ".md");
    // SUMMARY.md is only for mdBook, which makes a page of it when it builds the book.
    pages.retain(|page| !page.ends_with("SUMMARY.md"));
    pages
}

#[test]
fn links_of_all_pages_lead_somewhere_on_a_forge() {
    let sources = sources();
    assert!(sources.len() > 50, "{sources:?}");
    assert_eq!(dangling(&sources, markdown), [""; 0]);
}

#[test]
fn security_names_tests_that_exist() {
    let text = std::fs::read_to_string(source_tree().join("SECURITY.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let cells = rows.filter_map(|row| row.trim_end_matches(" |").rsplit_once(" | "));
    // Names of test functions have many words; other texts in the last column do not.
    let names: Vec<String> = cells
        .flat_map(|(_, last)| found("`([a-z0-9]+(?:_[a-z0-9]+){4,})`", last))
        .collect();
    assert!(names.len() > 40, "{names:?}");
    let rooms = ["crates", "verbs", "programs", "mount", "observe"];
    let sources = files(&rooms.map(|room| source_tree().join(room)), ".rs");
    let sources: String = sources
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let missing = |name: &&String| {
        !sources.contains(&format!("#[test]\nfn {name}()"))
            && !sources.contains(&format!("#[test]\n    fn {name}()"))
    };
    assert_eq!(names.iter().filter(missing).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_book_is_built_without_warnings_and_its_links_lead_somewhere() {
    let bench = Bench::new();
    let book = bench.path("book");
    let built = Command::new(source_tree().join("tools/build-book"))
        .arg(TOLL)
        .arg(&book)
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:#?}");
    let mut pages = files(&[book.canonicalize().unwrap()], ".html");
    // Its links start at the root of a server.
    pages.retain(|page| !page.ends_with("404.html"));
    assert!(pages.len() > 50, "{pages:?}");
    assert_eq!(dangling(&pages, html), [""; 0]);
}

/// Returns the blocks of a page that are marked as commands to run.
fn marked(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).unwrap();
    found(r"(?ms)^```sh run\n(.*?)^```$", &text)
}

#[test]
fn commands_that_are_marked_run() {
    let mut pages_with_commands = 0;
    for page in sources() {
        let bench = Bench::new();
        let blocks = marked(&page);
        pages_with_commands += usize::from(!blocks.is_empty());
        // The blocks run one after another in one directory, as a reader would type them.
        for block in blocks {
            let ran = bench.shell(&format!("set -e\n{block}"));
            assert_eq!(ran.code, Some(0), "{}: {block}\n{ran:#?}", page.display());
        }
    }
    assert!(pages_with_commands >= 2, "{pages_with_commands}");
}
