//! Letting go of file pages that the network still holds.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Has every CPU free the packets that wait for it.
///
/// A packet freed on another CPU than it was made on waits in a list of the
/// latter until that one next receives (skb_attempt_defer_free in
/// net/core/skbuff.c, since Linux 5.19). After `sendfile` or `splice` into a
/// socket such a packet holds pages of the file, which then cannot leave the
/// page cache. A datagram over loopback is received by the CPU that sends it.
///
/// What cannot be done is left: the caller looks for itself what it gained.
pub fn flush() {
    let Ok(allowed) = sched_getaffinity(None) else {
        return;
    };
    let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)) else {
        return;
    };
    let own = socket.local_addr();
    let timeout = socket.set_read_timeout(Some(Duration::from_millis(50)));
    let (Ok(own), Ok(())) = (own, timeout) else {
        return;
    };
    for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)) {
        let mut one = CpuSet::new();
        one.set(cpu);
        if sched_setaffinity(None, &one).is_ok() && socket.send_to(&[0], own).is_ok() {
            let _ = socket.recv(&mut [0]);
        }
    }
    // The rights to these CPUs were there a moment ago; if they are gone, so
    // is the machine that the trial was planned for.
    let _ = sched_setaffinity(None, &allowed);
}
