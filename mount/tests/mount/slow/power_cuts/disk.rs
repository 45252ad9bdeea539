//! A disk with a volatile write cache, for a guest whose power is cut.
//!
//! QEMU connects by NBD over a Unix socket
//! (<https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>). A write is kept
//! separately until the guest flushes. A cut loses the guest's memory and any combination of the
//! blocks written since the last flush, as on a disk that reorders its cache. One block is written
//! whole or not at all.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use toll_stats::Rng;

/// Unit that is written whole or not at all: the block of the file system.
pub const BLOCK_BYTES: usize = 4096;

const GREETING: &[u8] = b"NBDMAGICIHAVEOPT";
const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
/// Fixed newstyle, and no zero padding after the reply to the oldest option.
const HANDSHAKE_FLAGS: u16 = 1 | 2;
/// The flags field is valid, and the disk supports flush.
const EXPORT_FLAGS: u16 = 1 | 4;
const OPTION_ABORT: u32 = 2;
const OPTION_INFO: u32 = 6;
const OPTION_GO: u32 = 7;
const REPLY_ACK: u32 = 1;
const REPLY_INFO: u32 = 3;
const REPLY_UNSUPPORTED: u32 = 1 << 31 | 1;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
/// Longest data of one option.
const OPTION_BYTES_MAX: usize = 64 << 10;

/// The content of the disk.
pub struct Disk {
    state: Arc<Mutex<State>>,
}

struct State {
    /// The content that a reader sees.
    current: Vec<u8>,
    /// The content that certainly survives a cut.
    durable: Vec<u8>,
    /// Writes since the last flush, in order.
    unflushed: Vec<(usize, Vec<u8>)>,
}

/// A server for one guest.
pub struct Served(JoinHandle<()>);

impl Served {
    /// Waits until the guest's last request has been served.
    pub fn join(self) {
        self.0.join().expect("QEMU's requests are valid");
    }
}

impl Disk {
    pub fn new(image: Vec<u8>) -> Self {
        let state = State {
            current: image.clone(),
            durable: image,
            unflushed: Vec::new(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Serves the next guest that connects to `socket`.
    pub fn serve(&self, socket: &Path) -> Served {
        // Removes the socket of the previous guest.
        let _ = std::fs::remove_file(socket);
        let listener = UnixListener::bind(socket).expect("a socket can be made");
        let state = Arc::clone(&self.state);
        Served(std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("QEMU connects");
            // A cut can end the connection at any point.
            if let Err(error) = converse(stream, &state) {
                assert_ne!(error.kind(), io::ErrorKind::InvalidData, "{error}");
            }
        }))
    }

    /// Cuts the power: each block written since the last flush survives or is lost.
    pub fn cut(&self, rng: &mut Rng) {
        let mut state = self.state.lock().expect("no holder panics");
        let kept = [0.0, 0.5, 0.9][rng.below(3)];
        for (offset, bytes) in std::mem::take(&mut state.unflushed) {
            for (number, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
                if rng.uniform() < kept {
                    let at = offset + number * BLOCK_BYTES;
                    state.durable[at..at + block.len()].copy_from_slice(block);
                }
            }
        }
        state.current = state.durable.clone();
    }

    /// Returns the whole content, once no guest writes.
    pub fn image(&self) -> Vec<u8> {
        self.state.lock().expect("no holder panics").current.clone()
    }
}

impl State {
    fn write(&mut self, offset: usize, bytes: Vec<u8>) {
        self.current[offset..offset + bytes.len()].copy_from_slice(&bytes);
        self.unflushed.push((offset, bytes));
    }

    fn flush(&mut self) {
        for (offset, bytes) in self.unflushed.drain(..) {
            self.durable[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
    }
}

fn converse(mut stream: UnixStream, state: &Mutex<State>) -> io::Result<()> {
    let size_bytes = state.lock().expect("no holder panics").current.len();
    stream.write_all(&[GREETING, &HANDSHAKE_FLAGS.to_be_bytes()].concat())?;
    take::<4>(&mut stream)?;
    while !negotiate(&mut stream, size_bytes)? {}
    loop {
        let magic = u32::from_be_bytes(take(&mut stream)?);
        let _flags = take::<2>(&mut stream)?;
        let kind = u16::from_be_bytes(take(&mut stream)?);
        let cookie = take::<8>(&mut stream)?;
        let offset = u64::from_be_bytes(take(&mut stream)?);
        let length = u32::from_be_bytes(take(&mut stream)?);
        let (offset, length) = (
            sized(offset, size_bytes)?,
            sized(length.into(), size_bytes)?,
        );
        if magic != REQUEST_MAGIC || offset + length > size_bytes {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut answer = [&REPLY_MAGIC.to_be_bytes()[..], &[0; 4], &cookie].concat();
        match kind {
            READ => {
                let state = state.lock().expect("no holder panics");
                answer.extend_from_slice(&state.current[offset..offset + length]);
            }
            WRITE => {
                let mut bytes = vec![0; length];
                stream.read_exact(&mut bytes)?;
                let mut state = state.lock().expect("no holder panics");
                state.write(offset, bytes);
            }
            FLUSH => state.lock().expect("no holder panics").flush(),
            // The guest has ended.
            _ => return Ok(()),
        }
        stream.write_all(&answer)?;
    }
}

/// Answers one option. Returns whether requests follow.
fn negotiate(stream: &mut UnixStream, size_bytes: usize) -> io::Result<bool> {
    if u64::from_be_bytes(take(stream)?) != OPTION_MAGIC {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let option = u32::from_be_bytes(take(stream)?);
    let length = u32::from_be_bytes(take(stream)?);
    let mut data = vec![0; sized(length.into(), OPTION_BYTES_MAX)?];
    stream.read_exact(&mut data)?;
    let mut reply = |kind: u32, data: &[u8]| {
        let length = u32::try_from(data.len()).expect("replies are short");
        let head = [option, kind, length].map(u32::to_be_bytes).concat();
        stream.write_all(&[&OPTION_REPLY_MAGIC.to_be_bytes(), &*head, data].concat())
    };
    match option {
        OPTION_GO | OPTION_INFO => {
            let size = (size_bytes as u64).to_be_bytes();
            reply(
                REPLY_INFO,
                &[&[0; 2][..], &size, &EXPORT_FLAGS.to_be_bytes()].concat(),
            )?;
            reply(REPLY_ACK, &[])?;
            Ok(option == OPTION_GO)
        }
        OPTION_ABORT => Err(io::ErrorKind::ConnectionAborted.into()),
        _ => reply(REPLY_UNSUPPORTED, &[]).map(|()| false),
    }
}

fn take<const BYTES: usize>(stream: &mut UnixStream) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn sized(number: u64, most: usize) -> io::Result<usize> {
    usize::try_from(number)
        .ok()
        .filter(|number| *number <= most)
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[test]
fn a_cut_loses_what_was_not_flushed() {
    let disk = Disk::new(vec![0; 100 * BLOCK_BYTES]);
    let write = |at: usize, byte| {
        let mut state = disk.state.lock().unwrap();
        state.write(at * BLOCK_BYTES, vec![byte; 40 * BLOCK_BYTES]);
    };
    write(0, 1);
    disk.state.lock().unwrap().flush();
    let mut lost = 0;
    for seed in 0..10 {
        write(50, 2);
        disk.cut(&mut Rng::new(seed));
        let image = disk.image();
        assert!(image[..40 * BLOCK_BYTES].iter().all(|byte| *byte == 1));
        for block in image[50 * BLOCK_BYTES..90 * BLOCK_BYTES].chunks(BLOCK_BYTES) {
            assert!(
                block.iter().all(|byte| *byte == block[0]),
                "a block is torn"
            );
            lost += usize::from(block[0] == 0);
        }
        write(50, 0);
        disk.state.lock().unwrap().flush();
    }
    assert!(lost > 40, "{lost}");
}
