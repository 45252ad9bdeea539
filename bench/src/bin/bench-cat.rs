//! `bench-cat`: `meow` side by side with other programs that copy bytes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use toll_bench::case::Case;
use toll_bench::document::Document;
use toll_bench::kept::{Options, conclude, tell};
use toll_bench::plan::Blocks;
use toll_bench::run::{Settings, Stop, run};
use toll_bench::scratch::interrupts;
use toll_bench::{enter_mount_namespace, peers};

/// Compares meow with other programs that copy bytes.
///
/// The table goes to standard output, progress to standard error. Work files
/// and mounts are removed at the end, also after an interrupt.
#[derive(Parser)]
#[command(name = "bench-cat")]
struct Arguments {
    /// The program meow
    #[arg(
        long,
        value_name = "PATH",
        required_unless_present = "from",
        conflicts_with = "from"
    )]
    meow: Option<PathBuf>,
    /// Blocks of the large file [default: 20, with --quick 6]
    #[arg(long, value_name = "N")]
    blocks: Option<usize>,
    /// Blocks of the 1 KiB file [default: 300, with --quick 40]
    #[arg(long, value_name = "N")]
    small_blocks: Option<usize>,
    /// Size of the large file [default: 1GiB, with --quick 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    size: Option<u64>,
    /// Run only this case; may be given again
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<Case>,
    /// Seed of the order of trials
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Begin no block after so many minutes
    #[arg(long, value_name = "N", default_value_t = 15)]
    minutes: u64,
    /// Directory for work files [default: TMPDIR or /var/tmp]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Do not install peers that are missing
    #[arg(long)]
    offline: bool,
    /// A first look: fewer blocks, smaller file
    #[arg(long, conflicts_with = "from")]
    quick: bool,
    #[command(flatten)]
    kept: Options,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    conclude(&arguments.kept, || measure(&arguments))
}

fn measure(arguments: &Arguments) -> Result<Document, Stop> {
    if rustix::process::geteuid().is_root() {
        enter_mount_namespace()?;
    }
    let meow = arguments.meow.as_deref().unwrap_or(Path::new("meow"));
    tell::<Document>("looking for programs");
    let programs = peers::find(meow, !arguments.offline)?;
    for (name, reason) in &programs.missing {
        tell::<Document>(&format!("skipped program {name}: {reason}"));
    }
    let settings = settings(arguments)?;
    run(&settings, &programs, &mut tell::<Document>)
}

fn settings(arguments: &Arguments) -> Result<Settings, String> {
    let interrupted = interrupts()?;
    let (large, small, bytes) = match arguments.quick {
        true => (6, 40, 256 << 20),
        false => (20, 300, 1 << 30),
    };
    let temporary = std::env::var_os("TMPDIR").filter(|value| !value.is_empty());
    let words: Vec<String> = std::env::args().collect();
    Ok(Settings {
        cases: arguments.cases.clone(),
        large_bytes: arguments.size.unwrap_or(bytes),
        blocks: Blocks {
            large: arguments.blocks.unwrap_or(large),
            small: arguments.small_blocks.unwrap_or(small),
        },
        seed: arguments.seed,
        limit: Duration::from_secs(60 * arguments.minutes),
        base: arguments
            .work
            .clone()
            .or(temporary.map(PathBuf::from))
            .unwrap_or_else(|| "/var/tmp".into()),
        command_line: words.join(" "),
        interrupted,
    })
}

/// Bytes of a size such as `64MiB` or `1G`; units are powers of 1024.
fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => return Err("units are KiB, MiB and GiB".into()),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "a size is a number and a unit, as 64MiB".to_owned())?;
    // A size of at least a mebibyte, or it would be no large file.
    number
        .checked_mul(1 << shift)
        .filter(|&bytes| bytes >= 1 << 20)
        .ok_or_else(|| "a size is at least 1 MiB".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(parse_size("64MiB"), Ok(64 << 20));
        assert_eq!(parse_size("2g"), Ok(2 << 30));
        assert_eq!(parse_size("1048576"), Ok(1 << 20));
        for wrong in ["", "MiB", "-1", "1.5G", "1kb", "1K", "99999999999G"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
    }
}
