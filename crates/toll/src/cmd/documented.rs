//! Checks that the parser accepts the commands in README and docs.

use std::path::{Path, PathBuf};

use clap::Parser;

use toll_driver::spelling;

use super::Cli;

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).expect("docs is there");
    let docs = docs.map(|entry| entry.expect("docs can be read").path());
    let pages = docs.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages.chain([root.join("README.md")]).collect()
}

/// Lines of shell blocks that begin with `toll`, with continued lines joined.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("\n```sh").skip(1);
    let blocks = blocks.map(|block| block.split("\n```").next().unwrap_or_default());
    let blocks = blocks.map(|block| block.replace("\\\n", " "));
    let lines = blocks.flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| line.starts_with("toll ")).collect()
}

/// The words of a command, up to the sign at which the shell ends or redirects the command.
fn words(line: &str) -> Option<Vec<String>> {
    let words = shlex::split(line)?.into_iter();
    let ends = |word: &String| {
        let digits = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
        ["|", "&", ";", ">", "<"]
            .iter()
            .any(|end| digits.starts_with(end))
    };
    Some(words.take_while(|word| !ends(word)).collect())
}

#[test]
fn documented_commands_are_ones_that_the_parser_takes() {
    let mut count = 0;
    let mut refused = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("the page can be read");
        for line in commands(&text) {
            let words = words(&line).unwrap_or_else(|| panic!("unbalanced quotes: {line}"));
            let words = spelling::normalise(words.into_iter().map(Into::into));
            count += 1;
            if let Err(error) = Cli::try_parse_from(words) {
                refused.push(format!("{}: {line}\n{error}", page.display()));
            }
        }
    }
    assert!(count > 50, "{count}");
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
