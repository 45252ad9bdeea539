//! A relay on the loopback interface that delays what passes through. It gives a distant host's
//! round-trip time without a network, and without root.
//!
//! It delays bytes, not packets. Each of the two TCP connections acknowledges at once. So neither
//! slow start nor a congestion window is part of the delay. No packet is lost, and there is no
//! limit on bandwidth.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of bytes that are read at a time.
const CHUNK_BYTES: usize = 64 << 10;
/// Maximum number of chunks in flight in one direction. No connection fills this many: 64 MiB in
/// 50 ms are 1.3 GB/s, and the cipher of SSH achieves less.
const CHUNKS_MAX: usize = 1024;

/// Some bytes, and the time from which the receiver may see them.
struct Chunk {
    due: Instant,
    bytes: Vec<u8>,
}

/// A listening relay. Dropping it refuses new connections; existing connections end when either
/// side closes.
#[derive(Debug)]
pub(super) struct Relay {
    port: u16,
    is_over: Arc<AtomicBool>,
}

impl Relay {
    /// Listens on a free port of 127.0.0.1, and forwards connections to port `target` of that
    /// address. Each byte arrives half of `round_trip` after it was sent.
    pub fn start(target: u16, round_trip: Duration) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        thread::Builder::new()
            .name("relay".into())
            .spawn(move || accept(&listener, target, round_trip / 2, &until))?;
        Ok(Self { port, is_over })
    }

    /// The port on which the relay listens.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes the listening thread. If this fails, that thread has ended.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn accept(listener: &TcpListener, target: u16, delay: Duration, is_over: &AtomicBool) {
    while let Ok((near, _)) = listener.accept() {
        if is_over.load(Ordering::Acquire) {
            return;
        }
        // A connection that fails is closed, which its client sees.
        let _ = connect(near, target, delay);
    }
}

fn connect(near: TcpStream, target: u16, delay: Duration) -> Result<()> {
    let far = TcpStream::connect((Ipv4Addr::LOCALHOST, target))?;
    // Nagle's algorithm must not delay the bytes any further.
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    pass(near.try_clone()?, far.try_clone()?, delay)?;
    pass(far, near, delay)
}

/// Forwards one direction of a connection, in two threads.
fn pass(from: TcpStream, to: TcpStream, delay: Duration) -> Result<()> {
    let (sender, receiver) = sync_channel(CHUNKS_MAX);
    let spawn = |name: &str| thread::Builder::new().name(name.into());
    spawn("relay-in").spawn(move || take(from, delay, &sender))?;
    spawn("relay-out").spawn(move || give(to, &receiver))?;
    Ok(())
}

/// Reads until the sender has closed, or the receiver accepts no more.
fn take(mut from: TcpStream, delay: Duration, chunks: &SyncSender<Chunk>) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let count = match from.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        let chunk = Chunk {
            due: Instant::now() + delay,
            bytes: buffer[..count].to_vec(),
        };
        if chunks.send(chunk).is_err() {
            return;
        }
    }
}

/// Writes each chunk when it is due, and closes after the last one.
fn give(mut to: TcpStream, chunks: &Receiver<Chunk>) {
    for chunk in chunks {
        thread::sleep(chunk.due.saturating_duration_since(Instant::now()));
        if to.write_all(&chunk.bytes).is_err() {
            // The other direction's reader sees the end of this connection.
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
    // The receiver may have closed the connection already.
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a server that echoes each byte, with a relay in front of it.
    fn echo_behind(round_trip: Duration) -> (Relay, TcpStream) {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = server.local_addr().unwrap().port();
        thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut writer = stream.try_clone().unwrap();
            std::io::copy(&mut stream, &mut writer).unwrap();
        });
        let relay = Relay::start(target, round_trip).unwrap();
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, relay.port())).unwrap();
        (relay, client)
    }

    #[test]
    fn an_answer_takes_a_round_trip() {
        let round_trip = Duration::from_millis(60);
        let (_relay, mut client) = echo_behind(round_trip);
        let begun = Instant::now();
        client.write_all(b"?").unwrap();
        client.read_exact(&mut [0]).unwrap();
        let took = begun.elapsed();
        assert!(took >= round_trip, "{took:?}");
        assert!(took < round_trip + Duration::from_secs(5), "{took:?}");
    }

    #[test]
    fn what_is_sent_together_arrives_together_whole_and_ends() {
        let round_trip = Duration::from_millis(200);
        let (_relay, mut client) = echo_behind(round_trip);
        let sent: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
        let begun = Instant::now();
        let mut writer = client.try_clone().unwrap();
        let bytes = sent.clone();
        let written = thread::spawn(move || {
            writer.write_all(&bytes).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut received = Vec::new();
        client.read_to_end(&mut received).unwrap();
        written.join().unwrap();
        assert_eq!(received, sent);
        // 17 chunks one after the other would take 3.4 s.
        let took = begun.elapsed();
        assert!(took < 10 * round_trip, "{took:?}");
    }

    #[test]
    fn a_relay_that_is_dropped_listens_no_more() {
        let (relay, _client) = echo_behind(Duration::ZERO);
        let port = relay.port();
        drop(relay);
        let refused = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err();
        let deadline = Instant::now() + Duration::from_secs(10);
        while !refused() {
            assert!(Instant::now() < deadline, "it still listens");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
