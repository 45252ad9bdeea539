//! `toll man`

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use super::{Cli, output};

#[derive(Debug, Args)]
pub(super) struct ManArguments {}

/// Prints one page (roff) with a section for each verb, so that `toll man |
/// man -l -` has everything.
pub(super) fn run(_: &ManArguments) -> anyhow::Result<ExitCode> {
    let mut command = Cli::command();
    command.build();
    let mut page = Vec::new();
    render(&command, &mut page).context("cannot write the manual page")?;
    output::document(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::SUCCESS)
}

fn render(command: &Command, page: &mut Vec<u8>) -> std::io::Result<()> {
    let man = Man::new(command.clone());
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    for verb in verbs(command) {
        render_verb(verb, verb.get_name(), page)?;
        for below in verbs(verb) {
            let name = format!("{} {}", verb.get_name(), below.get_name());
            render_verb(below, &name, page)?;
        }
    }
    man.render_extra_section(page)?;
    page.extend_from_slice(FILES.as_bytes());
    Ok(())
}

fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    let all = command.get_subcommands();
    all.filter(|verb| verb.get_name() != "help")
}

fn render_verb(verb: &Command, name: &str, page: &mut Vec<u8>) -> std::io::Result<()> {
    page.extend_from_slice(format!(".SH TOLL {}\n", name.to_uppercase()).as_bytes());
    if let Some(about) = verb.get_long_about().or_else(|| verb.get_about()) {
        page.extend_from_slice(format!("{about}\n").as_bytes());
    }
    let man = Man::new(verb.clone());
    let mut section = Vec::new();
    man.render_synopsis_section(&mut section)?;
    man.render_options_section(&mut section)?;
    // Headings one deeper, since the verb's own is the section.
    let section = String::from_utf8_lossy(&section).replace(".SH ", ".SS ");
    // Alternatives are one word, which is longer than a line unless it may break.
    let section = section.replace("\\fR|\\fB", "\\fR|\\:\\fB");
    page.extend_from_slice(section.as_bytes());
    Ok(())
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
Kernels for guests, a directory each. What they are built in is beside it, in \fIkernel\-work/\fR.
.TP
\fI$XDG_STATE_HOME/toll/leftovers/\fR
What a killed run has to put back; the next start does so, or \fBtoll doctor \-\-restore\fR.
.PP
Directories of others, and those that others may write to, are refused; \fBtoll doctor\fR lists them.
Without \fBHOME\fR the password database names the home directory.
"#;
