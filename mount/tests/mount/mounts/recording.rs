//! What `fsync` and `close` acknowledge over SFTP: the server has answered an
//! `fsync@openssh.com` for the file that was sent after the last write.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;

use crate::mounts::common::{REMOTE_CACHED, REMOTE_MODES, close, open};
use crate::mounts::device::Device;
use crate::mounts::durability::{FSYNCS, SIZES};
use crate::mounts::recorder::{Recorded, each};

/// Translates the answered requests of a server's log to calls of a source.
fn calls(lines: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut calls = Vec::new();
    let mut request: Vec<&str> = Vec::new();
    for line in lines {
        let words = line.iter().map(|word| word.trim_matches(['"', '(', ')']));
        let words: Vec<&str> = words.collect();
        let ["request", _, "sent", answer @ ..] = &words[..] else {
            match words.strip_prefix(&["request"]) {
                Some(asked) => request = asked[1..].to_vec(),
                None => request.extend(words),
            }
            continue;
        };
        let mut call = |call: &str, path: &str, to: &str| {
            calls.push([call, path, to].map(str::to_owned).to_vec());
        };
        match (&request[..], answer) {
            (["open", .., path, "flags", how, "mode", _], ["handle", _, handle]) => {
                let is_made = how.contains("CREATE");
                call(if is_made { "create" } else { "open" }, path, handle);
            }
            (["write", _, "handle", handle, ..], _) => call("write", "", handle),
            (["fsetstat", "handle", handle, ..], _) => call("set_handle", "", handle),
            (["fsync", "handle", handle, _, path], ["status", "0"]) => {
                call("sync", "", handle);
                call("sync_directory", path, "");
            }
            (["posix-rename", _, _, from, _, to], ["status", "0"]) => call("rename", from, to),
            (["remove", .., path], ["status", "0"]) => call("unlink", path, ""),
            _ => {}
        }
    }
    calls
}

/// Panics unless the server has confirmed that the file of a name is on its device with
/// everything that was written.
#[track_caller]
fn assert_durable(recorded: &Recorded, name: &str, what: &str) {
    let (calls, setting) = (calls(&recorded.lines()), &recorded.mounted.setting);
    let loss = Device::after(&calls).would_lose(&recorded.mounted.behind(name));
    assert_eq!(loss, None, "{setting:?}, {what}: {calls:#?}");
}

#[test]
fn an_fsync_waits_for_the_servers_whoever_wrote_and_has_closed() {
    each(&REMOTE_MODES, |recorded| {
        for (how, fsync) in FSYNCS {
            for size in SIZES {
                let name = size.to_string() + how;
                fsync(&recorded.mounted, &name, size);
                assert_durable(recorded, &name, how);
            }
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
        assert_durable(recorded, "f", "close of an overwritten file");
        let file = open(&path);
        file.write_all_at(&[3; 300], 50).unwrap();
        close(file).unwrap();
        assert_durable(recorded, "f", "close of a partly written file");
    });
}
