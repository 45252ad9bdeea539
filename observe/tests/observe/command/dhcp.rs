//! Tests `toll observe dhcp` on leases of real servers and clients in separate network
//! namespaces, and compares it with tshark.

use serde_json::Value;
use toll_testing::{Bench, Ran, has, has_program, is_root, list, skip, texts};

/// A server on `srv` and clients on `cli`, which are two connected interfaces in two
/// network namespaces. Packets that pass `srv` are written to `lease.pcap`.
const LAB: &str = r#"
set -eu
ip link set lo up
ip link add srv address 02:00:00:00:00:01 type veth peer name cli address 02:00:00:00:00:02
unshare -n sleep 10000 & client=$!
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
until [ "$(readlink /proc/$client/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link set cli netns $client
ip addr add 10.9.0.1/24 dev srv
ip link set srv up
in="nsenter -t $client -n"
$in ip link set cli up
tcpdump --immediate-mode -Z root -i srv -U -w lease.pcap udp 2>tcpdump.err & capture=$!
until grep -q listening tcpdump.err; do sleep 0.01; done
tcpdump --immediate-mode -Z root -i any -U -w any.pcap udp 2>any.err & any=$!
until grep -q listening any.err; do sleep 0.01; done
toll-observe dhcp srv --json >live.json 2>live.err & live=$!
until grep -q listening live.err; do sleep 0.01; done
dnsmasq --no-daemon --conf-file=/dev/null --user=root --interface=srv --bind-interfaces --port=0 \
  --no-resolv --no-hosts --leasefile-ro --dhcp-range=10.9.0.10,10.9.0.20,2m --dhcp-authoritative \
  --dhcp-option=option:domain-search,eng.example,example --dhcp-option=121,10.1.0.0/16,10.9.0.2 \
  --no-ping >dnsmasq.log 2>&1 &
until grep -q 'IP range' dnsmasq.log; do sleep 0.01; done
printf '#!/bin/sh\n[ "$1" != bound ] || ip addr add "$ip/24" dev "$interface"\n' >bound
chmod +x bound
$in busybox udhcpc -i cli -f -n -s ./bound -x hostname:box -O search -O staticroutes >udhcpc.log 2>&1 &
udhcpc=$!
until grep -q obtained udhcpc.log; do sleep 0.01; done
kill -USR1 $udhcpc
until [ "$(grep -c obtained udhcpc.log)" = 2 ]; do sleep 0.01; done
kill -USR2 $udhcpc
until grep -q 'released state' udhcpc.log; do sleep 0.01; done
kill $udhcpc
"#;

/// The end of a capture. After the client's work, a datagram to nobody is sent, which
/// every capture has last. Captures are ended by SIGTERM, because a shell makes its
/// background processes ignore SIGINT.
const END: &str = r#"
ip neigh add 10.9.0.99 lladdr 02:00:00:00:00:99 dev srv nud permanent
echo over >/dev/udp/10.9.0.99/9
for file in lease.pcap any.pcap; do
  until tcpdump -n -r $file 2>/dev/null | grep -q '10.9.0.99[.]9:'; do sleep 0.05; done
done
kill $capture $any $live
wait $capture $any $live
"#;

/// Runs a lab. Prints the reason if it cannot run here.
fn lab(bench: &Bench, more: &str) -> bool {
    if !is_root() {
        skip("network namespaces need root");
        return false;
    }
    for program in ["ip", "unshare", "nsenter", "busybox", "dnsmasq", "tcpdump"] {
        if !has_program(program) {
            skip(&format!("there is no {program}"));
            return false;
        }
    }
    let can = bench.shell("unshare -n ip link add name a type veth peer name b");
    if can.code != Some(0) {
        skip(&format!(
            "no network of one's own can be had: {}",
            can.stderr.trim()
        ));
        return false;
    }
    bench.write("lab", &format!("{LAB}{more}{END}"));
    let path = "PATH=$PATH:/usr/sbin:/sbin";
    let ran = bench.shell(&format!("{path} timeout 800 unshare -n bash lab"));
    assert_eq!(ran.code, Some(0), "{ran:#?}\n{:?}", logs(bench));
    true
}

/// Returns the messages of the lab's programs.
fn logs(bench: &Bench) -> Vec<String> {
    let read = |name: &&str| std::fs::read_to_string(bench.path(name)).unwrap_or_default();
    [
        "tcpdump.err",
        "live.err",
        "dnsmasq.log",
        "udhcpc.log",
        "dhclient.log",
    ]
    .iter()
    .map(read)
    .collect()
}

fn events(report: &Value) -> Vec<&Value> {
    let exchanges = list(&report["exchanges"]).iter();
    exchanges
        .flat_map(|exchange| list(&exchange["messages"]))
        .collect()
}

fn kinds(report: &Value) -> Vec<&str> {
    let events = events(report).into_iter();
    events.filter_map(|event| event["kind"].as_str()).collect()
}

/// Returns the value of a message's option in words.
fn option(event: &Value, code: u64) -> &str {
    let options = list(&event["options"]);
    let found = options.iter().find(|option| option["code"] == code);
    found
        .and_then(|option| option["value"].as_str())
        .unwrap_or_default()
}

#[test]
fn a_real_lease_is_followed_and_the_questions_are_answered() {
    let bench = super::bench();
    if !lab(&bench, "") {
        return;
    }
    let report = bench.json("dhcp --json lease.pcap");
    // Busybox's client may miss the reply to its renewal, which goes to the socket that
    // sent the request. The client then asks again.
    let expected = kinds(&report);
    let renewals = expected.len().saturating_sub(5) / 2;
    assert!(renewals > 0, "{report:#}");
    let lease = ["DISCOVER", "OFFER", "REQUEST", "ACK"].into_iter();
    let renewals = std::iter::repeat_n(["REQUEST", "ACK"], renewals).flatten();
    let all: Vec<&str> = lease.chain(renewals).chain(["RELEASE"]).collect();
    assert_eq!(expected, all, "{report:#}");
    assert_eq!(list(&report["problems"]).len(), 0, "{report:#}");
    let events = events(&report);
    assert_eq!(events[4]["phase"], "renewing");
    assert_eq!(option(events[3], 51), "2 min");
    assert_eq!(option(events[3], 119), "eng.example, example");
    assert_eq!(option(events[3], 121), "10.1.0.0/16 by 10.9.0.2");
    let leases = list(&report["leases"]);
    assert_eq!(leases.len(), 1, "{report:#}");
    assert_eq!(leases[0]["server"], "10.9.0.1");
    assert_eq!(leases[0]["server_link"], "02:00:00:00:00:01");
    assert_eq!(leases[0]["client"], "02:00:00:00:00:02");
    assert_eq!(
        (&leases[0]["granted"], &leases[0]["end"]),
        (&4.into(), &"released".into())
    );
    assert_eq!(option(events[3], 58), "1 min");
    assert_eq!(leases[0]["lease_s"], 120);
    // Dnsmasq shortens the times of a renewal by some random seconds, so that clients
    // do not renew together.
    let seconds = |name: &str| leases[0][name].as_u64().expect("a time");
    let less = 60 - seconds("t1_s");
    assert!(less < 8 && seconds("t2_s") == 105 - less, "{leases:#?}");
    let answers = list(&report["answers"]);
    let address = leases[0]["address"].as_str().expect("an address");
    assert_eq!(answers[1]["answer"], "02:00:00:00:00:02");
    assert_eq!(answers[2]["answer"], "10.9.0.1");
    assert_eq!(
        answers[3]["answer"],
        format!("{address} to 02:00:00:00:00:02")
    );
    let text = bench.ok("dhcp lease.pcap").stdout;
    for needle in [
        "RELEASE: gives",
        "if it is lost, nobody acknowledges it",
        "host name box",
    ] {
        assert!(text.contains(needle), "{needle}: {text}");
    }
    tshark_reads_the_same_fields(&bench, &report);
    // The live capture, the other capture format and other forms of the file have the
    // same content.
    let live: Value = serde_json::from_str(&bench.read("live.json")).expect("one document");
    assert_eq!(kinds(&live), expected, "{live:#}");
    assert_eq!(live["leases"][0]["address"], address);
    let any = bench.json("dhcp --json any.pcap");
    assert_eq!(kinds(&any), expected, "{any:#}");
    if !has_program("editcap") {
        return skip("there is no editcap, so other forms of captures are not compared");
    }
    for form in ["pcapng", "nsecpcap"] {
        let ran = bench.shell(&format!(
            "editcap -F {form} lease.pcap other && toll-observe dhcp --json other"
        ));
        assert_eq!(ran.json(), report, "{form}");
    }
}

/// Fields that tshark reads from a message, with the same fields in this report.
const FIELDS: &[(&str, &str)] = &[
    ("frame.number", "/packet"),
    ("eth.src", "/source_link"),
    ("eth.dst", "/destination_link"),
    ("ip.src", "/source"),
    ("ip.dst", "/destination"),
    ("udp.srcport", "/source_port"),
    ("udp.dstport", "/destination_port"),
    ("dhcp.hops", "/hops"),
    ("dhcp.secs", "/seconds"),
    ("dhcp.ip.client", "/client_address"),
    ("dhcp.ip.your", "/your_address"),
    ("dhcp.ip.server", "/next_server"),
    ("dhcp.ip.relay", "/relay"),
];

/// Fields of options: tshark's field, the code, and whether the value is in seconds.
const OPTION_FIELDS: &[(&str, u64, bool)] = &[
    ("dhcp.option.dhcp_server_id", 54, false),
    ("dhcp.option.requested_ip_address", 50, false),
    ("dhcp.option.ip_address_lease_time", 51, true),
    ("dhcp.option.renewal_time_value", 58, true),
    ("dhcp.option.rebinding_time_value", 59, true),
    ("dhcp.option.subnet_mask", 1, false),
    ("dhcp.option.router", 3, false),
    ("dhcp.option.broadcast_address", 28, false),
    ("dhcp.option.hostname", 12, false),
    ("dhcp.option.vendor_class_id", 60, false),
];

/// Runs tshark, which prints one line of fields for each message.
fn tshark(bench: &Bench) -> Ran {
    let names: Vec<&str> = FIELDS
        .iter()
        .map(|(name, _)| *name)
        .chain(OPTION_FIELDS.iter().map(|(name, _, _)| *name))
        .chain(["dhcp.id", "dhcp.hw.mac_addr", "dhcp.option.dhcp"])
        .collect();
    let fields: Vec<String> = names.iter().map(|name| format!("-e {name}")).collect();
    bench.shell(&format!(
        "tshark -r lease.pcap -Y dhcp -T fields -E separator=/t -E occurrence=f {} 2>/dev/null",
        fields.join(" ")
    ))
}

#[track_caller]
fn tshark_reads_the_same_fields(bench: &Bench, report: &Value) {
    if !has_program("tshark") {
        return skip("there is no tshark");
    }
    let ran = tshark(bench);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let mut seen = 0;
    for exchange in list(&report["exchanges"]) {
        for event in list(&exchange["messages"]) {
            let theirs: Vec<&str> = lines[seen].split('\t').collect();
            seen += 1;
            for ((name, pointer), theirs) in FIELDS.iter().zip(&theirs) {
                let own = match event.pointer(pointer) {
                    Some(Value::String(text)) => text.clone(),
                    Some(Value::Null) => "0.0.0.0".into(),
                    other => other.expect("a member").to_string(),
                };
                assert_eq!(own, *theirs, "{name} of {event:#}");
            }
            let theirs = &theirs[FIELDS.len()..];
            for ((name, code, is_time), theirs) in OPTION_FIELDS.iter().zip(theirs) {
                let theirs = match theirs.parse() {
                    Ok(seconds) if *is_time => toll_observe::dhcp::duration(seconds),
                    _ => (*theirs).to_owned(),
                };
                assert_eq!(option(event, *code), theirs, "{name} of {event:#}");
            }
            let last = &theirs[OPTION_FIELDS.len()..];
            assert_eq!(exchange["xid"], last[0], "{exchange:#}");
            assert_eq!(exchange["client"], last[1]);
            let kind = last[2].parse().ok().map(toll_observe::dhcp::type_name);
            assert_eq!(event["kind"].as_str(), kind.as_deref());
        }
    }
    assert_eq!(seen, lines.len(), "{ran:#?}");
    assert!(seen >= 7);
}

#[test]
fn the_client_of_isc_and_two_clients_at_once_are_told_apart() {
    let bench = super::bench();
    if !has_program("dhclient") {
        return skip("there is no dhclient");
    }
    let more = r#"
$in ip addr flush dev cli
printf '#!/bin/sh\n[ -z "${new_ip_address-}" ] || ip addr add "$new_ip_address/24" dev "$interface"\nexit 0\n' >configure
chmod +x configure
printf 'send host-name "other";\nsend vendor-class-identifier "toll test";\nrequest subnet-mask, routers;\n' >dhclient.conf
: >leases
$in ip link set cli address 02:00:00:00:00:03
files="-cf dhclient.conf -lf leases -pf $PWD/dhclient.pid -sf $PWD/configure"
$in dhclient -v -1 $files cli >dhclient.log 2>&1
# The process that stays writes its number when the one that was started may have ended.
until [ -s dhclient.pid ]; do sleep 0.01; done
$in dhclient -v -r $files cli >>dhclient.log 2>&1
"#;
    if !lab(&bench, more) {
        return;
    }
    let report = bench.json("dhcp --json lease.pcap");
    let mut clients: Vec<&str> = texts(list(&report["leases"]), "client");
    clients.sort_unstable();
    assert_eq!(
        clients,
        ["02:00:00:00:00:02", "02:00:00:00:00:03"],
        "{report:#}"
    );
    let other = list(&report["exchanges"]);
    let other = other
        .iter()
        .find(|exchange| exchange["host_name"] == "other");
    assert_eq!(
        other.expect("the second client")["vendor_class"],
        "toll test"
    );
    for lease in list(&report["leases"]) {
        assert_eq!(lease["end"], "released", "{lease:#}");
    }
}

#[test]
fn a_client_that_comes_with_an_address_of_elsewhere_is_refused() {
    let bench = super::bench();
    if !has_program("dhclient") {
        return skip("there is no dhclient");
    }
    let more = r#"
cat >leases <<'END'
lease {
  interface "cli";
  fixed-address 10.8.0.5;
  option subnet-mask 255.255.255.0;
  option dhcp-lease-time 3600;
  option dhcp-message-type 5;
  option dhcp-server-identifier 10.9.0.1;
  renew never;
  rebind never;
  expire never;
}
END
printf '#!/bin/sh\nexit 0\n' >configure
chmod +x configure
: >dhclient.conf
$in dhclient -v -1 -cf dhclient.conf -lf leases -pf "$PWD/dhclient.pid" -sf "$PWD/configure" cli >dhclient.log 2>&1
# The process that stays writes its number when the one that was started may have ended.
until [ -s dhclient.pid ]; do sleep 0.01; done
kill "$(cat dhclient.pid)"
"#;
    if !lab(&bench, more) {
        return;
    }
    let report = bench.json("dhcp --json lease.pcap");
    let exchanges = list(&report["exchanges"]).iter();
    let is_reboot = |exchange: &&Value| exchange["messages"][0]["phase"] == "init-reboot";
    let mut refused = exchanges.filter(is_reboot);
    let refused = refused.next().unwrap_or_else(|| panic!("{report:#}"));
    let first = &refused["messages"][0];
    assert_eq!(option(first, 50), "10.8.0.5");
    assert_eq!(first["summary"], "asks whether 10.8.0.5 is still its own");
    assert!(kinds(&report).contains(&"NAK"), "{report:#}");
    assert_eq!(refused["outcome"], "refused; the client must start over");
}

#[test]
fn listening_ends_by_itself_and_tells_what_it_lacks() {
    let bench = super::bench();
    let ran = bench.run("dhcp lo --seconds 1 --json");
    match ran.code {
        Some(5) => skip(ran.stderr.trim()),
        _ => {
            assert_eq!(ran.json()["messages"], 0);
            has(&ran.stderr, &["listening to lo"]);
        }
    }
}
