//! `send` with `MSG_ZEROCOPY` (Documentation/networking/msg_zerocopy.rst): the
//! kernel takes the buffer's pages instead of a copy, and reports on the
//! socket's error queue when it no longer needs them. Before this report, the
//! pages must not change, so there are several buffers.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send, sockopt};
use toll_wire::Failure;

use crate::buffer::Buffer;
use crate::failure::OrFail;
use crate::workloads::copy::mover::{CallError, Job, Moved, Mover, portion, read_full};

/// Number of buffers, and so of reads that may be ahead of the notifications.
const DEPTH: usize = 8;

/// A ring of buffers that are lent to the kernel.
pub struct Zerocopy {
    buffer: Buffer,
    chunk: usize,
    loans: [Loan; DEPTH],
    sends: u32,
    /// Number of sends of all iterations for which a completion notification
    /// arrived, and how many of these the kernel copied nevertheless.
    notified: u64,
    copied: u64,
}

/// The sends of one buffer. The kernel numbers the sends of a socket from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Loan {
    first: u32,
    sends: u32,
    /// Number of sends for which no completion notification has arrived yet.
    outstanding: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Notification {
    first: u32,
    last: u32,
    is_copied: bool,
}

impl Loan {
    fn settle(&mut self, received: Notification) {
        let end = (u64::from(received.last) + 1).min(u64::from(self.first) + u64::from(self.sends));
        let begin = u64::from(received.first.max(self.first));
        let settled = u32::try_from(end.saturating_sub(begin)).expect("a loan's sends are few");
        self.outstanding -= settled.min(self.outstanding);
    }
}

impl Zerocopy {
    pub fn new(chunk: usize) -> Self {
        Self {
            buffer: Buffer::aligned(chunk * DEPTH),
            chunk,
            loans: [Loan::default(); DEPTH],
            sends: 0,
            notified: 0,
            copied: 0,
        }
    }

    /// Sends the bytes of a buffer, which is lent to the kernel.
    fn lend(
        &mut self,
        socket: BorrowedFd<'_>,
        slot: usize,
        length: usize,
        calls: &mut u64,
    ) -> Result<(), CallError> {
        let flags = SendFlags::from_bits_retain(libc::MSG_ZEROCOPY.cast_unsigned());
        let begin = slot * self.chunk;
        self.loans[slot] = Loan {
            first: self.sends,
            ..Loan::default()
        };
        let mut sent = 0;
        while sent < length {
            let data = &self.buffer.bytes()[begin + sent..begin + length];
            match send(socket, data, flags | SendFlags::NOSIGNAL) {
                Ok(count) => {
                    sent += count;
                    *calls += 1;
                    self.sends += 1;
                    self.loans[slot].sends += 1;
                    self.loans[slot].outstanding += 1;
                }
                Err(Errno::INTR) => {}
                // Too many pages or notifications are in flight.
                Err(Errno::NOBUFS) if self.has_loans() => self.wait(socket)?,
                Err(errno) => return Err(CallError::characteristic("send", errno, *calls)),
            }
        }
        Ok(())
    }

    fn has_loans(&self) -> bool {
        self.loans.iter().any(|loan| loan.outstanding > 0)
    }

    /// Waits for at least one notification, and takes all that are available.
    fn wait(&mut self, socket: BorrowedFd<'_>) -> Result<(), CallError> {
        loop {
            let mut found = false;
            while let Some(received) = next_notification(socket)? {
                found = true;
                self.notified += u64::from(received.last - received.first) + 1;
                if received.is_copied {
                    self.copied += u64::from(received.last - received.first) + 1;
                }
                for loan in &mut self.loans {
                    loan.settle(received);
                }
            }
            if found {
                return Ok(());
            }
            wait_for_error_queue(socket)?;
        }
    }
}

impl Mover for Zerocopy {
    fn prepare(&mut self, job: &Job<'_>) -> Result<(), Failure> {
        self.loans = [Loan::default(); DEPTH];
        self.sends = 0;
        enable(job.sink).unsupported_by(
            "set SO_ZEROCOPY on the connection",
            "use Linux 4.14 or newer",
        )
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Moved, CallError> {
        let mut moved = Moved::default();
        let mut slot = 0;
        while moved.bytes < job.size_bytes {
            while self.loans[slot].outstanding > 0 {
                self.wait(job.sink)?;
            }
            let length = portion(job.size_bytes - moved.bytes, self.chunk);
            let begin = slot * self.chunk;
            let memory = &mut self.buffer.bytes_mut()[begin..begin + length];
            read_full(job.source, memory, &mut moved.calls)?;
            self.lend(job.sink, slot, length, &mut moved.calls)?;
            moved.bytes += length as u64;
            slot = (slot + 1) % DEPTH;
        }
        while self.has_loans() {
            self.wait(job.sink)?;
        }
        Ok(moved)
    }

    fn notes(&self) -> Vec<String> {
        let copies = match (self.copied, self.notified) {
            (0, _) => "the kernel copied none of the sends".to_owned(),
            (copied, notified) => {
                format!("the kernel copied {copied} of {notified} sends nevertheless")
            }
        };
        vec![format!("{DEPTH} buffers of {} bytes; {copies}", self.chunk)]
    }
}

fn enable(socket: BorrowedFd<'_>) -> std::io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is an int, which outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ZEROCOPY,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    match status {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Waits until the error queue has an entry.
fn wait_for_error_queue(socket: BorrowedFd<'_>) -> Result<(), CallError> {
    // The error queue is reported as POLLERR, which is always requested.
    let mut ends = [PollFd::from_borrowed_fd(socket, PollFlags::empty())];
    match poll(&mut ends, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(CallError::new("poll", errno)),
    }
    // The end of a connection is reported as POLLERR, too. After it there may be nothing to wait
    // for.
    match sockopt::socket_error(socket) {
        Ok(Err(errno)) => Err(CallError::new("send", errno)),
        _ if ends[0].revents().contains(PollFlags::HUP) && !is_told(socket)? => {
            Err(CallError::new("send", Errno::CONNRESET))
        }
        _ => Ok(()),
    }
}

fn is_told(socket: BorrowedFd<'_>) -> Result<bool, CallError> {
    let mut ends = [PollFd::from_borrowed_fd(socket, PollFlags::empty())];
    match poll(&mut ends, Some(&rustix::event::Timespec::default())) {
        Ok(_) => Ok(ends[0].revents().contains(PollFlags::ERR)),
        Err(errno) => Err(CallError::new("poll", errno)),
    }
}

/// Space for a `sock_extended_err` and the address that follows it, aligned as
/// a control message has to be.
#[repr(C, align(8))]
struct ControlMemory([u8; 128]);

/// Takes the next notification off the error queue, if there is one.
fn next_notification(socket: BorrowedFd<'_>) -> Result<Option<Notification>, CallError> {
    let mut memory = ControlMemory([0; 128]);
    // SAFETY: msghdr is plain integers and pointers, for which all bits zero are
    // valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = null_mut();
    header.msg_control = (&raw mut memory).cast();
    header.msg_controllen = size_of_val(&memory);
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the header refers to `memory` with its length, and to nothing
    // else.
    let status = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
    if status < 0 {
        let error = std::io::Error::last_os_error();
        return match Errno::from_io_error(&error) {
            Some(Errno::AGAIN) => Ok(None),
            errno => Err(CallError::new("recvmsg", errno.unwrap_or(Errno::IO))),
        };
    }
    Ok(notification_in(&header))
}

fn notification_in(header: &libc::msghdr) -> Option<Notification> {
    // SAFETY: the kernel has filled the control memory that the header names and
    // set its length.
    let message = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: the first message, if there is one, is entirely inside that
    // memory.
    let message = unsafe { message.as_ref() }?;
    let is_error = matches!(
        (message.cmsg_level, message.cmsg_type),
        (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR)
    );
    if !is_error {
        return None;
    }
    // SAFETY: the message was found in that memory and is followed by data.
    let data = unsafe { libc::CMSG_DATA(message) };
    // SAFETY: a control message of this type holds a sock_extended_err, for
    // which there is room.
    let error = unsafe { data.cast::<libc::sock_extended_err>().read_unaligned() };
    (error.ee_origin == SO_EE_ORIGIN_ZEROCOPY).then_some(Notification {
        first: error.ee_info,
        last: error.ee_data,
        is_copied: error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED != 0,
    })
}

const SO_EE_ORIGIN_ZEROCOPY: u8 = 5;
const SO_EE_CODE_ZEROCOPY_COPIED: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_free_when_all_its_sends_were_notified_in_whatever_order() {
        let received = |first, last| Notification {
            first,
            last,
            is_copied: false,
        };
        let mut loan = Loan {
            first: 4,
            sends: 3,
            outstanding: 3,
        };
        for (notification, outstanding) in [
            (received(0, 3), 3),
            (received(7, 9), 3),
            (received(6, 7), 2),
            (received(2, 4), 1),
            (received(5, 5), 0),
        ] {
            loan.settle(notification);
            assert_eq!(loan.outstanding, outstanding, "{notification:?}");
        }
    }
}
