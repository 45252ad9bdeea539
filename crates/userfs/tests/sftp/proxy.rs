//! A way to a server that can be cut or go silent.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Forwards connections until it is told otherwise.
pub struct Proxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Nothing passes; connections stay open.
    is_stalled: AtomicBool,
    /// No connection is accepted any more.
    is_over: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub fn to(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else {
                    continue;
                };
                shared.forward(client, server);
            }
        });
        Self { port, state }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Lets nothing pass, or lets it pass again.
    pub fn stall(&self, is_stalled: bool) {
        self.state.is_stalled.store(is_stalled, Ordering::Relaxed);
    }

    /// Ends all connections that there are.
    pub fn cut(&self) {
        for stream in self.state.open.lock().unwrap().drain(..) {
            // It may have ended.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        self.cut();
        // What waits for a connection sees that it is over.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

impl State {
    fn forward(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        for (from, to) in [(&client, &server), (&server, &client)] {
            let mut open = self.open.lock().unwrap();
            open.push(from.try_clone().unwrap());
            drop(open);
            let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            let state = Arc::clone(self);
            std::thread::spawn(move || state.pump(from, to));
        }
    }

    fn pump(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            while self.is_stalled.load(Ordering::Relaxed) {
                if self.is_over.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        // Either may have ended.
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}
