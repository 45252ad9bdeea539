//! Users of this machine: their names and home directories.
//!
//! The programs are linked statically. In them `getpwuid_r` would load modules of the system's
//! glibc, which must have the same version. So local users are read from `/etc/passwd`, and
//! `getent` finds all other users.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::process;

/// A line of the password database (passwd(5)).
#[derive(Debug, PartialEq, Eq)]
struct User {
    name: String,
    home: PathBuf,
}

fn find(uid: u32) -> Option<User> {
    let local = std::fs::read("/etc/passwd").unwrap_or_default();
    find_in(&local, uid).or_else(|| {
        let uid_text = uid.to_string();
        let found = process::run("getent", &["passwd".as_ref(), uid_text.as_ref()]);
        find_in(found.ok()?.as_bytes(), uid)
    })
}

fn find_in(database: &[u8], uid: u32) -> Option<User> {
    database.split(|byte| *byte == b'\n').find_map(|line| {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        let &[name, _, number, _, _, home, _] = fields.as_slice() else {
            return None;
        };
        let is_wanted = str::from_utf8(number).ok()?.parse() == Ok(uid);
        is_wanted.then(|| User {
            name: String::from_utf8_lossy(name).into_owned(),
            home: OsString::from_vec(home.to_owned()).into(),
        })
    })
}

/// The home directory of the user that this program runs as.
pub fn home() -> Result<PathBuf, String> {
    let named = std::env::var_os("HOME").map(PathBuf::from);
    // An empty or relative path would lead below the current directory.
    if let Some(home) = named.filter(|home| home.is_absolute()) {
        return Ok(home);
    }
    let uid = rustix::process::geteuid().as_raw();
    let home = find(uid).map(|user| user.home);
    home.filter(|home| home.is_absolute()).ok_or_else(|| {
        format!(
            "cannot find the home directory: neither HOME nor the password database (uid {uid}) \
             has an absolute path; set HOME"
        )
    })
}

/// Returns the name of a user for messages; `uid N` for an unknown user.
pub fn user_name(uid: u32) -> String {
    find(uid).map_or_else(|| format!("uid {uid}"), |user| user.name)
}

/// The user that a process runs as; `None` if the process is gone or hidden.
pub fn user_of_process(pid: u32) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let metadata = Path::new("/proc").join(pid.to_string()).metadata().ok()?;
    Some(user_name(metadata.uid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number_and_broken_lines_are_passed_over() {
        let database = b"\nbroken\nx:x:one:1::/x:/bin/sh\nroot:x:0:0:root:/root:/bin/bash\n\
                         a:x:1000:1000:A,,,:/home/\xff:/bin/sh\nb:x:1000:1:::\n";
        let name = |uid| find_in(database, uid).map(|user| user.name);
        assert_eq!(name(0).as_deref(), Some("root"));
        assert_eq!(name(1000).as_deref(), Some("a"));
        assert_eq!(name(1), None);
        let home = find_in(database, 1000).unwrap().home;
        assert_eq!(home.into_os_string().into_vec(), b"/home/\xff");
    }

    #[test]
    fn a_user_without_a_name_is_shown_by_number() {
        assert_eq!(user_name(u32::MAX - 7), "uid 4294967288");
    }
}
