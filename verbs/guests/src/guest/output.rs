//! The output of a command in a guest.

use std::io::{self, Write};

use toll_host::environment::guest::Stream;

/// Passes on the output of a command in a guest. A closed pipe does not end the
/// command.
pub fn pass_on(stream: Stream, bytes: &[u8]) {
    // The reader may be gone. The command goes on without a reader.
    let _ = match stream {
        Stream::Output => {
            let mut stdout = io::stdout().lock();
            stdout.write_all(bytes).and_then(|()| stdout.flush())
        }
        Stream::Error => io::stderr().lock().write_all(bytes),
    };
}
