//! The name of a kernel that guests boot.

use serde::{Deserialize, Serialize};

/// Longest name, so that it fits into the name of a cache directory.
const BYTES_MAX: usize = 32;

/// A name that can be a level, a file name and the name of a make variable.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KernelName(String);

impl KernelName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for KernelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_first = |byte: &u8| byte.is_ascii_lowercase();
        let is_further =
            |byte: u8| is_first(&byte) || byte.is_ascii_digit() || b"._-".contains(&byte);
        let is_name = text.len() <= BYTES_MAX
            && text.as_bytes().first().is_some_and(is_first)
            && text.bytes().all(is_further);
        if is_name {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!(
                "a kernel's name is a lower-case letter and at most {} more lower-case letters, \
                 digits and characters of \"._-\"",
                BYTES_MAX - 1
            ))
        }
    }
}

impl TryFrom<String> for KernelName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<KernelName> for String {
    fn from(name: KernelName) -> Self {
        name.0
    }
}

impl std::fmt::Display for KernelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

#[test]
fn names_are_words_of_lower_case() {
    for name in ["toll", "toll-debug", "v6.12_a", "a", &"a".repeat(BYTES_MAX)] {
        assert_eq!(name.parse::<KernelName>().unwrap().as_str(), name);
    }
    for name in [
        "",
        "Mine",
        "6.12",
        "-a",
        "a b",
        "a/b",
        "é",
        "../a",
        &"a".repeat(33),
    ] {
        assert!(name.parse::<KernelName>().is_err(), "{name}");
    }
}
