//! Files of `/proc` and `/sys` that consist of lines `name: value`.

/// Returns the value of the first line with exactly this name.
pub fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// Returns a value that is given in `kB`, in bytes.
pub fn bytes(text: &str, name: &str) -> Option<u64> {
    let kilobytes: u64 = value(text, name)?.strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_that_of_the_whole_name_and_a_size_is_in_bytes_or_nothing() {
        let text = "WritebackTmp:  9 kB\nDirty:   84880 kB\nWriteback:\t  4 kB\na\t: X: Y\n";
        assert_eq!(bytes(text, "Dirty"), Some(84_880 * 1024));
        assert_eq!(bytes(text, "Writeback"), Some(4096));
        assert_eq!(value(text, "a"), Some("X: Y"));
        for text in [
            "",
            "N",
            "N:",
            "N: x kB",
            "N: 1",
            "N: 1 MB",
            "N: 18446744073709551615 kB",
        ] {
            assert_eq!(bytes(text, "N"), None, "{text:?}");
        }
    }
}
