//! What a transfer took, as the report's programs print it.

use std::fmt;

use toll_probe::clock::now_ns;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmission {
    pub duration_ns: u64,
    pub size_bytes: u64,
}

impl Transmission {
    pub fn since(started_ns: u64, size_bytes: u64) -> Self {
        Self {
            duration_ns: now_ns() - started_ns,
            size_bytes,
        }
    }
}

impl fmt::Display for Transmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // C's %lf has six decimals.
        writeln!(
            f,
            "Transmission time: {:.6} ms, File size: {} bytes",
            self.duration_ns as f64 / 1e6,
            self.size_bytes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_that_of_the_report_s_programs() {
        let transmission = Transmission {
            duration_ns: 15_049_360_123,
            size_bytes: 275_000_000,
        };
        assert_eq!(
            transmission.to_string(),
            "Transmission time: 15049.360123 ms, File size: 275000000 bytes\n"
        );
    }
}
