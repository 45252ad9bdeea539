//! Model of a cached copy with other writers at the source. Nothing that others wrote
//! before an append here is lost, whatever else opens or writes back. Data that an
//! earlier mount has kept is dropped only when the device has it.

use loom::sync::{Arc, Mutex};
use loom::thread::spawn;

use crate::check;
use crate::ranges::Ranges;
use crate::source::Timespec;
use crate::write_back_state::{Changes, Outcome, Reached, WriteBack, WriteBackState, write_back};

#[derive(Default)]
struct Copy {
    content: Vec<u8>,
    /// Length of the source's file when the copy was fetched or written back.
    version: usize,
    state: WriteBackState,
}

/// One open file, as in the library's `CachedFile` in mode `whole`.
struct File {
    copy: Mutex<Copy>,
    write_back_lock: Mutex<()>,
    source: Mutex<Vec<u8>>,
    sends_to_fail: Mutex<usize>,
}

impl File {
    fn new(sends_to_fail: usize) -> Self {
        Self {
            copy: Mutex::default(),
            write_back_lock: Mutex::new(()),
            source: Mutex::default(),
            sends_to_fail: Mutex::new(sends_to_fail),
        }
    }

    /// Fetches the file again if it changed at the source. An open and the first write
    /// to an unchanged copy do this.
    fn follow(&self) {
        if self.copy.lock().unwrap().state.is_changed() {
            return;
        }
        let _writing_back = self.write_back_lock.lock().unwrap();
        let found = self.source.lock().unwrap().clone();
        let mut copy = self.copy.lock().unwrap();
        if copy.version != found.len() && !copy.state.is_changed() {
            copy.version = found.len();
            copy.state.begin_anew(found.len() as u64);
            copy.content = found;
        }
    }

    fn append(&self, byte: u8) {
        self.follow();
        let mut copy = self.copy.lock().unwrap();
        let end = copy.state.size_bytes();
        copy.content.truncate(end as usize);
        copy.content.push(byte);
        copy.state.written(end..end + 1, Timespec::default());
    }

    fn write_back(&self, is_sync: bool) -> Result<Outcome, i32> {
        let _writing_back = self.write_back_lock.lock().unwrap();
        write_back(&mut Attempt(self), is_sync)
    }

    fn source(&self) -> Vec<u8> {
        self.source.lock().unwrap().clone()
    }
}

struct Attempt<'a>(&'a File);

impl WriteBack for Attempt<'_> {
    type Error = i32;

    fn with<T>(&self, call: impl FnOnce(&mut WriteBackState) -> T) -> T {
        call(&mut self.0.copy.lock().unwrap().state)
    }

    fn send(&mut self, changes: &Changes, _is_sync: bool) -> Result<Reached, i32> {
        let mut sends_to_fail = self.0.sends_to_fail.lock().unwrap();
        if *sends_to_fail > 0 {
            *sends_to_fail -= 1;
            return Err(libc::ENOSPC);
        }
        let content = self.0.copy.lock().unwrap().content[..changes.size_bytes as usize].to_vec();
        let length = content.len();
        *self.0.source.lock().unwrap() = content;
        self.0.copy.lock().unwrap().version = length;
        Ok(Reached::Device)
    }

    fn sync(&mut self) -> Result<(), i32> {
        Ok(())
    }
}

/// Runs a model of a file that is open here. Since the open, another writer has
/// appended a byte at the source.
fn check_file(model: impl Fn(&Arc<File>) + Sync + Send + 'static) {
    check(move || {
        let file = Arc::new(File::new(0));
        file.source.lock().unwrap().push(1);
        model(&file);
    });
}

#[test]
fn an_append_keeps_what_others_wrote_before_while_another_thread_opens_the_file() {
    check_file(|file| {
        let opener = file.clone();
        let opener = spawn(move || opener.follow());
        file.append(2);
        file.write_back(false).unwrap();
        opener.join().unwrap();
        assert_eq!(file.source(), [1, 2]);
    });
}

#[test]
fn two_threads_append_and_write_back_and_nothing_is_lost() {
    check_file(|file| {
        let other = file.clone();
        let other = spawn(move || {
            other.append(2);
            other.write_back(false).unwrap();
        });
        file.append(3);
        file.write_back(false).unwrap();
        other.join().unwrap();
        let mut source = file.source();
        assert_eq!(source.first(), Some(&1));
        source.sort_unstable();
        assert_eq!(source, [1, 2, 3]);
    });
}

#[test]
fn what_an_earlier_mount_kept_is_changed_until_it_is_sent_and_an_open_does_not_drop_it() {
    check(|| {
        let file = Arc::new(File::new(1));
        {
            let mut copy = file.copy.lock().unwrap();
            copy.content = vec![7, 8];
            copy.state.adopt(Changes {
                dirty: std::iter::once(0..2).collect::<Ranges>(),
                size_bytes: 2,
                mtime: None,
                atime: None,
            });
            assert!(copy.state.is_kept() && copy.state.is_changed());
        }
        let retry = file.clone();
        let retry = spawn(move || {
            if retry.write_back(true).is_err() {
                retry.copy.lock().unwrap().state.keep();
            }
        });
        file.follow();
        let closed = file.write_back(false);
        retry.join().unwrap();
        assert_eq!(file.copy.lock().unwrap().content, [7, 8]);
        if closed.is_err() || file.copy.lock().unwrap().state.is_changed() {
            file.write_back(true).unwrap();
        }
        assert_eq!(file.source(), [7, 8]);
    });
}
