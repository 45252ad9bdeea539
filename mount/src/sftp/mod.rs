//! Files of another host, over SFTP version 3 (draft-ietf-secsh-filexfer-02)
//! with OpenSSH's extensions (its PROTOCOL file), carried by the program
//! `ssh`.
//!
//! The client is written here because those that there are do not fit: those
//! that keep many requests in flight (`openssh-sftp-client`, `russh-sftp`)
//! bring an asynchronous runtime into a program of threads, and `ssh2` brings
//! an SSH of its own, which knows nothing of the user's configuration, agent
//! and hardware keys, and does one request at a time.
//!
//! - One thread reads; any number of callers have requests in flight, by
//!   their ids (`requests.rs`, `session.rs`).
//! - A connection that is lost gives [`Error::Lost`](crate::source::Error) to
//!   every call in flight; the next call connects again (`link.rs`), and open
//!   files are opened again by path where that is safe (`open_file.rs`).
//! - Nothing that a server sends is trusted: lengths, ids, kinds of answers,
//!   names. One that breaks the protocol loses the connection. Its texts are
//!   shown only escaped.
//!
//! What the protocol has no word for:
//! - Times are whole seconds from 1970 to 2106. A change of one time alone
//!   sets the other to the second that it is in. "Now" is this host's. Two contents
//!   of one length within one second cannot be told apart (`server_clock.rs` says
//!   whether a second is over).
//! - The number of links and the inode number are known only of hard links
//!   made through the same source (`names.rs`); the time of the last change
//!   of the inode is not, nor are device numbers.
//! - Users and groups are the server's numbers.
//! - No extended attributes, no named pipes, sockets and device files made,
//!   no exchange of two names, no allocation, no holes looked for.
//! - Most errors of the server come as one code; which it was is found out by
//!   asking further (`diagnosis.rs`).

mod address;
mod change;
mod diagnosis;
mod directory;
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
mod source;
mod ssh;
mod stat;

pub use address::Address;
pub use link::Connect;
pub use options::{Notice, Options};
pub use session::{Peer, Transport};
pub use source::Sftp;
