use std::io::Write;

use toll_wire::{AccessOrder, Addressing};

use super::*;

const BUFFER_BYTES: u64 = 1 << 20;

fn request() -> MemoryRequest {
    MemoryRequest {
        addressing: Addressing::Corrected,
        order: AccessOrder::Random,
        buffer_bytes: BUFFER_BYTES,
        steps: 20,
        seed: 1,
        ..MemoryRequest::default()
    }
}

#[test]
fn a_read_or_a_write_too_few_is_noticed() {
    let request = request();
    let pattern = Pattern::new(&request);
    let toucher = Toucher::new(&request).unwrap();
    let region = toucher.initialise().unwrap();
    let mut places = toucher.places_before().unwrap();
    let expected = predict(&pattern, &mut places);
    let verdict = |sum| check(&region, &pattern, &places, sum, expected);
    assert!(verdict(expected).is_err(), "nothing was written yet");
    let sum = access(&region, &pattern);
    verdict(sum).unwrap();
    assert!(verdict(sum - 1).is_err());
    region
        .part(0, region.length())
        .write(pattern.places() / 2 * 64, 9);
    let failure = verdict(sum).unwrap_err();
    assert!(failure.message.contains("content differs"), "{failure:?}");
}

#[test]
fn what_a_file_holds_before_is_known() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut content = vec![0; BUFFER_BYTES as usize];
    content[64 * 3] = 1;
    file.write_all(&content).unwrap();
    let request = MemoryRequest {
        mapping: Mapping::FilePrivate(file.path().to_owned()),
        ..request()
    };
    let toucher = Toucher::new(&request).unwrap();
    let places = toucher.places_before().unwrap();
    let set: Vec<usize> = (0..toucher.pattern.places())
        .filter(|place| places.byte(*place) == 1)
        .collect();
    assert_eq!(set, [3]);
    file.as_file().write_all_at(&[7], 64 * 5).unwrap();
    let failure = toucher.places_before().unwrap_err();
    assert!(failure.message.contains("a byte of 7"), "{failure:?}");
}

#[test]
fn a_file_shorter_than_the_buffer_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(BUFFER_BYTES - 1).unwrap();
    let request = MemoryRequest {
        mapping: Mapping::FileShared(file.path().to_owned()),
        ..request()
    };
    let failure = Toucher::new(&request).err().expect("a refusal");
    assert!(failure.message.contains("1048575 bytes"), "{failure:?}");
}

#[test]
fn a_buffer_of_one_working_set_or_odd_length_is_refused() {
    for buffer_bytes in [0, 512 * 64, 513 * 64 + 1, MEMORY_BYTES_MAX + 64] {
        assert!(checked_length(buffer_bytes).is_err(), "{buffer_bytes}");
    }
    assert_eq!(checked_length(513 * 64).unwrap(), 513 * 64);
}
