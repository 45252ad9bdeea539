//! Kernel configurations: what a fragment asks for and what came of it.

use std::collections::BTreeMap;

/// Options by name, without `CONFIG_`; those that are off are left out.
pub(super) type Options = BTreeMap<String, String>;

/// One line: an option and its value, `n` if it is off.
fn option(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let off = |line: &'static str| line;
    if let Some(rest) = line.strip_prefix("# CONFIG_") {
        return Some((rest.strip_suffix(" is not set")?, off("n")));
    }
    line.strip_prefix("CONFIG_")?.split_once('=')
}

/// The options that a configuration sets.
pub(super) fn options(config: &str) -> Options {
    config
        .lines()
        .filter_map(option)
        .filter(|(_, value)| *value != "n")
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// What fragments ask for and a configuration does not have, which happens
/// without a word from the kernel's tools: an option was renamed, or what it
/// depends on is off. Where fragments differ the last one counts. To be off
/// and to be unknown are the same.
pub(super) fn dropped(fragments: &[&str], config: &str) -> Vec<String> {
    let asked: BTreeMap<&str, &str> = fragments
        .iter()
        .flat_map(|fragment| fragment.lines())
        .filter_map(option)
        .collect();
    let has = options(config);
    let value_of = |name: &str| has.get(name).map_or("n", String::as_str);
    asked
        .into_iter()
        .filter(|(name, value)| value_of(name) != *value)
        .map(|(name, value)| format!("CONFIG_{name}={value} (is {})", value_of(name)))
        .collect()
}

/// An option that two configurations have differently.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ConfigDifference {
    /// Its name without `CONFIG_`.
    pub option: String,
    /// Its value here, `n` if it is off.
    pub here: String,
    /// Its value in the other configuration.
    pub there: String,
}

/// Where two configurations differ, by the options' names.
pub(super) fn differences(here: &str, there: &str) -> Vec<ConfigDifference> {
    let (here, there) = (options(here), options(there));
    let mut names: Vec<&String> = here.keys().chain(there.keys()).collect();
    names.sort();
    names.dedup();
    let value =
        |options: &Options, name: &String| options.get(name).cloned().unwrap_or_else(|| "n".into());
    names
        .into_iter()
        .map(|name| ConfigDifference {
            option: name.clone(),
            here: value(&here, name),
            there: value(&there, name),
        })
        .filter(|difference| difference.here != difference.there)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "#\n# General setup\n#\nCONFIG_SMP=y\nCONFIG_NR_CPUS=8\n\
                          # CONFIG_VT is not set\nCONFIG_LOCALVERSION=\"-toll\"\n";

    #[test]
    fn options_that_took_effect_are_not_complained_of() {
        let fragment = "CONFIG_SMP=y\nCONFIG_LOCALVERSION=\"-toll\"\nCONFIG_VT=n\n";
        assert_eq!(dropped(&[fragment], CONFIG), [""; 0]);
    }

    #[test]
    fn dropped_and_changed_options_are_named_with_what_they_are() {
        let fragment = "CONFIG_EXT5_FS=y\nCONFIG_NR_CPUS=64\n";
        assert_eq!(
            dropped(&[fragment], CONFIG),
            ["CONFIG_EXT5_FS=y (is n)", "CONFIG_NR_CPUS=64 (is 8)"]
        );
    }

    #[test]
    fn an_option_to_be_off_may_be_unknown_but_not_on() {
        let fragment = "# CONFIG_NEVER_HEARD is not set\n# CONFIG_SMP is not set\n";
        assert_eq!(dropped(&[fragment], CONFIG), ["CONFIG_SMP=n (is y)"]);
    }

    #[test]
    fn the_last_fragment_counts() {
        assert_eq!(
            dropped(&["CONFIG_SMP=n\nCONFIG_VT=y\n", "CONFIG_SMP=y\n"], CONFIG),
            ["CONFIG_VT=y (is n)"]
        );
    }

    #[test]
    fn differences_take_off_and_unknown_for_the_same() {
        let other = "CONFIG_SMP=y\nCONFIG_NR_CPUS=8\nCONFIG_KASAN=y\n# CONFIG_FOO is not set\n";
        let found: Vec<String> = differences(CONFIG, other)
            .into_iter()
            .map(|d| format!("{} {} {}", d.option, d.here, d.there))
            .collect();
        assert_eq!(found, ["KASAN n y", "LOCALVERSION \"-toll\" n"]);
    }
}
