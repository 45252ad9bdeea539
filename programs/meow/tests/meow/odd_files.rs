//! Files whose size says little: files of the kernel, files with holes, huge files, and
//! files that change while they are read.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{
    Files, MORE_THAN_PIPES_HOLD, Running, WAYS, appendable, assert_same, collect, content, join,
    meow, run, run_meow, skip, wait_until_full, writable,
};

#[test]
fn files_of_the_kernel_come_out_whole_despite_their_size() {
    let mut found = 0;
    for path in [
        "/proc/version",
        "/proc/filesystems",
        "/proc/kallsyms",
        "/proc/sys/kernel/ostype",
        "/proc/self/mountinfo",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/devices/system/cpu/online",
    ] {
        let Ok(expected) = std::fs::read(path) else {
            continue;
        };
        found += 1;
        for way in WAYS {
            let output = run_meow([way, &[path]].concat()).succeeded();
            assert_same(&output, &expected, path);
            let output = Files::new().copied(File::open(path).unwrap(), way);
            assert_same(&output, &expected, path);
        }
    }
    assert!(found > 0, "Linux has some of them");
}

#[test]
fn a_file_opened_for_direct_reading_comes_out_whole() {
    // On a disk: tmpfs accepts the flag and ignores it.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("direct");
    let bytes = content(1_000_001);
    std::fs::write(&path, &bytes).unwrap();
    for way in ["-u", "--copy", "-s"] {
        let opened = File::options()
            .read(true)
            .custom_flags(OFlags::DIRECT.bits().cast_signed())
            .open(&path);
        let Ok(stdin) = opened else {
            return skip("the file system does not support O_DIRECT");
        };
        let mut command = meow();
        command.arg(way).stdin(stdin).stdout(Stdio::piped());
        assert_same(&run(command).succeeded(), &bytes, way);
    }
}

#[test]
fn a_read_error_is_told_with_the_name_of_the_file() {
    if !Path::new("/proc/self/mem").exists() {
        return skip("there is no /proc/self/mem");
    }
    let files = Files::new();
    files.file("a", b"a\n");
    for option in ["-u", "-n", "--copy"] {
        let output = files.run(&[option, "/proc/self/mem", "a"]);
        let output = output.failed(&["meow: /proc/self/mem: Input/output error"]);
        assert_eq!(output.last(), Some(&b'\n'));
    }
}

#[test]
fn holes_come_out_as_zeros() {
    let files = Files::new();
    let file = files.sink("holes");
    file.set_len((8 << 20) + 123).unwrap();
    for place in [3_000_000, 5_000_001, 8 << 20] {
        file.write_all_at(b"data", place).unwrap();
    }
    let expected = files.content("holes");
    for way in WAYS {
        let arguments = [way, &["holes"]].concat();
        let output = files.run(&arguments).succeeded();
        assert_same(&output, &expected, "a pipe");
        let output = files.copied(Stdio::null(), &arguments);
        assert_same(&output, &expected, "a file");
    }
}

/// Returns the number of a stream's bytes, and the last five.
fn count(mut stream: impl Read) -> (u64, Vec<u8>) {
    let mut buffer = vec![0; 1 << 20];
    let (mut total, mut last) = (0, Vec::new());
    loop {
        let length = stream.read(&mut buffer).unwrap();
        if length == 0 {
            return (total, last);
        }
        total += length as u64;
        last.extend_from_slice(&buffer[..length]);
        last.drain(..last.len().saturating_sub(5));
    }
}

#[test]
fn more_than_two_gibibytes_and_what_lies_across_them_come_out() {
    // More bytes than one system call moves, without using disk space.
    let files = Files::in_memory();
    let size = (2 << 30) + 8191;
    let file = files.sink("huge");
    file.set_len(size).unwrap();
    file.write_all_at(b"end", size - 3).unwrap();
    let mut command = files.meow();
    command.arg("huge").stdin(Stdio::null());
    command.stdout(Stdio::piped());
    let mut running = Running::start(command);
    let (total, last) = count(running.0.stdout.take().unwrap());
    assert_eq!((total, &last[..]), (size, &b"\0\0end"[..]));
    running.succeed();
    for way in WAYS {
        let mut file = files.open("huge");
        file.seek(SeekFrom::Start(size - (1 << 20))).unwrap();
        let output = files.run_between(file, way, Stdio::piped()).succeeded();
        assert_eq!(output.len(), 1 << 20);
        assert!(output.ends_with(b"\0\0end"));
    }
    let ended = files.run_between(Stdio::null(), &["huge"], Stdio::null());
    ended.succeeded();
}

/// Bytes after which meow has settled on its method for the rest of a file.
const LEAD: usize = 256 << 10;

/// Starts meow on a long file, reads the first bytes from its pipe, and waits until the
/// pipe is full.
fn stuck(files: &Files, way: &[&str], long: &[u8]) -> (Running, Vec<u8>, std::io::PipeReader) {
    files.file("long", long);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut command = files.meow();
    command.args(way).arg("long").stdin(Stdio::null());
    command.stdout(writer.try_clone().unwrap());
    let running = Running::start(command);
    let mut lead = vec![0; LEAD];
    reader.read_exact(&mut lead).unwrap();
    wait_until_full(&writer);
    (running, lead, reader)
}

/// Changes a file while meow is stuck, and returns the output.
fn copied_while(way: &[&str], long: &[u8], change: impl FnOnce(&Files)) -> Vec<u8> {
    let files = Files::new();
    let (mut running, lead, reader) = stuck(&files, way, long);
    change(&files);
    let output = [lead, join(collect(reader))].concat();
    running.succeed();
    output
}

#[test]
fn what_is_appended_meanwhile_comes_out_too() {
    let long = content(MORE_THAN_PIPES_HOLD);
    for way in WAYS {
        let output = copied_while(way, &long, |files| {
            let mut file = appendable(files.path("long"));
            file.write_all(&long[..100_001]).unwrap();
        });
        let expected = [&long[..], &long[..100_001]].concat();
        assert_same(&output, &expected, "the grown file");
    }
}

#[test]
fn a_file_cut_short_meanwhile_ends_early_without_a_crash() {
    let long = content(MORE_THAN_PIPES_HOLD);
    for way in WAYS {
        let output = copied_while(way, &long, |files| {
            writable(files.path("long")).set_len(1 << 20).unwrap();
        });
        assert!(output.len() >= 1 << 20, "{} bytes", output.len());
        assert!(output.len() < long.len(), "{} bytes", output.len());
        // The kernel zeroes the truncated part of shared pages that are still in the
        // pipe.
        let is_kept = |(at, &byte): (usize, &u8)| {
            byte == long[at] || (byte == 0 && at >= 1 << 20 && way.is_empty())
        };
        assert!(output.iter().enumerate().all(is_kept), "{way:?}");
    }
}

#[test]
fn copied_bytes_do_not_change_with_the_file_after_they_were_read() {
    let old = vec![b'o'; MORE_THAN_PIPES_HOLD];
    // Within the pipe, however small it is.
    let changed = LEAD + 32_768..LEAD + 36_864;
    // With the file's own pages in the pipe, meow saves a copy. If the old byte were read
    // there, nothing would be shared and --copy would be useless.
    for (way, first) in [(&["--copy"][..], b'o'), (&[], b'n')] {
        let output = copied_while(way, &old, |files| {
            writable(files.path("long"))
                .write_all_at(&[b'n'; 4096], changed.start as u64)
                .unwrap();
        });
        assert_eq!(output.len(), MORE_THAN_PIPES_HOLD);
        let found = &output[changed.clone()];
        assert!(found.iter().all(|&byte| byte == first), "{way:?}");
    }
}

#[test]
fn a_file_deleted_meanwhile_comes_out_whole() {
    let long = content(MORE_THAN_PIPES_HOLD);
    for way in WAYS {
        let remove = |files: &Files| std::fs::remove_file(files.path("long")).unwrap();
        assert_same(&copied_while(way, &long, remove), &long, "the deleted file");
    }
}

#[test]
fn a_stop_in_the_middle_loses_nothing() {
    let long = content(MORE_THAN_PIPES_HOLD);
    for way in WAYS {
        let files = Files::new();
        let (mut running, lead, mut reader) = stuck(&files, way, &long);
        let pid = Pid::from_child(&running.0);
        let stop = || {
            kill_process(pid, Signal::STOP).unwrap();
            kill_process(pid, Signal::CONT).unwrap();
        };
        (0..20).for_each(|_| stop());
        let mut next = vec![0; 1 << 20];
        reader.read_exact(&mut next).unwrap();
        stop();
        let mut output = [lead, next].concat();
        output.extend(join(collect(reader)));
        running.succeed();
        assert_same(&output, &long, "the file");
    }
}

#[test]
fn a_source_without_end_goes_on_until_the_run_is_ended() {
    let files = Files::new();
    for option in ["-u", "--copy", "-s"] {
        let mut command = files.meow();
        command
            .args([option, "/dev/zero"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut running = Running::start(command);
        std::thread::sleep(std::time::Duration::from_millis(20));
        kill_process(Pid::from_child(&running.0), Signal::TERM).unwrap();
        let status = running.end();
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()), "{status}");
    }
}
