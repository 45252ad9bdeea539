//! Paths of the server, and names that come from it.

/// The longest name and the longest path that Linux knows.
const NAME_BYTES_MAX: usize = 255;
const PATH_BYTES_MAX: usize = 4095;

/// The directory that a path of the server lies in.
pub(super) fn parent(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        None | Some(0) => b"/",
        Some(at) => &path[..at],
    }
}

/// Whether something can be a name in a directory. What cannot would lead
/// elsewhere, or hide what follows it.
pub(super) fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name != b"."
        && name != b".."
        && !name.contains(&b'/')
        && !name.contains(&0)
}

/// Whether a path is longer than Linux takes, in all or in one name.
pub(super) fn is_too_long(path: &[u8]) -> bool {
    path.len() > PATH_BYTES_MAX
        || path
            .split(|byte| *byte == b'/')
            .any(|name| name.len() > NAME_BYTES_MAX)
}
