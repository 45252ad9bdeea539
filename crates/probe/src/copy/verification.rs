//! What a copy should deliver.

use toll_wire::{CopyRequest, Failure, Source};

use crate::verify::{self, Arrived, Expected};

pub fn check(arrived: &Arrived, copy: &CopyRequest) -> Result<(), Failure> {
    let xxh3 = match &copy.source {
        Source::File { xxh3, .. } => *xxh3,
        Source::Zero => verify::hash_zeros(copy.size_bytes),
    };
    let expected = Expected {
        bytes: copy.size_bytes,
        xxh3,
    };
    verify::check(arrived, &expected)
}
