//! Random operations on a mount and on a model of it, as `fsx` does: after
//! each the two must agree, and whenever nothing is open the source must
//! agree with both.
//!
//! The seed is printed; `USERFS_SEED` repeats it, `USERFS_OPERATIONS` says how
//! many operations there are over all settings.

mod mapping;
mod model;
mod operations;

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::common::{Mounted, REMOTE_SETTINGS, SETTINGS, Setting, can_mount, can_mount_remote};
use operations::Run;

/// So many operations take some seconds.
const OPERATIONS: usize = 14_000;

/// A small generator of numbers (Steele, Lea, Flood, "Fast splittable
/// pseudorandom number generators", 2014).
pub struct Random(u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

fn seed() -> u64 {
    let given = std::env::var("USERFS_SEED").ok();
    given.map_or_else(
        || {
            let now = std::time::SystemTime::now();
            let since = now.duration_since(std::time::UNIX_EPOCH);
            since.unwrap().as_nanos() as u64
        },
        |text| text.parse().expect("USERFS_SEED is a number"),
    )
}

fn operations() -> usize {
    let given = std::env::var("USERFS_OPERATIONS").ok();
    given.map_or(OPERATIONS, |text| {
        text.parse().expect("USERFS_OPERATIONS is a number")
    })
}

/// The kernel tells of the last close after it has returned, and what is
/// written back then has a temporary file for a moment.
fn await_no_temporaries(directories: &[PathBuf]) {
    let is_temporary = |name: &OsStr| name.to_string_lossy().starts_with(".toll-");
    let deadline = Instant::now() + Duration::from_secs(600);
    for directory in directories {
        loop {
            let names = fs::read_dir(directory).unwrap();
            let mut names = names.map(|entry| entry.unwrap().file_name());
            let Some(left) = names.find(|name| is_temporary(name)) else {
                break;
            };
            assert!(Instant::now() < deadline, "{left:?} is left");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn agree(setting: &Setting) {
    let can = match setting.is_remote {
        true => can_mount_remote(),
        false => can_mount(),
    };
    if !can {
        return;
    }
    let seed = seed();
    let count = operations() / SETTINGS.len();
    eprintln!("{count} operations in {setting:?} with USERFS_SEED={seed}");
    let mut mounted = Mounted::new(setting);
    let mut run = Run::new(&mut mounted, Random(seed));
    for _ in 0..count {
        run.step();
    }
    run.settle();
}

#[test]
fn random_operations_agree_with_a_model_in_whole() {
    agree(&SETTINGS[0]);
}

#[test]
fn random_operations_agree_with_a_model_in_blocks() {
    agree(&SETTINGS[1]);
}

#[test]
fn random_operations_agree_with_a_model_without_a_copy() {
    agree(&SETTINGS[2]);
}

#[test]
fn random_operations_agree_with_a_model_without_pages() {
    agree(&SETTINGS[3]);
}

#[test]
fn random_operations_agree_with_a_model_with_the_kernels_write_back() {
    agree(&SETTINGS[4]);
}

#[test]
fn random_operations_agree_with_a_model_passing_through() {
    agree(&SETTINGS[5]);
}

#[test]
fn random_operations_over_sftp_agree_with_a_model_in_whole() {
    agree(&REMOTE_SETTINGS[0]);
}

#[test]
fn random_operations_over_sftp_agree_with_a_model_in_blocks() {
    agree(&REMOTE_SETTINGS[1]);
}

#[test]
fn random_operations_over_sftp_agree_with_a_model_without_a_copy() {
    agree(&REMOTE_SETTINGS[2]);
}

#[test]
fn random_operations_over_sftp_agree_with_a_model_without_pages() {
    agree(&REMOTE_SETTINGS[3]);
}

#[test]
fn random_operations_over_sftp_agree_with_a_model_with_the_kernels_write_back() {
    agree(&REMOTE_SETTINGS[4]);
}
