//! The user's environment, which commands inherit and the probe does not.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStringExt;

use toll_wire::Variable;

/// Longest value that a run records, in bytes.
const VALUE_BYTES_MAX: usize = 4096;

/// The variables of this process, in their order, for a command to inherit.
pub fn inherited() -> Vec<Variable> {
    let all = std::env::vars_os();
    all.map(|(name, value)| Variable::new(name.into_vec(), &value.into_vec()))
        .collect()
}

/// The environment variables that can change the results of measured commands, with their values.
/// Other variables are not recorded, since some hold secrets.
pub fn that_change_measurements() -> BTreeMap<String, String> {
    let is_recorded = |name: &str| {
        ["LD_", "MALLOC_", "LC_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || ["GLIBC_TUNABLES", "LANG", "PATH"].contains(&name)
    };
    let names = std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| is_recorded(name))?;
        let mut value = value.to_string_lossy().into_owned();
        if value.len() > VALUE_BYTES_MAX {
            value.truncate(value.floor_char_boundary(VALUE_BYTES_MAX));
            value.push('…');
        }
        Some((name, value))
    });
    names.collect()
}
