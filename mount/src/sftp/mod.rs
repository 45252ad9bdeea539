//! Files on another host, over SFTP version 3 (draft-ietf-secsh-filexfer-02) with
//! OpenSSH's extensions (its PROTOCOL file), carried by the program `ssh`.
//!
//! This crate has its own client because existing ones do not fit. Those that keep
//! many requests in flight (`openssh-sftp-client`, `russh-sftp`) bring an
//! asynchronous runtime into a program of threads. `ssh2` brings its own SSH
//! implementation, which ignores the user's configuration, agent and hardware keys,
//! and handles one request at a time.
//!
//! - One thread reads. Any number of callers have requests in flight, which are
//!   matched by id (`requests.rs`, `session.rs`).
//! - A lost connection returns [`Error::Lost`](crate::source::Error) to every call
//!   in flight. The next call reconnects (`link.rs`), and open files are reopened
//!   by path where that is safe (`open_file.rs`).
//! - Nothing that a server sends is trusted: lengths, ids, types of replies, names.
//!   A server that breaks the protocol loses the connection. Its texts are only
//!   shown escaped.
//!
//! What the protocol cannot express:
//! - Times are whole seconds from 1970 to 2106. A change of one time alone cuts the
//!   other to whole seconds. "Now" is this host's time. Two contents of the same
//!   length within one second cannot be distinguished (`server_clock.rs` says
//!   whether a second is over).
//! - The number of links and the inode number are known only for hard links made
//!   through the same source (`names.rs`). The time of the last change of the inode
//!   and device numbers are unknown.
//! - Users and groups are the server's numbers.
//! - There are no extended attributes, no exchange of two names, no allocation and
//!   no search for holes. Named pipes, sockets and device files cannot be created.
//! - Most errors of the server have the same code. Further requests find out which
//!   error occurred (`diagnosis.rs`).

mod address;
mod change;
mod diagnosis;
mod directory;
mod failure;
mod link;
mod names;
mod open_file;
mod opening;
mod options;
mod packet;
mod pipe;
mod pipelined_writes;
mod requests;
mod server_clock;
mod session;
mod shared;
mod source;
mod ssh;
mod stat;

pub use address::Address;
pub use link::Connect;
pub use options::{Notice, Options};
pub use session::{Peer, Transport};
pub use source::Sftp;
