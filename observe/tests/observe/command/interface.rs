//! Tests `toll observe interface` on the loopback, and on interfaces with known
//! settings in a separate network namespace.

use serde_json::{Value, json};
use toll_testing::{has_program, is_root, list, skip};

/// A pair of interfaces. The near one has two subnets (one with a label), a
/// point-to-point link, gateways of each family and a route without a gateway. The far
/// one is switched off.
const LAB: &str = r#"
set -eu
ip link add near address 02:00:00:00:00:01 mtu 1400 type veth peer name far
ip addr add 10.9.16.2/20 broadcast + dev near
ip addr add 172.16.0.2/16 label near:1 dev near
ip addr add 10.8.0.1 peer 10.8.0.2/32 dev near
ip link set near up
ip link set far up
sysctl -qw net.ipv6.conf.near.disable_ipv6=0 2>sysctl.err || true
ip -6 addr add fd00:9::2/64 dev near nodad
ip route add default via 10.9.16.3 dev near metric 200
ip route add default via 10.9.16.1 dev near metric 100
ip route add default dev near metric 300
ip -4 route add default via inet6 fd00:9::1 dev near metric 400
ip -6 route add default via fd00:9::1 dev near
toll-observe interface --json near >near.json
toll-observe interface near >near.txt
ip link set far down
ip link add evil$'\033[31m' type veth peer name other
toll-observe interface --json >all.json
toll-observe interface >all.txt
"#;

#[track_caller]
fn interface<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut interfaces = list(&report["interfaces"]).iter();
    let found = interfaces.find(|interface| interface["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {report:#}"))
}

#[test]
fn the_loopback_has_its_address_and_netmask() {
    let bench = super::bench();
    let report = bench.json("interface lo --json");
    assert_eq!(list(&report["interfaces"]).len(), 1, "{report:#}");
    let loopback = interface(&report, "lo");
    assert_eq!(loopback["state"], "up");
    assert_eq!(loopback["link_address"], Value::Null);
    let addresses = list(&loopback["addresses"]).iter();
    let found = addresses.filter(|one| one["address"] == "127.0.0.1");
    let netmasks: Vec<_> = found.map(|one| &one["netmask"]).collect();
    assert_eq!(netmasks, ["255.0.0.0"], "{report:#}");
    let text = bench.ok("interface lo").stdout;
    let line = "  IPv4 address: 127.0.0.1/8, netmask 255.0.0.0\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn addresses_netmasks_and_gateways_are_those_that_were_set() {
    if !is_root() || !has_program("ip") || !has_program("unshare") {
        return skip("network namespaces need root, ip(8) and unshare(1)");
    }
    let bench = super::bench();
    let can = bench.shell("PATH=$PATH:/sbin unshare -n ip link add name a type veth peer name b");
    if can.code != Some(0) {
        return skip(&format!("no network of one's own: {}", can.stderr.trim()));
    }
    bench.write("lab", LAB);
    let ran = bench.shell("PATH=$PATH:/usr/sbin:/sbin unshare -n bash lab");
    assert_eq!(ran.code, Some(0), "{ran:#?}");

    let report: Value = serde_json::from_str(&bench.read("near.json")).expect("JSON");
    let near = interface(&report, "near");
    assert_eq!(near["state"], "up");
    assert_eq!(near["link_address"], "02:00:00:00:00:01");
    assert_eq!(near["mtu_bytes"], 1400);
    let wanted = json!([
        {"address": "10.9.16.2", "prefix_length": 20, "netmask": "255.255.240.0",
         "broadcast": "10.9.31.255", "peer": null},
        {"address": "172.16.0.2", "prefix_length": 16, "netmask": "255.255.0.0",
         "broadcast": null, "peer": null},
        {"address": "10.8.0.1", "prefix_length": 32, "netmask": "255.255.255.255",
         "broadcast": null, "peer": "10.8.0.2"},
        {"address": "fd00:9::2", "prefix_length": 64, "netmask": "ffff:ffff:ffff:ffff::",
         "broadcast": null, "peer": null},
    ]);
    let addresses = list(&near["addresses"]);
    let is_global = |one: &&Value| {
        let address = one["address"].as_str().unwrap_or_default();
        !address.starts_with("fe80:")
    };
    let set: Vec<&Value> = addresses.iter().filter(is_global).collect();
    assert_eq!(set, list(&wanted).iter().collect::<Vec<_>>(), "{near:#}");
    assert_eq!(
        near["default_routes"],
        json!([
            {"family": "IPv4", "is_on_link": false, "gateway": "10.9.16.1", "metric": 100},
            {"family": "IPv4", "is_on_link": false, "gateway": "10.9.16.3", "metric": 200},
            {"family": "IPv4", "is_on_link": true, "gateway": null, "metric": 300},
            {"family": "IPv4", "is_on_link": false, "gateway": null, "metric": 400},
            {"family": "IPv6", "is_on_link": false, "gateway": "fd00:9::1", "metric": 1024},
        ])
    );
    let text = bench.read("near.txt");
    let line = "  IPv4 address: 10.9.16.2/20, netmask 255.255.240.0, broadcast 10.9.31.255\n";
    assert!(text.contains(line), "{text}");
    assert!(text.contains("gateway: 10.9.16.1 (metric 100)"), "{text}");

    let all: Value = serde_json::from_str(&bench.read("all.json")).expect("JSON");
    assert_eq!(interface(&all, "near")["state"], "no-carrier");
    assert_eq!(interface(&all, "far")["state"], "down");
    assert_eq!(interface(&all, "lo")["state"], "down");
    interface(&all, "evil\u{1b}[31m");
    assert!(!bench.read("all.txt").contains('\u{1b}'));
}
