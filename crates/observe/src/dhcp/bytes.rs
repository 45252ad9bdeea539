//! Numbers out of bytes.

/// A 16-bit number, most significant byte first.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let part = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes(part.try_into().ok()?))
}

/// A 32-bit number, most significant byte first.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let part = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(part.try_into().ok()?))
}

/// `02:00:00:aa:bb:cc`
pub(super) fn colons(bytes: &[u8]) -> String {
    let parts: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    parts.join(":")
}

/// Bytes as text if they are that, else in hexadecimal digits.
pub(super) fn text_or_hex(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    let is_shown = |c: char| !c.is_control();
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) if !text.is_empty() && text.chars().all(is_shown) => text.to_owned(),
        _ => hex(bytes),
    }
}

/// `0a00ff`
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
