//! The channels that are file descriptors: a TCP connection, a pair of Unix
//! sockets, a pipe.
//!
//! A new TCP connection is made for each iteration, because its state (its
//! windows) grows with what it carries. A pipe and a pair of Unix sockets have
//! no such state, and serve all iterations of a trial.
//!
//! Socket buffers have a fixed size, the same for TCP and Unix sockets and the
//! same as the copy workload's. Otherwise TCP would tune its buffers during the
//! first megabytes, and a small file and a large one would meet different
//! channels.

use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, connect, socket_with, socketpair, sockopt,
};
use rustix::pipe::{PipeFlags, pipe_with};
use toll_wire::{Channel, Failure, TransferRequest};

use super::channel::{Metrics, channel_name, waiting_address};
use super::control::{PARTNER_DEADLINE, is_readable_within};
use super::device::DeviceLink;
use crate::device::End;
use crate::failure;
use crate::workloads::copy::mover::CallError;
use crate::workloads::copy::sink::SOCKET_BUFFER_BYTES;

/// Makes the sender's and the receiver's end of a channel without addresses, before the process
/// forks. For a channel with addresses, returns none.
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
    // Data in flight is charged to the sender's buffer alone.
    sockopt::set_socket_send_buffer_size(&writer, SOCKET_BUFFER_BYTES)?;
    Ok((reader, writer))
}

/// An end of a channel. In each iteration the sender calls `offer`, `accept`
/// and `finish`, the receiver calls `connect`, and both call `close`.
pub enum Link {
    /// The same descriptor serves all iterations, until it is broken off.
    Pair(Option<OwnedFd>),
    Tcp {
        /// The socket that listens. Only the sender has one.
        listener: Option<TcpListener>,
        stream: Option<TcpStream>,
    },
    Device(Box<DeviceLink>),
}

impl Link {
    /// Makes the sender's end, from the pair made before the fork, if any.
    pub fn of_sender(transfer: &TransferRequest, pair: Option<OwnedFd>) -> Result<Self, Failure> {
        if pair.is_some() {
            return Ok(Self::Pair(pair));
        }
        if transfer.channel == Channel::Device {
            let device = DeviceLink::new(End::Master, transfer)?;
            return Ok(Self::Device(Box::new(device)));
        }
        let address = waiting_address(transfer);
        let listener = TcpListener::bind(address).and_then(|listener| {
            // An accepted socket inherits its listener's buffers.
            sockopt::set_socket_send_buffer_size(&listener, SOCKET_BUFFER_BYTES)?;
            Ok(listener)
        });
        Ok(Self::Tcp {
            listener: Some(listener.map_err(|error| cannot_reach(address.ip(), &error))?),
            stream: None,
        })
    }

    /// Makes the receiver's end, from the pair made before the fork, if any.
    pub fn of_receiver(transfer: &TransferRequest, pair: Option<OwnedFd>) -> Result<Self, Failure> {
        Ok(match (transfer.channel, pair) {
            (Channel::Device, _) => Self::Device(Box::new(DeviceLink::new(End::Slave, transfer)?)),
            (_, None) => Self::Tcp {
                listener: None,
                stream: None,
            },
            (_, pair) => Self::Pair(pair),
        })
    }

    /// Starts to wait for the receiver. Returns the address to connect to, if the channel has
    /// addresses.
    pub fn offer(&mut self) -> Result<Option<SocketAddr>, Failure> {
        match self {
            Self::Tcp {
                listener: Some(listener),
                ..
            } => listener
                .local_addr()
                .map(Some)
                .map_err(|error| cannot_open(Channel::Tcp, &error)),
            Self::Device(device) => device.listen().map(Some),
            _ => Ok(None),
        }
    }

    /// Accepts the connection that the receiver has already made, and no other.
    pub fn accept(&mut self, from: Option<SocketAddr>) -> Result<(), Failure> {
        let (listener, stream) = match self {
            Self::Device(device) => return device.accept(),
            Self::Tcp {
                listener: Some(listener),
                stream,
            } => (listener, stream),
            _ => return Ok(()),
        };
        loop {
            if !is_readable_within(listener, PARTNER_DEADLINE) {
                return Err(failure::failed(format!(
                    "cannot send: the receiver's connection from {from:?} did not arrive; \
                     check whether something in between changes addresses"
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

    /// Connects to where the sender waits, if the channel has addresses.
    /// Returns the local address.
    pub fn connect(&mut self, to: Option<SocketAddr>) -> Result<Option<SocketAddr>, Failure> {
        match (self, to) {
            (Self::Tcp { stream, .. }, Some(to)) => {
                let connected = connect_to(to).and_then(|new| Ok((new.local_addr()?, new)));
                let (from, connected) = connected.map_err(|error| cannot_reach(to.ip(), &error))?;
                *stream = Some(connected);
                Ok(Some(from))
            }
            (Self::Device(device), Some(to)) => device.connect(to).map(|()| None),
            _ => Ok(None),
        }
    }

    /// Returns the file descriptor to write to or read from.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Pair(end) => end.as_ref().expect("it is not broken off").as_fd(),
            Self::Tcp { stream, .. } => stream.as_ref().expect("it is connected").as_fd(),
            Self::Device(device) => device.connection().device().as_fd(),
        }
    }

    /// Signals that nothing follows, which makes TCP send what it holds back
    /// (Nagle's algorithm). Corresponds to the close at the end of the
    /// published program.
    pub fn finish(&mut self) -> Result<(), CallError> {
        match self {
            Self::Tcp {
                stream: Some(stream),
                ..
            } => stream.shutdown(Shutdown::Write).map_err(|error| {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                CallError::new("shutdown", errno)
            }),
            Self::Device(device) => device.connection_mut().finish(),
            _ => Ok(()),
        }
    }

    /// Returns the device, if it moves the file by one of its own methods.
    pub fn own_way(&mut self) -> Option<&mut DeviceLink> {
        match self {
            Self::Device(device) if device.has_own_way() => Some(device.as_mut()),
            _ => None,
        }
    }

    /// Returns what else there is to report of the iteration, before its
    /// connection is closed.
    pub fn metrics(&self) -> Result<Metrics, Failure> {
        match self {
            Self::Device(device) => device.metrics(),
            _ => Ok(Vec::new()),
        }
    }

    /// Ends the iteration's connection.
    pub fn close(&mut self) {
        match self {
            Self::Pair(_) => {}
            Self::Tcp { stream, .. } => *stream = None,
            Self::Device(device) => device.close(),
        }
    }

    /// Makes the other end see the end of the stream, even if that end still expects bytes.
    pub fn break_off(&mut self) {
        match self {
            Self::Pair(end) => *end = None,
            _ => self.close(),
        }
    }
}

fn connect_to(to: SocketAddr) -> io::Result<TcpStream> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Set before the handshake, which negotiates the window's scale.
    sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER_BYTES)?;
    connect(&socket, &to)?;
    Ok(socket.into())
}

fn cannot_reach(address: IpAddr, error: &io::Error) -> Failure {
    if failure::is_without_network(error) {
        failure::unsupported_by(
            &format!("connect over {address}"),
            error,
            "bring its network interface up",
        )
    } else {
        cannot_open(Channel::Tcp, error)
    }
}

fn cannot_open(channel: Channel, error: &io::Error) -> Failure {
    failure::instrument_to(&format!("make {}", channel_name(channel)), error)
}
