//! What `fsync` and `close` acknowledge over SFTP: the server has answered
//! `fsync@openssh.com` for the file, and that was asked after the last write.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::{REMOTE_CACHED, REMOTE_MODES, close, open};
use crate::recorder::{Recorded, each};

/// How far the content of a file on the server has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Opened,
    Written,
    Durable,
}

/// How far the content of what has a name now has come.
fn content_of(lines: &[Vec<String>], path: &Path) -> Option<Content> {
    let mut files = Vec::new();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut handles: BTreeMap<&str, usize> = BTreeMap::new();
    let mut request: Vec<&str> = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        let ["request", _, "sent", answer @ ..] = &words[..] else {
            match words.strip_prefix(&["request"]) {
                Some(asked) => request = asked[1..].to_vec(),
                None => request.extend(words),
            }
            continue;
        };
        match (&request[..], answer) {
            (["open", .., "open", name, _, _, _, _], ["handle", _, handle]) => {
                let file = *names.entry(*name).or_insert(files.len());
                files.resize(files.len().max(file + 1), Content::Opened);
                handles.insert(*handle, file);
            }
            (["write", _, _, handle, ..], _) => {
                files[handles[handle.trim_end_matches(')')]] = Content::Written;
            }
            // Another handle is a directory's.
            (["fsync", _, handle, ..], ["status", "0"]) => {
                if let Some(file) = handles.get(handle.trim_end_matches(')'))
                    && files[*file] == Content::Written
                {
                    files[*file] = Content::Durable;
                }
            }
            (["posix-rename", _, _, from, _, to], ["status", "0"]) => {
                if let Some(file) = names.remove(*from) {
                    names.insert(*to, file);
                }
            }
            _ => {}
        }
    }
    let file = names.get(&*format!("{path:?}"))?;
    Some(files[*file])
}

/// Fails unless the server has answered that what a name stands for is on its
/// device with all that was written.
#[track_caller]
fn assert_durable(recorded: &Recorded, name: &str, what: &str) {
    let lines = recorded.lines();
    let found = content_of(&lines, &recorded.mounted.behind(name));
    let (setting, end) = (
        &recorded.mounted.setting,
        &lines[lines.len().max(12) - 12..],
    );
    let is_durable = found == Some(Content::Durable);
    assert!(is_durable, "{setting:?}, {what}: {found:?}\n{end:#?}");
}

#[test]
fn an_fsync_waits_for_the_servers() {
    each(&REMOTE_MODES, |recorded| {
        for (name, bytes) in [("short", 10_000), ("long", 3 << 20)] {
            let mut file = File::create_new(recorded.mounted.path(name)).unwrap();
            for content in [vec![1; bytes], vec![2; 5000]] {
                file.write_all(&content).unwrap();
                file.sync_all().unwrap();
                assert_durable(recorded, name, "fsync of a new file");
            }
            file.write_all_at(&[3; 200], 100).unwrap();
            file.sync_data().unwrap();
            assert_durable(recorded, name, "fdatasync of a changed file");
        }
    });
}

#[test]
fn a_close_that_has_replaced_a_file_has_waited_for_the_servers_fsync() {
    each(REMOTE_CACHED, |recorded| {
        fs::write(recorded.mounted.behind("f"), vec![1; 50_000]).unwrap();
        let path = recorded.mounted.path("f");
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![2; 40_000]).unwrap();
        close(file).unwrap();
        assert_durable(recorded, "f", "close of a file that was written anew");
        let file = open(&path);
        file.write_all_at(&[3; 300], 50).unwrap();
        close(file).unwrap();
        assert_durable(recorded, "f", "close of a file of which a part was written");
    });
}
