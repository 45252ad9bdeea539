//! Fills in the placeholders of commands.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::plan::{Plan, Treatment};
use crate::spec::adhoc::{self, effective_shell};
use crate::spec::quoting::Quotes;
use crate::spec::{Experiment, PerCommand, Shell};

/// Returns why a treatment's command cannot run on this machine: its program is given by a path
/// that does not exist.
pub fn missing_program(experiment: &Experiment, treatment: &Treatment) -> Option<String> {
    if experiment.workload.commands.is_empty() || treatment.boot().is_some() {
        return None;
    }
    let expansion = Expansion {
        experiment,
        treatment,
        workdir: String::new(),
    };
    expansion.missing_program(&expansion.expand(expansion.template()))
}

/// Returns why the command lines of an experiment cannot contain the path of a work directory.
pub fn unquotable(experiment: &Experiment, plan: &Plan, directory: &str) -> Option<String> {
    let workload = &experiment.workload;
    let check = |treatment: &Treatment| {
        let expansion = Expansion {
            experiment,
            treatment,
            workdir: directory.to_owned(),
        };
        for hook in [&workload.setup, &workload.cleanup].into_iter().flatten() {
            expansion.command_line(hook, &sh())?;
        }
        expansion.beside(workload.prepare.as_ref())?;
        expansion.beside(workload.conclude.as_ref())?;
        expansion.command_line(expansion.template(), &workload.shell)
    };
    let on_host = plan.treatments.iter().filter(|one| one.boot().is_none());
    on_host.map(check).find_map(Result::err)
}

/// The shell for commands that run around the trials.
pub(super) fn sh() -> Shell {
    Shell::Program("sh".into())
}

/// Returns the files that a treatment's command reads and writes on this machine, if the user
/// names them: input and output.
pub fn command_files(experiment: &Experiment, treatment: &Treatment) -> [Option<PathBuf>; 2] {
    let workload = &experiment.workload;
    if workload.commands.is_empty() || treatment.boot().is_some() {
        return [None, None];
    }
    let expansion = Expansion {
        experiment,
        treatment,
        workdir: String::new(),
    };
    let file = |template: Option<&String>, words: &[&str]| {
        // The work directory is made for this run, and contains no file of the user.
        let template = template.filter(|template| !template.contains("{workdir}"))?;
        let name = expansion.expand(template);
        (!words.contains(&name.as_str())).then(|| name.into())
    };
    let output = workload.output.get(expansion.command_name());
    [
        file(Some(&workload.input), &["null", "file", "pipe"]),
        file(output, &["null", "pipe", "pipe-spliced", "socket", "file"]),
    ]
}

/// The values for the placeholders of commands.
pub(super) struct Expansion<'a> {
    pub experiment: &'a Experiment,
    pub treatment: &'a Treatment,
    pub workdir: String,
}

impl Expansion<'_> {
    /// Expands a command that `sh` runs beside the treatment's own command.
    pub fn beside(&self, lines: Option<&PerCommand>) -> Result<Option<String>, String> {
        let line = lines.and_then(|lines| lines.get(self.command_name()));
        line.map(|line| self.command_line(line, &sh())).transpose()
    }

    /// Returns why a command cannot run: its program is given by a path that does not exist.
    pub fn missing_program(&self, command: &str) -> Option<String> {
        let spec = &self.experiment.workload;
        // A set-up or preparation may make the program later. Otherwise the program's name was
        // mistyped, which must not pass as skipped.
        let may_be_made = spec.setup.is_some() || spec.prepare.is_some();
        let is_direct = effective_shell(&spec.shell, command) == toll_wire::ShellChoice::None;
        if !is_direct || may_be_made || self.experiment.name == adhoc::NAME {
            return None;
        }
        let program = command.split_whitespace().next()?;
        if !program.contains('/') || program.contains(['"', '\'', '\\']) {
            return None;
        }
        let is_program = std::fs::metadata(program)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
        (!is_program).then(|| format!("there is no program {program}"))
    }

    /// The name of the treatment's command: its level, or the only command's name.
    pub fn command_name(&self) -> &str {
        let commands = &self.experiment.workload.commands;
        let level = self.treatment.levels.get("command");
        let chosen = level.and_then(|level| commands.get_key_value(&level.text));
        chosen
            .or_else(|| commands.first_key_value())
            .map_or("", |(name, _)| name)
    }

    pub fn template(&self) -> &str {
        let commands = &self.experiment.workload.commands;
        commands.get(self.command_name()).map_or("", String::as_str)
    }

    pub fn environment(&self) -> BTreeMap<String, String> {
        let all = &self.experiment.workload.environment;
        let variables = all.get(self.command_name()).into_iter().flatten();
        variables
            .map(|(name, value)| (name.clone(), self.expand(value)))
            .collect()
    }

    /// Fills in `{factor}` and `{workdir}` in a string that no shell reads.
    pub fn expand(&self, template: &str) -> String {
        let filled = self.filled(template, |_, path| Ok::<_, Infallible>(path.to_owned()));
        match filled {
            Ok(text) => text,
        }
    }

    /// Expands a command line that a shell reads, or that is split into words. The work directory
    /// is one word, or part of one, whatever its path. A level's text comes from the user, and so
    /// do its quotes.
    pub fn command_line(&self, template: &str, shell: &Shell) -> Result<String, String> {
        let mut quotes = Quotes::new(shell);
        let mut passed = 0;
        self.filled(template, |before, path| {
            quotes.pass(&before[passed..]);
            let quoted = quotes.quoted(path);
            quotes.pass(quoted.as_deref().unwrap_or_default());
            passed = before.len() + quoted.as_ref().map_or(0, String::len);
            quoted.map_err(|why| {
                format!("cannot replace {{workdir}} in `{template}` by {path}: {why}")
            })
        })
    }

    /// Fills in placeholders. Other braces stay, since shells and awk have their own uses for them.
    /// A level's text is not itself expanded. `put` gets the text before the work directory, and
    /// the directory's path.
    fn filled<E>(
        &self,
        template: &str,
        mut put: impl FnMut(&str, &str) -> Result<String, E>,
    ) -> Result<String, E> {
        let mut expanded = String::new();
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            expanded.push_str(&rest[..open]);
            let after = &rest[open + 1..];
            let named = after
                .find('}')
                .map(|close| (&after[..close], &after[close + 1..]));
            let level = |name: &str| self.treatment.levels.get(name);
            match named {
                Some(("workdir", behind)) => {
                    let path = put(&expanded, &self.workdir)?;
                    expanded.push_str(&path);
                    rest = behind;
                }
                Some((name, behind)) if level(name).is_some() => {
                    expanded.push_str(level(name).map_or("", |level| &level.text));
                    rest = behind;
                }
                _ => {
                    expanded.push('{');
                    rest = after;
                }
            }
        }
        expanded.push_str(rest);
        Ok(expanded)
    }
}
