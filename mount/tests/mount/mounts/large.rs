//! Large reads, which may reach the kernel without a copy.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::mounts::common::{SETTINGS, assert_same, content, each, open};

#[test]
fn reads_of_every_length_give_what_is_there_up_to_the_end() {
    let content = content(1, 1_300_001);
    each(&SETTINGS, |mounted| {
        fs::write(mounted.behind("f"), &content).unwrap();
        let file = File::open(mounted.path("f")).unwrap();
        for length in [1, 4_096, 32_767, 32_768, 131_072, 262_145, 1 << 20, 2 << 20] {
            for offset in [0, 1, 4_096, 70_001, 1_048_576, 1_267_233, 1_300_000] {
                let mut buffer = vec![0; length];
                let mut done = 0;
                while done < length {
                    let at = (offset + done) as u64;
                    match file.read_at(&mut buffer[done..], at).unwrap() {
                        0 => break,
                        count => done += count,
                    }
                }
                let expected = &content[offset..content.len().min(offset + length)];
                assert_same(&buffer[..done], expected, &format!("{length} at {offset}"));
            }
        }
    });
}

#[test]
fn a_file_that_others_cut_while_it_is_read_answers_every_read() {
    let direct = SETTINGS.iter().filter(|setting| setting.mode == "none");
    each(direct, |mounted| {
        fs::write(mounted.behind("f"), vec![7; 1 << 20]).unwrap();
        let behind = open(&mounted.behind("f"));
        let is_read = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_read.load(Ordering::Relaxed) {
                    behind.set_len(50_000).unwrap();
                    behind.set_len(1 << 20).unwrap();
                }
            });
            let mut buffer = vec![1; 1 << 20];
            for _ in 0..100 {
                // A new open drops the kernel's pages of a file that has changed.
                let file = File::open(mounted.path("f")).unwrap();
                let count = file.read_at(&mut buffer, 0).unwrap();
                let is_known = |byte: &u8| matches!(byte, 0 | 7);
                assert!(buffer[..count].iter().all(is_known));
            }
            is_read.store(true, Ordering::Relaxed);
        });
    });
}
