//! Network interfaces: their addresses and netmasks, and the gateways of the
//! kernel's routing tables.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;

/// The route is usable (`RTF_UP`, linux/route.h).
const ROUTE_UP: u32 = 0x1;
/// The route goes to a router (`RTF_GATEWAY`).
const ROUTE_GATEWAY: u32 = 0x2;
/// Packets that take this route are refused (`RTF_REJECT`).
const ROUTE_REJECTS: u32 = 0x200;

#[derive(Debug, Serialize)]
pub struct Report {
    pub version: u32,
    /// All interfaces, sorted by index.
    pub interfaces: Vec<Interface>,
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Interface {
    /// Name of the interface, with bytes that are not UTF-8 replaced.
    pub name: String,
    pub index: u32,
    pub state: State,
    /// Address such as `02:00:00:00:00:01`; `None` if the interface has none, like the
    /// loopback.
    pub link_address: Option<String>,
    /// Largest packet in bytes; `None` if the kernel did not report it.
    pub mtu_bytes: Option<u32>,
    /// IPv4 and IPv6 addresses, in the kernel's order.
    pub addresses: Vec<Address>,
    /// Default routes through this interface, preferred ones first.
    pub default_routes: Vec<DefaultRoute>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Down,
    /// The interface is switched on, but its link is not ready: no cable or no peer.
    NoCarrier,
    Up,
}

#[derive(Debug, Serialize)]
pub struct Address {
    pub address: IpAddr,
    /// Number of leading bits that all hosts of the network share; `None` for a netmask
    /// with gaps.
    pub prefix_length: Option<u32>,
    /// The netmask in the form of an address.
    pub netmask: Option<IpAddr>,
    pub broadcast: Option<IpAddr>,
    /// The other end of a point-to-point link.
    pub peer: Option<IpAddr>,
}

/// A route for packets that no other route matches.
#[derive(Debug, Serialize)]
pub struct DefaultRoute {
    pub family: &'static str,
    /// Whether every destination is on the link, without a router.
    pub is_on_link: bool,
    /// The router. It is also `None` if an IPv4 route has an IPv6 router, because
    /// `/proc/net/route` does not contain that address.
    pub gateway: Option<IpAddr>,
    /// Metric of the route. The kernel takes the route with the lowest metric.
    pub metric: u32,
}

/// Returns the number of leading ones of a netmask; `None` if it has a zero before a one.
#[must_use]
pub fn prefix_length(netmask: IpAddr) -> Option<u32> {
    let bits = match netmask {
        IpAddr::V4(mask) => u128::from(mask.to_bits()) << 96,
        IpAddr::V6(mask) => mask.to_bits(),
    };
    let ones = bits.leading_ones();
    (bits.count_ones() == ones).then_some(ones)
}

/// Returns default routes with the name of their interface, from `/proc/net/route` (IPv4,
/// the main table) and `/proc/net/ipv6_route` (all tables). Lines of another form are
/// skipped.
#[must_use]
pub fn default_routes(route: &str, ipv6_route: &str) -> Vec<(String, DefaultRoute)> {
    let mut routes: Vec<_> = route.lines().filter_map(ipv4_default).collect();
    routes.extend(ipv6_route.lines().filter_map(ipv6_default));
    routes.sort_by_key(|(_, route)| (route.family, route.metric));
    routes
}

fn hexadecimal(digits: &str) -> Option<u32> {
    u32::from_str_radix(digits, 16).ok()
}

/// Parses `eth0 00000000 010200C0 0003 0 0 100 00000000 0 0 0`: interface, destination,
/// gateway, flags, two counts, metric, mask, then three unused fields.
fn ipv4_default(line: &str) -> Option<(String, DefaultRoute)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [name, destination, gateway, flags, _, _, metric, mask, ..] = fields[..] else {
        return None;
    };
    let is_default = hexadecimal(destination)? == 0 && hexadecimal(mask)? == 0;
    // The kernel prints the address's four bytes as one number in this CPU's byte order.
    let gateway = Ipv4Addr::from(hexadecimal(gateway)?.to_ne_bytes());
    let metric = metric.parse().ok()?;
    let route = route("IPv4", gateway.into(), hexadecimal(flags)?, metric)?;
    is_default.then(|| (name.to_owned(), route))
}

/// Parses destination and its prefix length, source and its prefix length, gateway,
/// metric, two counts, flags (all in hexadecimal digits), interface.
fn ipv6_default(line: &str) -> Option<(String, DefaultRoute)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[
        _,
        to_length,
        _,
        from_length,
        gateway,
        metric,
        _,
        _,
        flags,
        name,
    ] = &fields[..]
    else {
        return None;
    };
    let is_default = hexadecimal(to_length)? == 0 && hexadecimal(from_length)? == 0;
    let gateway = Ipv6Addr::from_bits(u128::from_str_radix(gateway, 16).ok()?);
    let metric = hexadecimal(metric)?;
    let route = route("IPv6", gateway.into(), hexadecimal(flags)?, metric)?;
    is_default.then(|| (name.to_owned(), route))
}

/// Returns a route; `None` if it is not usable.
fn route(family: &'static str, gateway: IpAddr, flags: u32, metric: u32) -> Option<DefaultRoute> {
    (flags & ROUTE_UP != 0 && flags & ROUTE_REJECTS == 0).then(|| DefaultRoute {
        family,
        is_on_link: flags & ROUTE_GATEWAY == 0,
        gateway: (!gateway.is_unspecified()).then_some(gateway),
        metric,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `/proc/net/route` of a machine with default routes; [`IPV6_ROUTE`] is its
    /// `/proc/net/ipv6_route`.
    const ROUTE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
         eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
         tun0\t00000000\t00000000\t0001\t0\t0\t50\t00000000\t0\t0\t0\n\
         *\t00000000\t00000000\t0201\t0\t0\t9\t00000000\t0\t0\t0\n\
         eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
    const IPV6_ROUTE: &str = "\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
";

    #[test]
    #[cfg(target_endian = "little")]
    fn default_routes_are_found_the_preferred_first() {
        let routes = default_routes(ROUTE, IPV6_ROUTE);
        let shown: Vec<_> = routes
            .iter()
            .map(|(name, route)| {
                let gateway = route.gateway.map(|gateway| gateway.to_string());
                (name.as_str(), gateway, route.metric)
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("tun0", None, 50),
                ("eth0", Some("192.0.2.1".into()), 100),
                ("eth0", Some("fd00::1".into()), 1024),
            ]
        );
    }

    #[test]
    fn a_netmask_is_a_prefix_unless_it_has_gaps() {
        let length = |mask: &str| prefix_length(mask.parse().expect("an address"));
        assert_eq!(length("255.255.240.0"), Some(20));
        assert_eq!(length("255.255.255.255"), Some(32));
        assert_eq!(length("0.0.0.0"), Some(0));
        assert_eq!(length("255.0.255.0"), None);
        assert_eq!(length("ffff:ffff:ffff:ffff::"), Some(64));
        assert_eq!(length("ffff:0:1::"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[0-9a-fz \t\n]{0,200}") {
            let _ = default_routes(&text, &text);
        }
    }
}
