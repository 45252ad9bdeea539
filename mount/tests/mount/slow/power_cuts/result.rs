//! The result of all chains, as Markdown and as JSON.

use std::fmt::Write;
use std::path::Path;

use toll_host::environment::kernel::Kernel;

use super::chain::Outcome;

/// Returns one chain as a table row.
pub fn line(outcome: &Outcome) -> String {
    let Outcome {
        subject,
        cuts,
        calls,
        acknowledged,
        cuts_with_losses,
        losses,
        temporaries,
        temporaries_left,
        seconds,
        ..
    } = outcome;
    format!(
        "| {subject} | {cuts} | {calls} | {acknowledged} | {losses} | {cuts_with_losses} | \
         {temporaries} | {temporaries_left} | {seconds} |"
    )
}

/// Returns the losses of a chain, one sentence each.
pub fn losses(outcome: &Outcome) -> Vec<String> {
    let of = |what: &String| format!("{}, seed {}: {what}", outcome.subject, outcome.seed);
    outcome.found.iter().map(of).collect()
}

/// Writes `power-cuts.md` and `power-cuts.json`.
pub fn write(directory: &Path, kernel: &Kernel, outcomes: &[Outcome]) {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC");
    let mut table = format!(
        "# Power cuts under `toll mount`\n\n\
         - Date: {date}\n\
         - Guests: Linux {}, QEMU with TCG; ext4, data=ordered, on a disk with a volatile cache\n\
         - Made by `make power-cuts` of toll {}, seed {}\n\n\
         A program in a guest makes random calls in files and reports each to the host. The host kills the guest at a random\n\
         moment. The disk then loses blocks that were not flushed, at random. The next guest finds what is left.\n\n\
         - **durable**: calls that promised durability and had returned: `fsync`, and in `whole` and `blocks` each `close` that\n  \
         replaced a file.\n\
         - **losses**: files that lacked what was promised, were torn, or were never made; calls that failed count as well.\n\
         - **temporary files**: `.toll-…` after a cut, and those of them that the next mount did not remove.\n\
         - The mounts without `fsync` show that losses are found; each chain ends with its first loss.\n\n\
         | subject | cuts | calls | durable | losses | cuts with losses | temporary files | left | seconds |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        kernel.release,
        env!("CARGO_PKG_VERSION"),
        outcomes.first().map_or(0, |outcome| outcome.seed),
    );
    for outcome in outcomes {
        writeln!(table, "{}", line(outcome)).expect("a string can be written to");
    }
    let found: Vec<String> = outcomes.iter().flat_map(losses).collect();
    if !found.is_empty() {
        table.push_str("\n## Losses\n\n");
        found
            .iter()
            .for_each(|what| writeln!(table, "- {what}").expect("a string can be written to"));
    }
    let json = serde_json::json!({
        "version": 1,
        "date": date.to_string(),
        "kernel": kernel.release,
        "outcomes": outcomes,
    });
    let json = format!("{json:#}\n");
    std::fs::create_dir_all(directory).expect("the directory is writable");
    std::fs::write(directory.join("power-cuts.md"), table).expect("the directory is writable");
    std::fs::write(directory.join("power-cuts.json"), json).expect("the directory is writable");
}
