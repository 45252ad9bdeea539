//! Parses `[user@]host:dir`, as `scp` and `sshfs` accept it.

use std::fmt;

/// A directory on another host. A path that does not begin with `/` is relative to
/// the user's home directory there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The user on the host; `None` for the user that ssh's configuration names.
    pub user: Option<String>,
    /// The host's name or address, as ssh accepts it.
    pub host: String,
    /// The directory on the host; empty for the home directory.
    pub directory: String,
}

impl Address {
    /// Returns whether a source is on another host: it has a colon before any
    /// slash. A local directory with such a name is written `./a:b`.
    pub fn is_remote(source: &str) -> bool {
        let (_, host) = split_user(source);
        host.starts_with('[')
            || source
                .find(':')
                .is_some_and(|colon| !source[..colon].contains('/'))
    }

    /// Parses `[user@]host:dir`. A host with colons in it is written in brackets:
    /// `[::1]:dir`. The error says what is wrong and what to write.
    pub fn parse(source: &str) -> Result<Self, &'static str> {
        let (user, rest) = split_user(source);
        let split = match rest.strip_prefix('[') {
            Some(bracketed) => bracketed.split_once("]:"),
            None => rest.split_once(':'),
        };
        let Some((host, directory)) = split else {
            return Err("there is no colon after the host; write [user@]host:directory");
        };
        if host.is_empty() || user == Some("") {
            return Err("the host or the user is missing; write [user@]host:directory");
        }
        if host.starts_with('-') || user.is_some_and(|user| user.starts_with('-')) {
            return Err("a host or user cannot begin with a dash");
        }
        if source.contains(|c: char| c.is_control()) {
            return Err("it contains a control character");
        }
        // Shells expand a tilde, but no shell is involved here.
        let directory = match directory.strip_prefix("~/") {
            Some(below) => below,
            None if directory == "~" => "",
            None if directory.starts_with('~') => {
                return Err("~ cannot name another user's home directory; write its path");
            }
            None => directory,
        };
        Ok(Self {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            directory: directory.to_owned(),
        })
    }
}

/// Splits off the user. Returns the user and the text after the `@`.
fn split_user(source: &str) -> (Option<&str>, &str) {
    let host_end = source.find([':', '[', '/']).unwrap_or(source.len());
    match source[..host_end].rsplit_once('@') {
        Some((user, _)) => (Some(user), &source[user.len() + 1..]),
        None => (None, source),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(out, "{user}@")?;
        }
        if self.host.contains(':') {
            write!(out, "[{}]:{}", self.host, self.directory)
        } else {
            write!(out, "{}:{}", self.host, self.directory)
        }
    }
}
