//! Prints the results of a transmission, for both programs.

use rustix::io::Errno;
use toll_probe::device::{End, Page};
use toll_probe::program::{complain, print};

use crate::options::Options;
use crate::trouble::of_connection;

/// Prints the duration of a transfer and, if `--page` asks for it, the page-table
/// entry. The published driver printed both to the kernel's log.
pub fn tell(
    end: End,
    options: &Options,
    duration_ns: u64,
    size_bytes: u64,
    page: Result<Option<Page>, Errno>,
) -> Result<(), String> {
    print(&transmission(duration_ns, size_bytes))?;
    if !options.shows_page {
        return Ok(());
    }
    let page = page.map_err(|errno| of_connection("show the page that was mapped", errno))?;
    if let Some(page) = page {
        complain(end.module_name(), &format!("{:X}", page.entry));
    }
    Ok(())
}

/// Formats the line that the report's programs print. As with `%lf` in C, the number
/// has six decimals.
fn transmission(duration_ns: u64, size_bytes: u64) -> String {
    format!(
        "Transmission time: {:.6} ms, File size: {size_bytes} bytes\n",
        duration_ns as f64 / 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_that_of_the_report_s_programs() {
        assert_eq!(
            transmission(15_049_360_123, 275_000_000),
            "Transmission time: 15049.360123 ms, File size: 275000000 bytes\n"
        );
    }
}
