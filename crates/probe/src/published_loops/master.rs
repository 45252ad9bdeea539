//! The published master. It maps a page of the file and a page of the device. For each buffer it
//! copies bytes from the file's page to the device's, and sends them by ioctl.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::buffer::page_bytes;
use crate::mapping::{Mapping, READ_WRITE, copy};
use crate::workloads::copy::mover::{CallError, Job, Moved, Mover, portion, write_all};

/// The form of the published loop: with its defects, or without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Each copy starts at the beginning of the file's page, even after part of the page
    /// was sent. The device is never unmapped. The page-table entry is looked up after the
    /// file's page was unmapped, so the lookup finds none.
    Printed,
    Mended,
}

/// Destination of the pages.
pub trait PageTarget {
    /// Provides the page at `offset`.
    fn map(&mut self, offset: u64) -> Result<(), CallError>;

    /// Returns the page that was provided last.
    fn page(&mut self) -> &mut Mapping;

    /// Sends bytes from the beginning of the page; returns how many were sent.
    fn send(&mut self, length: usize, calls: &mut u64) -> Result<usize, CallError>;

    /// Looks up the page-table entry of an address in the file's page.
    fn look_up(&mut self, address: u64) -> Result<(), CallError>;

    /// Releases the page.
    fn unmap(&mut self);
}

/// Sends the first `size_bytes` of a file, at most `buffer_bytes` at a time.
pub fn send_pages(
    form: Form,
    (file, size_bytes): (BorrowedFd<'_>, u64),
    buffer_bytes: usize,
    target: &mut impl PageTarget,
    calls: &mut u64,
) -> Result<(), CallError> {
    let page_bytes = page_bytes();
    let mut offset = 0;
    while offset < size_bytes {
        let source = Mapping::of_file(file, offset, page_bytes, ProtFlags::READ, MapFlags::SHARED)
            .map_err(|errno| CallError::new("mmap", errno))?;
        target.map(offset)?;
        let length = portion(size_bytes - offset, page_bytes);
        send_page(form, (&source, length), buffer_bytes, target, calls)?;
        offset += length as u64;
        let address = source.address();
        match form {
            Form::Printed => {
                drop(source);
                target.look_up(address)?;
            }
            Form::Mended => {
                target.look_up(address)?;
                drop(source);
                target.unmap();
            }
        }
    }
    Ok(())
}

fn send_page(
    form: Form,
    (source, length): (&Mapping, usize),
    buffer_bytes: usize,
    target: &mut impl PageTarget,
    calls: &mut u64,
) -> Result<(), CallError> {
    let mut inside = 0;
    while inside < length {
        let piece = buffer_bytes.min(length - inside);
        let from = match form {
            Form::Printed => 0,
            Form::Mended => inside,
        };
        copy((source, from), (target.page(), 0), piece);
        let sent = target.send(piece, calls)?;
        if sent == 0 {
            return Err(CallError::no_progress("send"));
        }
        inside += match form {
            Form::Printed => piece,
            Form::Mended => sent,
        };
    }
    Ok(())
}

/// Runs the loop with a file descriptor as the destination.
pub struct PageByPage {
    form: Form,
    buffer_bytes: usize,
    /// Substitute for the device's page.
    page: Mapping,
}

impl PageByPage {
    pub fn new(form: Form, buffer_bytes: usize) -> Result<Self, Errno> {
        Ok(Self {
            form,
            buffer_bytes,
            page: Mapping::anonymous(page_bytes(), READ_WRITE, MapFlags::POPULATE)?,
        })
    }
}

impl Mover for PageByPage {
    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        let mut calls = 0;
        let mut target = StandIn {
            sink: job.sink,
            page: &mut self.page,
        };
        let file = (job.source, job.size_bytes);
        send_pages(self.form, file, self.buffer_bytes, &mut target, &mut calls)?;
        Ok(Moved {
            bytes: job.size_bytes,
            calls,
        })
    }

    fn notes(&self) -> Vec<String> {
        vec![format!(
            "copies of at most {} bytes from pages of the file, and a write of each",
            self.buffer_bytes
        )]
    }
}

struct StandIn<'a> {
    sink: BorrowedFd<'a>,
    page: &'a mut Mapping,
}

impl PageTarget for StandIn<'_> {
    fn map(&mut self, _offset: u64) -> Result<(), CallError> {
        Ok(())
    }

    fn page(&mut self) -> &mut Mapping {
        self.page
    }

    fn send(&mut self, length: usize, calls: &mut u64) -> Result<usize, CallError> {
        // SAFETY: the page is readable, and its bytes only go to write(2).
        let bytes = unsafe { self.page.bytes() };
        write_all(self.sink, &bytes[..length], calls).map(|()| length)
    }

    fn look_up(&mut self, _address: u64) -> Result<(), CallError> {
        Ok(())
    }

    fn unmap(&mut self) {}
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;

    use super::*;

    /// Keeps what is sent, and accepts at most `most_bytes` per send.
    struct Recorder {
        page: Mapping,
        most_bytes: usize,
        sent: Vec<u8>,
        offsets: Vec<u64>,
        looked_up: usize,
        unmapped: usize,
    }

    impl PageTarget for Recorder {
        fn map(&mut self, offset: u64) -> Result<(), CallError> {
            self.offsets.push(offset);
            Ok(())
        }

        fn page(&mut self) -> &mut Mapping {
            &mut self.page
        }

        fn send(&mut self, length: usize, calls: &mut u64) -> Result<usize, CallError> {
            *calls += 1;
            let length = length.min(self.most_bytes);
            let mut bytes = vec![0; length];
            crate::mapping::take(&self.page, 0, &mut bytes);
            self.sent.extend(bytes);
            Ok(length)
        }

        fn look_up(&mut self, _address: u64) -> Result<(), CallError> {
            self.looked_up += 1;
            Ok(())
        }

        fn unmap(&mut self) {
            self.unmapped += 1;
        }
    }

    fn content(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i / 13) as u8).collect()
    }

    fn sent(form: Form, length: usize, buffer_bytes: usize, most_bytes: usize) -> (Recorder, u64) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content(length)).unwrap();
        let mut target = Recorder {
            page: Mapping::anonymous(page_bytes(), READ_WRITE, MapFlags::POPULATE).unwrap(),
            most_bytes,
            sent: Vec::new(),
            offsets: Vec::new(),
            looked_up: 0,
            unmapped: 0,
        };
        let mut calls = 0;
        let file = (file.as_fd(), length as u64);
        send_pages(form, file, buffer_bytes, &mut target, &mut calls).unwrap();
        let pages = length.div_ceil(page_bytes());
        assert_eq!(target.offsets.len(), pages);
        assert_eq!(target.looked_up, pages);
        (target, calls)
    }

    #[test]
    fn the_mended_loop_sends_files_of_any_size_with_a_call_for_each_buffer_of_a_page() {
        for (length, buffer_bytes, expected_calls) in [
            (0, 512, 0),
            (1, 512, 1),
            (4096, 512, 8),
            (4097, 512, 9),
            (9695, 512, 19),
            (9695, 4096, 3),
            (9695, 5000, 3),
            (9695, 3000, 5),
        ] {
            let (target, calls) = sent(Form::Mended, length, buffer_bytes, usize::MAX);
            assert!(target.sent == content(length), "{length} by {buffer_bytes}");
            assert_eq!(calls, expected_calls, "{length} by {buffer_bytes}");
            assert_eq!(target.unmapped, target.offsets.len());
        }
    }

    #[test]
    fn the_mended_loop_goes_on_where_a_send_was_cut_short() {
        let (target, calls) = sent(Form::Mended, 9695, 512, 300);
        assert!(target.sent == content(9695));
        assert!(calls > 19);
    }

    #[test]
    fn the_printed_loop_sends_a_page_s_beginning_again_and_unmaps_nothing() {
        let (target, calls) = sent(Form::Printed, 5000, 512, usize::MAX);
        let content = content(5000);
        let mut expected = Vec::new();
        for page in content.chunks(4096) {
            for buffer in page.chunks(512) {
                expected.extend_from_slice(&page[..buffer.len()]);
            }
        }
        assert!(target.sent == expected);
        assert_eq!((calls, target.unmapped), (10, 0));
        let (target, _) = sent(Form::Printed, 5000, 4096, usize::MAX);
        assert!(target.sent == content, "a buffer that is a page");
    }
}
