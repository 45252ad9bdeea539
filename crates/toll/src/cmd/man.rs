//! `toll man`: prints the manual page.

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command};
use toll_system::manual::render;
use toll_system::output;

#[derive(Debug, Args)]
pub(super) struct ManArguments {}

/// Prints one page (roff) with a section for each verb. So `toll man | man -l -` shows everything.
pub(super) fn run(_: &ManArguments, mut command: Command) -> anyhow::Result<ExitCode> {
    command.build();
    let mut page = Vec::new();
    render(&command, FILES, &mut page).context("cannot write the manual page")?;
    output::document(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::SUCCESS)
}

const FILES: &str = r#".SH FILES
.TP
\fI$XDG_DATA_HOME/toll/runs.sqlite\fR
The runs. \fBTOLL_STORE\fR or \fB\-\-store\fR names another file.
.TP
\fI$XDG_DATA_HOME/toll/reports/\fR
Pages that \fBtoll run\fR and \fBtoll report\fR write.
.TP
\fI$XDG_CACHE_HOME/toll/work/\fR
Work files while trials run. \fBTOLL_WORK_DIR\fR or \fB\-\-work\-dir\fR names another place.
.TP
\fI$XDG_CACHE_HOME/toll/kernels/\fR
Kernels for guests, a directory each. The build trees are in \fIkernel\-work/\fR, next to it.
.TP
\fI$XDG_STATE_HOME/toll/leftovers/\fR
Changes that a killed run left; the next start undoes them, or \fBtoll doctor \-\-restore\fR.
.PP
Directories of other users, and those that they may write to, are refused;
\fBtoll doctor\fR lists them.
Without \fBHOME\fR the password database names the home directory.
"#;
