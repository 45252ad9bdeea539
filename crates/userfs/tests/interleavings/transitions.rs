//! Write-back on one thread: what each answer of the source leads to.

use crate::source::Timespec;
use crate::write_back_state::{Changes, Outcome, Reached, WriteBack, WriteBackState, write_back};

/// A file whose source answers as it is told.
#[derive(Default)]
struct Model {
    state: std::cell::RefCell<WriteBackState>,
    sends: Vec<Result<Reached, i32>>,
    syncs: Vec<Result<(), i32>>,
    /// Starts and ends of the ranges of each write-back.
    sent: Vec<Vec<(u64, u64)>>,
}

impl WriteBack for Model {
    type Error = i32;

    fn with<T>(&self, call: impl FnOnce(&mut WriteBackState) -> T) -> T {
        call(&mut self.state.borrow_mut())
    }

    fn send(&mut self, changes: &Changes, _is_sync: bool) -> Result<Reached, i32> {
        let ranges = changes.dirty.iter();
        self.sent
            .push(ranges.map(|range| (range.start, range.end)).collect());
        self.sends.remove(0)
    }

    fn sync(&mut self) -> Result<(), i32> {
        self.syncs.remove(0)
    }
}

fn written() -> Model {
    let model = Model::default();
    model.with(|state| state.written(0..10, Timespec::default()));
    model
}

#[test]
fn a_failed_sync_makes_dirty_what_was_sent_since_the_last_one_that_succeeded() {
    let mut file = written();
    file.sends = vec![Ok(Reached::Source), Ok(Reached::Device)];
    file.syncs = vec![Err(libc::EIO)];
    assert_eq!(write_back(&mut file, false), Ok(Outcome::Done));
    assert!(!file.with(|state| state.is_changed()));
    assert_eq!(write_back(&mut file, true), Err(libc::EIO));
    assert!(file.with(|state| state.is_changed()));
    assert_eq!(write_back(&mut file, true), Ok(Outcome::Done));
    assert_eq!(file.sent, [[(0, 10)], [(0, 10)]]);
}

#[test]
fn a_sync_reaches_the_source_also_of_a_file_that_is_durable_here() {
    let mut file = written();
    file.sends = vec![Ok(Reached::Device)];
    file.syncs = vec![Ok(()), Ok(())];
    for _ in 0..3 {
        assert_eq!(write_back(&mut file, true), Ok(Outcome::Done));
    }
    assert!(file.syncs.is_empty());
}

#[test]
fn what_fails_to_be_sent_is_sent_with_what_was_written_since() {
    let mut file = written();
    file.sends = vec![Err(libc::ENOSPC), Ok(Reached::Source)];
    assert_eq!(write_back(&mut file, false), Err(libc::ENOSPC));
    file.with(|state| state.written(20..30, Timespec::default()));
    assert_eq!(write_back(&mut file, false), Ok(Outcome::Done));
    assert_eq!(file.sent, [vec![(0, 10)], vec![(0, 10), (20, 30)]]);
}

#[test]
fn a_removed_file_sends_nothing_and_stays_removed() {
    let mut file = written();
    file.with(WriteBackState::removed);
    file.with(|state| state.written(0..10, Timespec::default()));
    assert_eq!(write_back(&mut file, true), Ok(Outcome::Removed));
    assert!(!file.with(|state| state.is_changed()));
}
