//! Tests of replies to reads without a copy.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::pipe::PipeFlags;

use super::{BYTES_MIN, Device, HEADER_BYTES, PIPE_BYTES, Pipe, header};

fn file_of(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at / 4 % 251) as u8).collect()
}

/// A pipe in place of the device, with room for every reply here.
fn device() -> (OwnedFd, Device) {
    let (from, to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    rustix::pipe::fcntl_setpipe_size(&to, PIPE_BYTES).unwrap();
    (from, Device::new(to))
}

fn taken(from: &OwnedFd, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut from = File::from(from.try_clone().unwrap());
    from.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn an_answer_says_its_length_and_its_request_and_ends_with_the_file() {
    let content = content(100_001);
    let file = file_of(&content);
    let (from, device) = device();
    for (offset, size, length) in [
        (0, 65_536, 65_536),
        (4_096, 65_536, 65_536),
        (65_535, 131_072, 34_466),
        (1, 131_072, 100_000),
    ] {
        assert!(device.answer(7, file.as_fd(), offset as u64, size));
        let answer = taken(&from, HEADER_BYTES + length);
        let said = u32::from_ne_bytes(answer[..4].try_into().unwrap());
        assert_eq!(said as usize, HEADER_BYTES + length);
        assert_eq!(answer[4..8], [0; 4]);
        assert_eq!(answer[8..16], 7_u64.to_ne_bytes());
        assert!(answer[16..] == content[offset..offset + length]);
    }
}

#[test]
fn short_answers_and_those_longer_than_the_pipe_are_left_to_be_copied() {
    let (_from, device) = device();
    let file = file_of(&content(100_000));
    assert!(!device.answer(1, file.as_fd(), 0, BYTES_MIN - 1));
    assert!(!device.answer(1, file.as_fd(), 99_000, 131_072));
    assert!(!device.answer(1, file.as_fd(), 200_000, 131_072));
    let long = file_of(&content(PIPE_BYTES));
    assert!(!device.answer(1, long.as_fd(), 0, PIPE_BYTES));
    assert!(device.can_splice.load(Ordering::Relaxed));
}

#[test]
fn what_could_not_be_sent_is_in_no_later_answer() {
    let content = content(70_000);
    let file = file_of(&content);
    let refusing = Device::new(File::open("/dev/null").unwrap().into());
    assert!(!refusing.answer(1, file.as_fd(), 0, 65_536));
    let (from, device) = device();
    assert!(device.answer(2, file.as_fd(), 4_096, 65_536));
    let answer = taken(&from, HEADER_BYTES + 65_536);
    assert_eq!(answer[8..16], 2_u64.to_ne_bytes());
    assert!(answer[16..] == content[4_096..4_096 + 65_536]);
}

#[test]
fn a_file_that_is_shorter_than_it_was_fills_no_pipe() {
    let pipe = Pipe::new().unwrap();
    let file = file_of(&content(50_000));
    let header = header(1, 50_001).unwrap();
    assert_eq!(pipe.fill(&header, file.as_fd(), 0, 50_001), Ok(false));
}
