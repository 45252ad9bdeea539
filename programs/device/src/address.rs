//! Parses addresses as people write them.

use std::net::SocketAddr;

/// Parses an address with or without a port: `10.0.77.1`, `10.0.77.1:2325`, `fd77::1`,
/// `[fd77::1]:2325`, `fe80::1%eth0`, `[fe80::1%eth0]:2325`.
pub fn parse(text: &str) -> Result<(SocketAddr, Option<u16>), String> {
    let cannot = || {
        format!(
            "cannot read the address {text:?}: expected IPv4 or IPv6, such as 10.0.77.1, fd77::1 \
             or [fd77::1]:2325"
        )
    };
    let numbered = with_number(text).ok_or_else(cannot)?;
    if let Ok(address) = numbered.parse::<SocketAddr>() {
        return Ok((address, Some(address.port())));
    }
    let forms = [format!("{numbered}:0"), format!("[{numbered}]:0")];
    let address = forms.iter().find_map(|form| form.parse().ok());
    Ok((address.ok_or_else(cannot)?, None))
}

/// Replaces the interface after `%` by its number. `None` if there is no such
/// interface.
fn with_number(text: &str) -> Option<String> {
    let Some((address, rest)) = text.split_once('%') else {
        return Some(text.to_owned());
    };
    let (scope, port) = rest.split_at(rest.find(']').unwrap_or(rest.len()));
    Some(format!("{address}%{}{port}", interface(scope)?))
}

/// Returns the number of an interface. `scope` is its number or name.
fn interface(scope: &str) -> Option<u32> {
    scope.parse().ok().or_else(|| {
        let path = format!("/sys/class/net/{scope}/ifindex");
        let is_name = !scope.is_empty() && !scope.contains('/');
        let text = std::fs::read_to_string(path).ok().filter(|_| is_name)?;
        text.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families_are_read_with_and_without_port() {
        for (text, address, port) in [
            ("10.0.77.1", "10.0.77.1:0", None),
            ("10.0.77.1:80", "10.0.77.1:80", Some(80)),
            ("fd77::1", "[fd77::1]:0", None),
            ("[fd77::1]", "[fd77::1]:0", None),
            ("[fd77::1]:80", "[fd77::1]:80", Some(80)),
            ("fe80::1%3", "[fe80::1%3]:0", None),
            ("[fe80::1%3]:9", "[fe80::1%3]:9", Some(9)),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(parse(text), Ok((address, port)), "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "localhost",
            "10.0.77",
            "10.0.77.1:x",
            "10.0.77.1:70000",
            "[fd77::1",
            "[fd77::1]80",
            "[10.0.77.1]:80",
            "fe80::1%no-such-interface",
            "fe80::1%../../x",
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with("cannot read the address"), "{text}");
        }
    }
}
