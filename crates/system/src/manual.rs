//! Manual pages of command lines.

use clap::Command;
use clap_mangen::Man;

/// Writes one page (roff) with a section for each verb. `further` is roff that follows at the end.
pub fn render(command: &Command, further: &str, page: &mut Vec<u8>) -> std::io::Result<()> {
    let man = Man::new(command.clone());
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    for verb in verbs(command) {
        render_verb(command, verb, verb.get_name(), page)?;
        for below in verbs(verb) {
            let name = format!("{} {}", verb.get_name(), below.get_name());
            render_verb(command, below, &name, page)?;
        }
    }
    man.render_extra_section(page)?;
    page.extend_from_slice(further.as_bytes());
    Ok(())
}

fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    let all = command.get_subcommands();
    all.filter(|verb| verb.get_name() != "help")
}

fn render_verb(
    program: &Command,
    verb: &Command,
    name: &str,
    page: &mut Vec<u8>,
) -> std::io::Result<()> {
    let program = program.get_bin_name().unwrap_or_else(|| program.get_name());
    let heading = format!(".SH {program} {name}\n").to_uppercase();
    page.extend_from_slice(heading.as_bytes());
    if let Some(about) = verb.get_long_about().or_else(|| verb.get_about()) {
        page.extend_from_slice(format!("{about}\n").as_bytes());
    }
    let man = Man::new(verb.clone());
    let mut section = Vec::new();
    man.render_synopsis_section(&mut section)?;
    man.render_options_section(&mut section)?;
    // Sections of a verb become subsections, since the verb's own heading is the section.
    let section = String::from_utf8_lossy(&section).replace(".SH ", ".SS ");
    // A list of alternatives is one word, which exceeds the line unless it may break.
    let section = section.replace("\\fR|\\fB", "\\fR|\\:\\fB");
    page.extend_from_slice(section.as_bytes());
    Ok(())
}
