//! `toll mount --kept`: lists content that could not be written back.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use toll_mount::cache::{KeptCopy, kept};
use toll_system::output;

/// Lists the kept copies of all sources.
pub(super) fn list(copies: &Path) -> anyhow::Result<ExitCode> {
    let found = kept(copies)
        .with_context(|| format!("cannot list the kept copies in {}", copies.display()))?;
    if found.is_empty() {
        output::note(&format!("no copies are kept in {}", copies.display()));
    }
    let lines: Vec<String> = found.iter().flat_map(describe).collect();
    output::listing(&lines)?;
    Ok(ExitCode::SUCCESS)
}

fn describe(copy: &KeptCopy) -> Vec<String> {
    let kept_at = jiff::Timestamp::try_from(copy.kept_at).unwrap_or_default();
    let next = if copy.is_served {
        "a running mount is retrying"
    } else {
        "the next mount of the source will send the content"
    };
    vec![
        format!(
            "{}/{}: {} bytes, kept at {kept_at:.0}",
            copy.source.trim_end_matches('/'),
            copy.path.display(),
            copy.size_bytes
        ),
        format!("    why:   {}; {next}", copy.why),
        format!("    where: {}", copy.place.display()),
    ]
}
