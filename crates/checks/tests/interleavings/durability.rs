//! Model of write-back. Data that `fsync` acknowledged is on the device, no matter
//! which thread wrote it. No change is lost when a write-back or an `fsync` fails.

use loom::sync::{Arc, Mutex};
use loom::thread::{JoinHandle, spawn};

use crate::check;
use crate::source::Timespec;
use crate::write_back_state::{Changes, Outcome, Reached, WriteBack, WriteBackState, write_back};

/// A source of one byte, with a page cache above its device.
#[derive(Default)]
struct Source {
    content: u8,
    device: u8,
    /// Whether the page is dirty. Writing the page clears this, even if the device
    /// refused it.
    is_page_dirty: bool,
    sends_to_fail: usize,
    syncs_to_fail: usize,
    /// Whether a send with sync makes a new file, which is on the device at once.
    replaces: bool,
}

/// One open file, as in the library's `CachedFile`.
struct File {
    copy: Mutex<(u8, WriteBackState)>,
    write_back_lock: Mutex<()>,
    source: Arc<Mutex<Source>>,
}

impl File {
    fn new(source: Source) -> Self {
        Self {
            copy: Mutex::new((0, WriteBackState::default())),
            write_back_lock: Mutex::new(()),
            source: Arc::new(Mutex::new(source)),
        }
    }

    fn write(&self, value: u8) {
        let mut copy = self.copy.lock().unwrap();
        copy.0 = value;
        copy.1.written(0..1, Timespec::default());
    }

    fn write_back(&self, is_sync: bool) -> Result<Outcome, i32> {
        let _writing_back = self.write_back_lock.lock().unwrap();
        write_back(&mut Attempt(self), is_sync)
    }

    fn device(&self) -> u8 {
        self.source.lock().unwrap().device
    }
}

struct Attempt<'a>(&'a File);

impl WriteBack for Attempt<'_> {
    type Error = i32;

    fn with<T>(&self, call: impl FnOnce(&mut WriteBackState) -> T) -> T {
        call(&mut self.0.copy.lock().unwrap().1)
    }

    fn send(&mut self, changes: &Changes, is_sync: bool) -> Result<Reached, i32> {
        let value = self.0.copy.lock().unwrap().0;
        let mut source = self.0.source.lock().unwrap();
        if source.sends_to_fail > 0 {
            source.sends_to_fail -= 1;
            return Err(libc::ENOSPC);
        }
        if !changes.dirty.is_empty() {
            source.content = value;
            source.is_page_dirty = true;
        }
        if is_sync && source.replaces {
            source.device = source.content;
            source.is_page_dirty = false;
            return Ok(Reached::Device);
        }
        Ok(Reached::Source)
    }

    fn sync(&mut self) -> Result<(), i32> {
        let mut source = self.0.source.lock().unwrap();
        let was_dirty = std::mem::take(&mut source.is_page_dirty);
        if source.syncs_to_fail > 0 && was_dirty {
            source.syncs_to_fail -= 1;
            return Err(libc::EIO);
        }
        if was_dirty {
            source.device = source.content;
        }
        Ok(())
    }
}

/// Runs a model of a file to which 1 was written. The source fails the given number of
/// times.
fn check_file(
    (sends_to_fail, syncs_to_fail): (usize, usize),
    model: impl Fn(Arc<File>) + Copy + Sync + Send + 'static,
) {
    for replaces in [false, true] {
        check(move || {
            let file = File::new(Source {
                sends_to_fail,
                syncs_to_fail,
                replaces,
                ..Source::default()
            });
            file.write(1);
            model(Arc::new(file));
        });
    }
}

fn beside<T: 'static>(file: &Arc<File>, work: impl FnOnce(&File) -> T + 'static) -> JoinHandle<T> {
    let file = file.clone();
    spawn(move || work(&file))
}

#[test]
fn fsync_covers_what_another_thread_wrote_and_closed() {
    check_file((0, 0), |file| {
        let closer = beside(&file, |file| file.write_back(false).unwrap());
        file.write_back(true).unwrap();
        assert_eq!(file.device(), 1);
        closer.join().unwrap();
    });
}

#[test]
fn fsync_covers_what_was_written_before_it_while_another_thread_writes_on() {
    check_file((0, 0), |file| {
        let writer = beside(&file, |file| {
            file.write(2);
            file.write_back(false).unwrap();
        });
        file.write_back(true).unwrap();
        assert!(file.device() >= 1);
        writer.join().unwrap();
        file.write_back(true).unwrap();
        assert_eq!(file.device(), 2);
    });
}

#[test]
fn fsync_that_succeeds_after_one_that_failed_has_sent_everything_again() {
    check_file((0, 1), |file| {
        let other = beside(&file, |file| file.write_back(true));
        if file.write_back(true).is_ok() {
            assert_eq!(file.device(), 1);
        }
        let _ = other.join().unwrap();
        file.write_back(true).unwrap();
        assert_eq!(file.device(), 1);
    });
}

#[test]
fn a_kept_file_leaves_the_retry_queue_only_when_its_device_has_it() {
    check_file((1, 1), |file| {
        let keep_if_it_fails = |file: &File, is_sync| {
            if file.write_back(is_sync).is_err() {
                file.copy.lock().unwrap().1.keep();
            }
        };
        let retry = beside(&file, move |file| keep_if_it_fails(file, true));
        // On close, a file in the retry queue is synchronised; others need not be.
        keep_if_it_fails(&file, false);
        retry.join().unwrap();
        let was_kept = file.copy.lock().unwrap().1.is_kept();
        if file.write_back(false).is_ok() && was_kept {
            assert_eq!(file.device(), 1);
        }
        file.write_back(true).unwrap_or(Outcome::Done);
        file.write_back(true).unwrap();
        assert_eq!(file.device(), 1);
    });
}

#[test]
fn a_kept_file_has_a_record_of_all_that_the_source_lacks_while_another_thread_sends_it() {
    check_file((2, 0), |file| {
        let fail_and_record = |file: &File| {
            file.write_back(false).unwrap_err();
            let mut copy = file.copy.lock().unwrap();
            copy.1.keep();
            assert!(copy.1.unsent().overlaps(&(0..1)));
        };
        let retry = beside(&file, fail_and_record);
        fail_and_record(&file);
        retry.join().unwrap();
        file.write_back(true).unwrap();
        assert_eq!(file.device(), 1);
    });
}

#[test]
fn what_is_written_during_a_write_back_is_still_dirty_after_it() {
    check_file((0, 0), |file| {
        let writer = beside(&file, |file| file.write(2));
        file.write_back(false).unwrap();
        writer.join().unwrap();
        file.write_back(false).unwrap();
        assert_eq!(file.source.lock().unwrap().content, 2);
        assert!(!file.copy.lock().unwrap().1.is_changed());
    });
}

#[test]
fn a_failed_sync_makes_dirty_what_was_sent_and_a_failed_send_what_was_to_be() {
    check_file((1, 1), |file| {
        let is_changed = || file.copy.lock().unwrap().1.is_changed();
        assert_eq!(file.write_back(false), Err(libc::ENOSPC));
        assert!(is_changed());
        assert_eq!(file.write_back(false), Ok(Outcome::Done));
        assert!(!is_changed());
        assert_eq!(file.write_back(true), Err(libc::EIO));
        assert!(is_changed());
        assert_eq!(file.write_back(true), Ok(Outcome::Done));
        assert_eq!(file.device(), 1);
    });
}

#[test]
fn a_sync_brings_what_others_wrote_to_the_device_though_the_file_is_durable_here() {
    check_file((0, 0), |file| {
        file.write_back(true).unwrap();
        let mut source = file.source.lock().unwrap();
        (source.content, source.is_page_dirty) = (2, true);
        drop(source);
        file.write_back(true).unwrap();
        assert_eq!(file.device(), 2);
    });
}

#[test]
fn a_removed_file_sends_nothing_and_stays_removed() {
    check_file((0, 0), |file| {
        file.copy.lock().unwrap().1.removed();
        file.write(2);
        assert_eq!(file.write_back(true), Ok(Outcome::Removed));
        assert!(!file.copy.lock().unwrap().1.is_changed());
        assert_eq!(file.source.lock().unwrap().content, 0);
    });
}
