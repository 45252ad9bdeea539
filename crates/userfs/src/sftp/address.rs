//! `[user@]host:dir`, as `scp` and `sshfs` take it.

use std::fmt;

/// A directory of another host. What does not begin with `/` is relative to
/// the user's home directory there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The user there, if it is not the one that ssh's configuration names.
    pub user: Option<String>,
    /// The host's name or address, as ssh takes it.
    pub host: String,
    /// The directory; empty is the home directory.
    pub directory: String,
}

/// Why there is no address, as the end of `cannot read ADDRESS: …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongAddress(String);

impl fmt::Display for WrongAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for WrongAddress {}

impl Address {
    /// Whether a source is of another host: it has a colon before any slash.
    /// A local directory with such a name is written `./a:b`.
    pub fn is_remote(source: &str) -> bool {
        let (_, host) = split_user(source);
        host.starts_with('[')
            || source
                .find(':')
                .is_some_and(|colon| !source[..colon].contains('/'))
    }

    /// Reads `[user@]host:dir`, where a host with colons in it stands in
    /// brackets: `[::1]:dir`.
    ///
    /// # Errors
    /// If a part is missing, or would be an option to ssh.
    pub fn parse(source: &str) -> Result<Self, WrongAddress> {
        let wrong = |what: &str| Err(WrongAddress(what.to_owned()));
        let (user, rest) = split_user(source);
        let split = match rest.strip_prefix('[') {
            Some(bracketed) => bracketed.split_once("]:"),
            None => rest.split_once(':'),
        };
        let Some((host, directory)) = split else {
            return wrong("there is no colon after the host; write [user@]host:directory");
        };
        if host.is_empty() || user == Some("") {
            return wrong("the host or the user is missing; write [user@]host:directory");
        }
        if host.starts_with('-') || user.is_some_and(|user| user.starts_with('-')) {
            return wrong("no host and no user begins with a dash");
        }
        if source.contains(|c: char| c.is_control()) {
            return wrong("there is a control character in it");
        }
        // A tilde is for shells, and there is none on the way.
        let directory = match directory.strip_prefix("~/") {
            Some(below) => below,
            None if directory == "~" => "",
            None if directory.starts_with('~') => {
                return wrong("another user's home directory cannot be named by ~; write its path");
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

/// A user, and what follows the `@`.
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
        match self.host.contains(':') {
            true => write!(out, "[{}]:{}", self.host, self.directory),
            false => write!(out, "{}:{}", self.host, self.directory),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, user: Option<&str>, host: &str, directory: &str) {
        let address = Address::parse(source).unwrap();
        assert_eq!(address.user.as_deref(), user, "{source}");
        assert_eq!(
            (&*address.host, &*address.directory),
            (host, directory),
            "{source}"
        );
        assert!(Address::is_remote(source), "{source}");
    }

    #[test]
    fn addresses_are_read_as_other_programs_read_them() {
        check("host:", None, "host", "");
        check("host:/srv/data", None, "host", "/srv/data");
        check("ann@host:dir/a:b", Some("ann"), "host", "dir/a:b");
        check("ann@corp@host:d", Some("ann@corp"), "host", "d");
        check("[::1]:/srv", None, "::1", "/srv");
        check("ann@[fe80::1%eth0]:", Some("ann"), "fe80::1%eth0", "");
        check("host:~/data", None, "host", "data");
        check("host:~", None, "host", "");
        check("host:a@b", None, "host", "a@b");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for source in ["host", ":dir", "@host:dir", "[::1]", "a@:x", "host:~ann/x"] {
            assert!(Address::parse(source).is_err(), "{source}");
        }
    }

    #[test]
    fn no_address_becomes_an_option_of_ssh() {
        for source in [
            "-oProxyCommand=x:dir",
            "-l@host:dir",
            "ann@-host:dir",
            "[-x]:dir",
            "h\n:d",
        ] {
            assert!(Address::parse(source).is_err(), "{source}");
        }
    }

    #[test]
    fn local_directories_are_none_of_another_host() {
        for source in ["/srv/a:b", "./a:b", "data", "..", "a/b@c:d"] {
            assert!(!Address::is_remote(source), "{source}");
        }
    }

    #[test]
    fn an_address_is_written_as_it_was_read() {
        for source in ["host:", "ann@host:/srv", "ann@[::1]:dir"] {
            assert_eq!(Address::parse(source).unwrap().to_string(), source);
        }
    }
}
