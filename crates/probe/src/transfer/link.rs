//! The channels that are descriptors: a TCP connection, a pair of Unix sockets,
//! a pipe.
//!
//! A TCP connection is made anew for each iteration, as it has a state that
//! grows with what it carries (its windows). A pipe and a pair of Unix sockets
//! have none, and serve all iterations of a trial.
//!
//! Sockets' buffers are of a fixed size, the same for TCP and Unix sockets and
//! the same as the copy workload's. Left alone, TCP would tune its buffers during
//! the first megabytes, so that a small file and a large one would meet
//! different channels.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, connect, socket_with, socketpair, sockopt,
};
use rustix::pipe::{PipeFlags, pipe_with};
use toll_wire::{Channel, Failure, Sink, TransferPart, TransferRequest};

use super::CHANNEL_PORT;
use super::control::{PARTNER_DEADLINE, is_readable_within};
use super::device::{Master, Slave};
use crate::copy::mover::CallError;
use crate::copy::sink::SOCKET_BUFFER_BYTES;
use crate::failure;

pub fn channel_name(channel: Channel) -> &'static str {
    match channel {
        Channel::Device => "the device",
        Channel::Tcp => "a TCP connection",
        Channel::Unix => "a Unix socket",
        Channel::Pipe => "a pipe",
    }
}

pub fn kind_of(channel: Channel) -> Sink {
    match channel {
        Channel::Pipe => Sink::Pipe,
        Channel::Device | Channel::Tcp | Channel::Unix => Sink::Socket,
    }
}

/// What an end tells of an iteration beside its times: names and values.
pub type Metrics = Vec<(&'static str, u64)>;

/// The sender's and the receiver's end of a channel without addresses, made
/// before the processes split; none of a channel with addresses.
pub fn pair(channel: Channel) -> Result<(Option<OwnedFd>, Option<OwnedFd>), Failure> {
    let ends = match channel {
        Channel::Device | Channel::Tcp => return Ok((None, None)),
        Channel::Unix => unix_sockets(),
        Channel::Pipe => pipe_with(PipeFlags::CLOEXEC),
    };
    let (reader, writer) = ends.map_err(|errno| cannot_open(channel, &errno.into()))?;
    Ok((Some(writer), Some(reader)))
}

fn unix_sockets() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (reader, writer) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // What is under way is charged to the sender's buffer alone.
    sockopt::set_socket_send_buffer_size(&writer, SOCKET_BUFFER_BYTES)?;
    Ok((reader, writer))
}

/// The sender's end. In each iteration `offer`, `accept`, what is sent, `finish`
/// and `close` follow each other.
pub enum SenderLink {
    /// For all iterations, until it is broken off.
    Pair(Option<OwnedFd>),
    Tcp {
        listener: TcpListener,
        stream: Option<TcpStream>,
    },
    Device(Master),
}

impl SenderLink {
    pub fn new(transfer: &TransferRequest, pair: Option<OwnedFd>) -> Result<Self, Failure> {
        if pair.is_some() {
            return Ok(Self::Pair(pair));
        }
        if transfer.channel == Channel::Device {
            return Ok(Self::Device(Master::new(transfer)?));
        }
        let address: SocketAddr = match transfer.part {
            TransferPart::Sender { listen } => (listen, CHANNEL_PORT).into(),
            _ => (Ipv4Addr::LOCALHOST, 0).into(),
        };
        let listener = TcpListener::bind(address).and_then(|listener| {
            // An accepted socket inherits its listener's buffers.
            sockopt::set_socket_send_buffer_size(&listener, SOCKET_BUFFER_BYTES)?;
            Ok(listener)
        });
        Ok(Self::Tcp {
            listener: listener.map_err(|error| cannot_reach(address.ip(), &error))?,
            stream: None,
        })
    }

    /// Waits for the receiver from now on. Yields where it is to connect, if the
    /// channel has addresses.
    pub fn offer(&mut self) -> Result<Option<SocketAddr>, Failure> {
        match self {
            Self::Pair(_) => Ok(None),
            Self::Tcp { listener, .. } => listener
                .local_addr()
                .map(Some)
                .map_err(|error| cannot_open(Channel::Tcp, &error)),
            Self::Device(master) => master.listen().map(Some),
        }
    }

    /// Takes the receiver's connection, which is there already, and no other's.
    pub fn accept(&mut self, from: Option<SocketAddr>) -> Result<(), Failure> {
        let (listener, stream) = match self {
            Self::Pair(_) => return Ok(()),
            Self::Device(master) => return master.accept(),
            Self::Tcp { listener, stream } => (listener, stream),
        };
        loop {
            if !is_readable_within(listener, PARTNER_DEADLINE) {
                return Err(failure::failed(format!(
                    "cannot send: the receiver's connection from {from:?} did not come; see \
                     whether something changes addresses in between"
                )));
            }
            let (accepted, peer) = listener
                .accept()
                .map_err(|error| cannot_open(Channel::Tcp, &error))?;
            if Some(peer) == from {
                *stream = Some(accepted);
                return Ok(());
            }
        }
    }

    pub fn writer(&self) -> BorrowedFd<'_> {
        match self {
            Self::Pair(writer) => writer.as_ref().expect("it is not broken off").as_fd(),
            Self::Tcp { stream, .. } => stream.as_ref().expect("it was accepted").as_fd(),
            Self::Device(master) => master.sender().device().as_fd(),
        }
    }

    /// Says that nothing follows, which has TCP send what it holds back (Nagle's
    /// algorithm): the close at the end of the published program.
    pub fn finish(&mut self) -> Result<(), CallError> {
        match self {
            Self::Tcp {
                stream: Some(stream),
                ..
            } => stream.shutdown(Shutdown::Write).map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                CallError::of("shutdown", errno)
            }),
            Self::Device(master) => master.sender_mut().finish(),
            _ => Ok(()),
        }
    }

    /// What else is to be told of the iteration, before its connection is closed.
    pub fn metrics(&self) -> Result<Metrics, Failure> {
        match self {
            Self::Device(master) => master.metrics(),
            _ => Ok(Vec::new()),
        }
    }

    /// Ends the iteration's connection.
    pub fn close(&mut self) {
        match self {
            Self::Pair(_) => {}
            Self::Tcp { stream, .. } => *stream = None,
            Self::Device(master) => master.close(),
        }
    }

    /// Lets the receiver see an end, whatever it still expects.
    pub fn break_off(&mut self) {
        match self {
            Self::Pair(writer) => *writer = None,
            _ => self.close(),
        }
    }
}

/// The receiver's end likewise: `connect`, what is received, and `close`.
pub enum ReceiverLink {
    /// For all iterations, until it is broken off.
    Pair(Option<OwnedFd>),
    Tcp(Option<OwnedFd>),
    Device(Slave),
}

impl ReceiverLink {
    /// The receiver's end, over what was made before the processes split.
    pub fn new(transfer: &TransferRequest, pair: Option<OwnedFd>) -> Result<Self, Failure> {
        Ok(match (transfer.channel, pair) {
            (Channel::Device, _) => Self::Device(Slave::new(transfer)?),
            (_, None) => Self::Tcp(None),
            (_, pair) => Self::Pair(pair),
        })
    }

    /// Connects to where the sender waits, if the channel has addresses, and
    /// yields where from.
    pub fn connect(&mut self, to: Option<SocketAddr>) -> Result<Option<SocketAddr>, Failure> {
        match (self, to) {
            (Self::Tcp(stream), Some(to)) => {
                let connected = connect_to(to);
                let (socket, from) = connected.map_err(|error| cannot_reach(to.ip(), &error))?;
                *stream = Some(socket);
                Ok(Some(from))
            }
            (Self::Device(slave), Some(to)) => slave.connect(to).map(|()| None),
            _ => Ok(None),
        }
    }

    pub fn reader(&self) -> BorrowedFd<'_> {
        match self {
            Self::Pair(end) | Self::Tcp(end) => end.as_ref().expect("it is connected").as_fd(),
            Self::Device(slave) => slave.receiver().device().as_fd(),
        }
    }

    pub fn metrics(&self) -> Result<Metrics, Failure> {
        match self {
            Self::Device(slave) => slave.metrics(),
            _ => Ok(Vec::new()),
        }
    }

    pub fn close(&mut self) {
        match self {
            Self::Pair(_) => {}
            Self::Tcp(stream) => *stream = None,
            Self::Device(slave) => slave.close(),
        }
    }

    /// Lets the sender see that nobody takes more.
    pub fn break_off(&mut self) {
        match self {
            Self::Pair(end) => *end = None,
            _ => self.close(),
        }
    }
}

fn connect_to(to: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Before the handshake, in which the window's scale is agreed on.
    sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER_BYTES)?;
    connect(&socket, &to)?;
    let stream = TcpStream::from(socket);
    let from = stream.local_addr()?;
    Ok((stream.into(), from))
}

fn cannot_reach(address: IpAddr, error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::ENETUNREACH | libc::ENETDOWN | libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT) => {
            failure::unsupported_by(
                &format!("connect over {address}"),
                error,
                "bring its network interface up",
            )
        }
        _ => cannot_open(Channel::Tcp, error),
    }
}

fn cannot_open(channel: Channel, error: &io::Error) -> Failure {
    failure::instrument_to(&format!("make {}", channel_name(channel)), error)
}
