//! What `fsync` and `close` acknowledge over SFTP: the server has answered
//! `fsync@openssh.com` for the file, and that was asked after the last write.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::common::{REMOTE_CACHED, REMOTE_MODES, Setting, close, open};
use crate::recorder::Recorded;

/// What is known of a file on the server.
#[derive(Default, Clone)]
struct Known {
    is_written: bool,
    is_durable: bool,
    /// Numbers of requests for durability since the last write.
    asked: Vec<String>,
}

fn durable(said: &[Vec<String>], path: &Path) -> Result<(), String> {
    let mut files: Vec<Known> = Vec::new();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut handles: BTreeMap<&str, usize> = BTreeMap::new();
    let mut opens: BTreeMap<&str, &str> = BTreeMap::new();
    let mut renames: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for words in said {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["OPEN", id, name] => {
                opens.insert(id, name);
            }
            ["HANDLE", id, handle] => {
                // Others are of directories.
                if let Some(name) = opens.remove(id) {
                    let file = *names.entry(name).or_insert(files.len());
                    files.resize(files.len().max(file + 1), Known::default());
                    handles.insert(handle, file);
                }
            }
            ["WRITE", _, handle] => {
                files[handles[handle]] = Known {
                    is_written: true,
                    ..Known::default()
                };
            }
            ["FSYNC", id, handle] => {
                if let Some(file) = handles.get(handle) {
                    files[*file].asked.push(id.to_owned());
                }
            }
            ["RENAME", id, from, to] => {
                renames.insert(id, (from, to));
            }
            ["STATUS", id, "0"] => {
                if let Some((from, to)) = renames.remove(id)
                    && let Some(file) = names.remove(from)
                {
                    names.insert(to, file);
                }
                for file in &mut files {
                    file.is_durable |= file.asked.iter().any(|asked| asked == id);
                }
            }
            _ => {}
        }
    }
    let file = names.get(path.to_str().unwrap()).map(|file| &files[*file]);
    match file {
        None => Err("the server has not opened it".into()),
        Some(file) if !file.is_written => Err("nothing was written to it".into()),
        Some(file) if !file.is_durable => {
            Err("no answer to fsync@openssh.com came after the last write".into())
        }
        Some(_) => Ok(()),
    }
}

/// Fails unless the server has answered that what a name stands for is on its
/// device with all that was written.
#[track_caller]
fn assert_durable(recorded: &Recorded, name: &str, what: &str) {
    let said = recorded.said();
    let (path, setting) = (recorded.mounted.behind(name), &recorded.mounted.setting);
    if let Err(why) = durable(&said, &path) {
        let end = &said[said.len().saturating_sub(12)..];
        panic!("{setting:?}, {what}: {why}\n{end:#?}");
    }
}

fn each(settings: &[Setting], test: impl Fn(&Recorded)) {
    for setting in settings.iter().filter(|setting| setting.is_possible()) {
        test(&Recorded::new(setting));
    }
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
fn an_fsync_waits_for_the_servers_whoever_wrote_and_has_closed() {
    each(&REMOTE_MODES, |recorded| {
        for (name, bytes) in [("short", 10_000), ("long", 3 << 20)] {
            let path = recorded.mounted.path(name);
            let mut file = File::create_new(&path).unwrap();
            file.write_all(&vec![1; bytes]).unwrap();
            File::open(&path).unwrap().sync_all().unwrap();
            assert_durable(recorded, name, "fsync by another descriptor");
            file.write_all(&[2; 300]).unwrap();
            close(file).unwrap();
            File::open(&path).unwrap().sync_all().unwrap();
            assert_durable(recorded, name, "fsync after close");
            let file = open(&path);
            file.write_all_at(&[3; 300], 50).unwrap();
            close(file).unwrap();
            let directory = File::open(&recorded.mounted.at).unwrap();
            directory.sync_all().unwrap();
            File::open(&path).unwrap().sync_all().unwrap();
            assert_durable(recorded, name, "fsync after a change in place was closed");
        }
        let path = recorded.mounted.path("new");
        fs::write(&path, [1; 10_000]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        assert_durable(recorded, "new", "fsync after a new file was closed");
    });
}

#[test]
fn a_close_that_has_replaced_a_file_has_waited_for_the_servers_fsync() {
    each(&REMOTE_CACHED, |recorded| {
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
