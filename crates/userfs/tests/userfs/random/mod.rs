//! Random operations on a mount and on a model of it, as `fsx` does: after
//! each the two must agree, and whenever nothing is open the source must
//! agree with both.
//!
//! The seed is printed; `USERFS_SEED` repeats it, `USERFS_OPERATIONS` says how
//! many operations there are over all settings.

mod model;
mod operations;

use crate::common::{REMOTE_SETTINGS, SETTINGS, Setting, each};
use operations::Run;

/// So many operations take some seconds.
const OPERATIONS: u64 = 14_000;

/// A small generator of numbers (Steele, Lea, Flood, "Fast splittable
/// pseudorandom number generators", 2014).
pub struct Random(pub u64);

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

fn number(variable: &str) -> Option<u64> {
    let given = std::env::var(variable).ok()?;
    Some(given.parse().expect("it is a number"))
}

fn agree(setting: &Setting) {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = number("USERFS_SEED").unwrap_or(since.as_nanos() as u64);
    let count = number("USERFS_OPERATIONS").unwrap_or(OPERATIONS) / SETTINGS.len() as u64;
    each([setting], |mounted| {
        eprintln!("{count} operations with USERFS_SEED={seed}");
        let mut run = Run::new(mounted, Random(seed));
        for _ in 0..count {
            run.step();
        }
        run.settle();
    });
}

macro_rules! agree {
    ($($test:ident: $setting:expr;)*) => {$(
        #[test]
        fn $test() {
            agree(&$setting);
        }
    )*};
}

agree! {
    random_operations_agree_with_a_model_in_whole: SETTINGS[0];
    random_operations_agree_with_a_model_in_blocks: SETTINGS[1];
    random_operations_agree_with_a_model_without_a_copy: SETTINGS[2];
    random_operations_agree_with_a_model_without_pages: SETTINGS[3];
    random_operations_agree_with_a_model_with_the_kernels_write_back: SETTINGS[4];
    random_operations_agree_with_a_model_passing_through: SETTINGS[5];
    random_operations_over_sftp_agree_with_a_model_in_whole: REMOTE_SETTINGS[0];
    random_operations_over_sftp_agree_with_a_model_in_blocks: REMOTE_SETTINGS[1];
    random_operations_over_sftp_agree_with_a_model_without_a_copy: REMOTE_SETTINGS[2];
    random_operations_over_sftp_agree_with_a_model_without_pages: REMOTE_SETTINGS[3];
    random_operations_over_sftp_agree_with_a_model_with_the_kernels_write_back: REMOTE_SETTINGS[4];
}
