//! Facts that may explain how one machine differs from another.

use std::collections::BTreeMap;

use crate::run::Machine;
use crate::spec::FACTS;

/// Words that end the name of a CPU family.
const CPU_NAME_ENDS: [&str; 4] = ["CPU", "@", "Processor", "processor"];

/// Returns the known facts of a machine, by name. The facts are coarse, because a level that only
/// one machine has can explain nothing.
pub fn facts_of(machine: &Machine) -> BTreeMap<String, String> {
    let levels = [
        cpu_family(&machine.cpu_model),
        release(&machine.kernel_release),
        machine.work_file_system.kind.clone(),
        machine.virtualization.clone(),
        mitigations(machine).to_owned(),
        operating_system(machine.os.as_deref().unwrap_or_default()),
    ];
    FACTS
        .into_iter()
        .zip(levels)
        .filter(|(_, level)| !level.is_empty())
        .map(|(name, level)| (name.to_owned(), level))
        .collect()
}

/// Returns maker and series: `Intel Xeon` for `Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz`.
fn cpu_family(model: &str) -> String {
    let mut plain = model.to_owned();
    for mark in ["(R)", "(r)", "(TM)", "(tm)"] {
        plain = plain.replace(mark, " ");
    }
    let words: Vec<&str> = plain.split_whitespace().collect();
    // For instance, `13th Gen Intel Core`.
    let words = match words.get(1) {
        Some(&"Gen") => &words[2..],
        _ => &words[..],
    };
    let Some((maker, series)) = words.split_first() else {
        return String::new();
    };
    // A virtual CPU has a name such as `EPYC-Milan`.
    let series = series.first().map_or("", |word| before(word, '-'));
    let is_name =
        !CPU_NAME_ENDS.contains(&series) && !series.contains(|c: char| c.is_ascii_digit());
    if is_name && !series.is_empty() {
        format!("{maker} {series}")
    } else {
        (*maker).to_owned()
    }
}

/// Returns major and minor number: `6.18` for `6.18.44-amd64`.
fn release(version: &str) -> String {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let end = version.find(|c| !is_part(c)).unwrap_or(version.len());
    let parts: Vec<&str> = version[..end].split('.').take(2).collect();
    parts.join(".").trim_end_matches('.').to_owned()
}

/// Returns name and version: `Ubuntu 24.04` for `Ubuntu 24.04.1 LTS`.
fn operating_system(name: &str) -> String {
    let mut words = Vec::new();
    for word in before(name, '(').split_whitespace() {
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            words.push(release(word));
            break;
        } else {
            words.push(word.to_owned())
        }
    }
    words.join(" ")
}

/// Returns whether the kernel mitigates the vulnerabilities of the CPU: `on`, `off`,
/// `partly`, or `not needed`; empty if unknown.
fn mitigations(machine: &Machine) -> &'static str {
    if machine.mitigations.is_empty() {
        return "";
    }
    let mut arguments = machine.kernel_command_line.split_whitespace();
    let has = |start: &str| {
        let mut states = machine.mitigations.values();
        states.any(|state| state.starts_with(start))
    };
    match (has("Mitigation"), has("Vulnerable")) {
        _ if arguments.any(|argument| argument == "mitigations=off") => "off",
        (true, true) => "partly",
        (true, false) => "on",
        (false, true) => "off",
        (false, false) => "not needed",
    }
}

fn before(text: &str, end: char) -> &str {
    text.split(end).next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::FileSystem;

    #[test]
    fn a_cpu_is_known_by_its_maker_and_series() {
        for (model, family) in [
            (
                "Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz",
                "Intel Xeon",
            ),
            ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", "Intel Xeon"),
            ("13th Gen Intel(R) Core(TM) i7-1360P", "Intel Core"),
            ("Intel(R) N100", "Intel"),
            ("AMD EPYC", "AMD EPYC"),
            ("AMD EPYC-Milan Processor", "AMD EPYC"),
            ("AMD Ryzen 7 5800X 8-Core Processor", "AMD Ryzen"),
            ("Neoverse-N1", "Neoverse-N1"),
            ("ARMv8 Processor rev 1 (v8l)", "ARMv8"),
            ("", ""),
        ] {
            assert_eq!(cpu_family(model), family, "{model}");
        }
    }

    #[test]
    fn versions_are_cut_after_the_minor_number() {
        for (version, short) in [
            ("6.18.44-fc", "6.18"),
            ("6.1-rc2", "6.1"),
            ("7", "7"),
            ("", ""),
        ] {
            assert_eq!(release(version), short);
        }
        for (name, short) in [
            ("Ubuntu 24.04.1 LTS", "Ubuntu 24.04"),
            ("Debian GNU/Linux 12 (bookworm)", "Debian GNU/Linux 12"),
            ("Arch Linux", "Arch Linux"),
            ("", ""),
        ] {
            assert_eq!(operating_system(name), short);
        }
    }

    fn mitigated(states: &[&str], command_line: &str) -> &'static str {
        let named = states.iter().enumerate();
        mitigations(&Machine {
            mitigations: named
                .map(|(index, state)| (index.to_string(), (*state).to_owned()))
                .collect(),
            kernel_command_line: command_line.to_owned(),
            ..Machine::default()
        })
    }

    #[test]
    fn mitigations_are_on_or_off_or_partly_so() {
        let (safe, good, bad) = (
            "Not affected",
            "Mitigation: PTI",
            "Vulnerable: no microcode",
        );
        assert_eq!(mitigated(&[], ""), "");
        assert_eq!(mitigated(&[safe, safe], ""), "not needed");
        assert_eq!(mitigated(&[safe, good], "quiet"), "on");
        assert_eq!(mitigated(&[bad, good], ""), "partly");
        assert_eq!(mitigated(&[bad, safe], ""), "off");
        assert_eq!(mitigated(&[good, safe], "quiet mitigations=off"), "off");
    }

    #[test]
    fn what_a_machine_does_not_tell_is_no_fact() {
        let machine = Machine {
            virtualization: "KVM".to_owned(),
            work_file_system: FileSystem {
                kind: "ext4".to_owned(),
                ..FileSystem::default()
            },
            ..Machine::default()
        };
        let expected = [("file system", "ext4"), ("virtualization", "KVM")];
        let expected = expected.map(|(name, level)| (name.to_owned(), level.to_owned()));
        assert_eq!(facts_of(&machine), BTreeMap::from(expected));
    }
}
