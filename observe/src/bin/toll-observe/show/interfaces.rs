//! Shows addresses, netmasks and gateways of network interfaces.

use std::fmt::Display;

use toll_core::format;
use toll_document::{Document, Paint, notes, paragraph, paragraphs};
use toll_observe::interfaces::{Address, DefaultRoute, Interface, Report, State};

/// Returns the report for a terminal: addresses, netmasks and gateways of interfaces.
pub fn of_report(report: &Report) -> Document {
    let interfaces = report.interfaces.iter().map(interface);
    Document::sections(interfaces.chain([notes(&report.notes, Paint::Yellow)]))
}

fn interface(interface: &Interface) -> Document {
    let state = match interface.state {
        State::Down => "down",
        State::NoCarrier => "up, but without a carrier",
        State::Up => "up",
    };
    let text = paragraph(format!("{}: {state}", interface.name), 0, Paint::Bold);
    let mut lines = Vec::new();
    if let Some(address) = &interface.link_address {
        lines.push(format!("link-layer address: {address}"));
    }
    if let Some(mtu_bytes) = interface.mtu_bytes {
        lines.push(format!("MTU: {} B", format::count(mtu_bytes.into())));
    }
    lines.extend(interface.addresses.iter().map(address));
    lines.extend(interface.default_routes.iter().map(route));
    text + paragraphs(lines, 2, Paint::Plain)
}

fn address(address: &Address) -> String {
    let is_v4 = address.address.is_ipv4();
    let mut line = format!(
        "{} address: {}",
        if is_v4 { "IPv4" } else { "IPv6" },
        address.address
    );
    if let Some(length) = address.prefix_length {
        line.push_str(&format!("/{length}"));
    }
    let mut add = |name: &str, value: Option<&dyn Display>| {
        if let Some(value) = value {
            line.push_str(&format!(", {name} {value}"));
        }
    };
    // An IPv6 netmask is never written out.
    let netmask = address.netmask.as_ref().filter(|_| is_v4);
    add("netmask", netmask.map(|mask| mask as &dyn Display));
    add("broadcast", address.broadcast.as_ref().map(|one| one as _));
    add("peer", address.peer.as_ref().map(|one| one as _));
    line
}

fn route(route: &DefaultRoute) -> String {
    let gateway = match route.gateway {
        Some(gateway) => gateway.to_string(),
        None if route.is_on_link => "none, destinations are on the link".to_owned(),
        None => "an IPv6 router, whose address /proc/net/route does not have".to_owned(),
    };
    format!(
        "{} default gateway: {gateway} (metric {})",
        route.family, route.metric
    )
}
