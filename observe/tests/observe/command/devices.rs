//! Tests `toll observe devices` on processes of the tests, and compares it with lsof.

use std::collections::BTreeSet;
use std::fs::File;
use std::process::{Command, Stdio};

use serde_json::Value;
use toll_testing::isolated;
use toll_testing::{Bench, Running, has, has_program, is_root, list, skip, wait_until};

use super::can_trace;

/// Closes descriptors that the tests were started with, which the process should not
/// have.
const CLOSED: &str =
    "for fd in $(ls /proc/$$/fd); do [ $fd -gt 2 ] && eval \"exec $fd<&-\"; done 2>/dev/null";

/// Starts a process whose standard streams are redirected by the shell line. Returns
/// when the process sleeps.
fn sleeper(bench: &Bench, line: &str) -> Running {
    let mut command = Command::new("bash");
    command
        .args(["-c", &format!("{CLOSED}; {line}; exec sleep 100")])
        .current_dir(bench.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let running = Running(command.spawn().expect("bash starts"));
    let name = format!("/proc/{}/comm", running.0.id());
    wait_until("it sleeps", || {
        std::fs::read_to_string(&name).is_ok_and(|name| name == "sleep\n")
    });
    running
}

#[track_caller]
fn held(bench: &Bench, running: &Running) -> Value {
    let report = bench.json(&["devices", "--json", &running.0.id().to_string()]);
    let processes = list(&report["processes"]);
    assert_eq!(processes.len(), 1, "{report:#}");
    assert_eq!(processes[0]["name"], "sleep");
    processes[0].clone()
}

#[track_caller]
fn device<'a>(process: &'a Value, path: &str) -> &'a Value {
    let mut devices = list(&process["devices"]).iter();
    let found = devices.find(|device| device["path"] == path);
    found.unwrap_or_else(|| panic!("no {path}: {process:#}"))
}

#[test]
fn descriptors_on_devices_are_told_with_what_the_device_is() {
    let bench = super::bench();
    let running = sleeper(&bench, "exec 5<>/dev/null 7</dev/urandom 8>/dev/full");
    let process = held(&bench, &running);
    let null = device(&process, "/dev/null");
    assert_eq!(null["kind"], "null sink");
    assert_eq!(null["number"]["major"], 1);
    assert_eq!(null["number"]["minor"], 3);
    let holds: Vec<(&Value, &Value)> = list(&null["holds"])
        .iter()
        .map(|hold| (&hold["access"], &hold["descriptors"]))
        .collect();
    assert_eq!(holds[0], (&"read".into(), &serde_json::json!([0])));
    assert_eq!(holds[1], (&"write".into(), &serde_json::json!([1, 2])));
    assert_eq!(holds[2], (&"read-write".into(), &serde_json::json!([5])));
    assert_eq!(device(&process, "/dev/urandom")["kind"], "random generator");
    assert_eq!(device(&process, "/dev/full")["holds"][0]["access"], "write");
    let pid = running.0.id().to_string();
    let text = bench.ok(&["devices", &pid]).stdout;
    assert!(text.contains("/dev/null: null sink"), "{text}");
    assert!(text.contains("descriptors 1, 2 (write)"), "{text}");
}

#[test]
fn a_node_elsewhere_and_one_that_is_gone_are_devices() {
    if !is_root() {
        return skip("making a device node needs root");
    }
    let bench = super::bench();
    // Some containers forbid this.
    let name = "zer\u{1b}[31mo";
    let ran = bench.shell(&format!("mknod $'{name}' c 1 5 && mknod gone c 1 3"));
    if ran.code != Some(0) {
        return skip(&format!("cannot make device nodes: {}", ran.stderr.trim()));
    }
    if let Err(error) = File::open(bench.path("gone")) {
        return skip(&format!("cannot open device nodes here: {error}"));
    }
    let running = sleeper(&bench, "exec 5<\"$(echo zer*o)\" 6>gone; rm gone");
    let process = held(&bench, &running);
    let kept = bench.path("zer\\x1b[31mo").canonicalize();
    assert!(kept.is_err(), "the name has the character itself");
    let devices = list(&process["devices"]);
    let zero = devices
        .iter()
        .find(|device| device["kind"] == "zero source");
    let path = zero.expect("the node elsewhere")["path"]
        .as_str()
        .expect("a path");
    assert!(path.ends_with("/zer\\x1b[31mo"), "{path}");
    let gone = devices.iter().find(|device| device["is_deleted"] == true);
    let gone = gone.expect("the deleted node");
    assert_eq!(gone["kind"], "null sink");
    assert!(
        gone["path"]
            .as_str()
            .is_some_and(|path| path.ends_with("/gone"))
    );
}

#[test]
fn both_ends_of_a_pseudo_terminal_and_its_session_are_told() {
    if !has_program("script") {
        return skip("there is no script");
    }
    let bench = super::bench();
    let line = "echo $$ >inner; exec sleep 100";
    let mut command = Command::new("script");
    command
        .args(["-q", "-c", line, "typescript"])
        .current_dir(bench.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut running = Running(command.spawn().expect("script starts"));
    wait_until("the command has begun", || {
        std::fs::read_to_string(bench.path("inner")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let inner = bench.read("inner");
    let outer = running.0.id().to_string();
    let report = bench.json(&["devices", "--json", &outer, inner.trim()]);
    let processes = list(&report["processes"]);
    assert_eq!(processes.len(), 2, "{report:#}");
    let of = |pid: &str| {
        let mut processes = processes.iter();
        let found = processes.find(|process| process["pid"].as_u64() == pid.parse().ok());
        found.expect("it was asked for")
    };
    let devices = list(&of(inner.trim())["devices"]);
    let slave = devices
        .iter()
        .find(|device| device["number"]["major"] == 136);
    let slave = slave.unwrap_or_else(|| panic!("no slave: {devices:#?}"));
    let index = slave["number"]["minor"].as_u64().expect("a number");
    assert_eq!(slave["kind"], format!("pseudo-terminal {index}, slave end"));
    let holds = list(&slave["holds"]);
    assert!(
        holds
            .iter()
            .any(|hold| hold["by"] == "controlling-terminal"),
        "{slave:#}"
    );
    let master = list(&of(&outer)["devices"]).iter();
    let mut master = master.filter(|device| {
        device["number"] == serde_json::json!({"class": "character", "major": 5, "minor": 2})
    });
    let master = master.next().expect("script holds the master");
    assert_eq!(
        master["kind"],
        format!("pseudo-terminal {index}, master end")
    );
    let _ = running.0.kill();
    let _ = Command::new("kill").arg(inner.trim()).status();
}

#[test]
fn mapped_devices_and_files_below_dev_are_told() {
    if !has_program("python3") {
        return skip("there is no python3");
    }
    let bench = super::bench();
    let script = bench.write(
        "map.py",
        "import mmap, os, time\n\
         f = os.open('/dev/zero', os.O_RDWR)\n\
         m = mmap.mmap(f, 4096, mmap.MAP_PRIVATE)\n\
         os.close(f)\nos.chdir('/dev')\nopen('%s', 'w')\ntime.sleep(100)\n"
            .replace("%s", bench.path("mapped").to_str().expect("UTF-8"))
            .as_str(),
    );
    let mut command = Command::new("python3");
    command.arg(script).stdin(Stdio::null());
    let running = Running(command.spawn().expect("python3 starts"));
    wait_until("it has mapped", || bench.path("mapped").exists());
    let report = bench.json(&["devices", "--json", &running.0.id().to_string()]);
    let process = &list(&report["processes"])[0];
    // Python keeps a descriptor of a file that it maps.
    assert_eq!(
        list(&device(process, "/dev/zero")["holds"])
            .last()
            .expect("a hold")["by"],
        "mapping"
    );
    assert_eq!(device(process, "/dev/zero")["kind"], "zero source");
    let directory = device(process, "/dev");
    assert_eq!(directory["holds"][0]["by"], "working-directory");
    assert_eq!(directory["number"], Value::Null);
}

/// Returns the character and block devices that a process holds according to lsof:
/// descriptor and number.
fn by_lsof(bench: &Bench, pid: &str) -> BTreeSet<(String, u64, u64)> {
    let out = bench
        .shell(&format!("lsof -w -n -P -p {pid} -F ftr"))
        .stdout;
    let mut found = BTreeSet::new();
    let (mut descriptor, mut kind) = (String::new(), String::new());
    for line in out.lines() {
        let (field, value) = line.split_at(1);
        match field {
            "f" => value.clone_into(&mut descriptor),
            "t" => value.clone_into(&mut kind),
            "r" if kind == "CHR" || kind == "BLK" => {
                let digits = value.trim_start_matches("0x");
                let number = u64::from_str_radix(digits, 16).expect("a device's number");
                // The number has the encoding of the kernel's new_encode_dev.
                let minor = (number & 0xff) | ((number >> 12) & 0xf_ff00);
                found.insert((descriptor.clone(), (number >> 8) & 0xfff, minor));
            }
            _ => {}
        }
    }
    found
}

#[test]
fn lsof_finds_the_same_descriptors() {
    if !has_program("lsof") {
        return skip("there is no lsof");
    }
    let bench = super::bench();
    let line = "exec 3<>/dev/null 4</dev/urandom 5>/dev/full 6</dev/zero 9>>/dev/null";
    let running = sleeper(&bench, line);
    let process = held(&bench, &running);
    let mut own = BTreeSet::new();
    for device in list(&process["devices"]) {
        let part = |name: &str| device["number"][name].as_u64();
        let (Some(major), Some(minor)) = (part("major"), part("minor")) else {
            continue;
        };
        for hold in list(&device["holds"]) {
            if hold["by"] != "descriptor" {
                continue;
            }
            for descriptor in list(&hold["descriptors"]) {
                own.insert((descriptor.to_string(), major, minor));
            }
        }
    }
    assert_eq!(own.len(), 8, "{process:#}");
    assert_eq!(by_lsof(&bench, &running.0.id().to_string()), own);
}

#[test]
fn all_processes_are_looked_at_and_those_that_may_not_be_are_counted() {
    isolated(|| {
        let bench = super::bench();
        let running = sleeper(&bench, "true");
        let report = bench.json("devices --json");
        let pid = u64::from(running.0.id());
        let is_own = |process: &&Value| process["pid"] == pid;
        assert!(
            list(&report["processes"])
                .iter()
                .any(|process| is_own(&process))
        );
        assert!(!list(&report["unseen"]).iter().any(|one| is_own(&one)));
        if !has_program("setpriv") {
            return skip("there is no setpriv");
        }
        // Another user may not inspect processes of root.
        let program = bench.path("toll");
        std::fs::copy(super::OBSERVE, &program).unwrap();
        let ran = bench.shell("chmod -R a+rX . && install -m 755 toll /tmp/toll-observe-test-$$ && \
        setpriv --reuid 65534 --regid 65534 --clear-groups /tmp/toll-observe-test-$$ devices --json; \
        code=$?; rm /tmp/toll-observe-test-$$; exit $code");
        let report = ran.json();
        let unseen = list(&report["unseen"]);
        let of_root = unseen
            .iter()
            .find(is_own)
            .unwrap_or_else(|| panic!("{report:#}"));
        assert_eq!(of_root["reason"], "permission denied");
    });
}

#[test]
fn a_command_is_seen_to_open_devices_however_shortly() {
    let bench = super::bench();
    if !can_trace(&bench) {
        return;
    }
    let line =
        "head -c 3 /dev/urandom >out; for i in 1 2 3; do : >/dev/full; done; echo out; exit 4";
    let arguments = [
        "devices",
        "--json",
        "-o",
        "held.json",
        "--",
        "sh",
        "-c",
        line,
    ];
    let ran = bench.run(&arguments);
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(4), "out\n", "")
    );
    assert_eq!(
        std::fs::read(bench.path("out"))
            .expect("it was written")
            .len(),
        3
    );
    let report: Value = serde_json::from_str(&bench.read("held.json")).expect("one document");
    assert_eq!(report["ended"]["status"], 4);
    assert_eq!(report["processes_seen"], 2);
    let processes = list(&report["processes"]);
    let named = |name: &str| {
        let found = processes.iter().find(|process| process["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {report:#}"))
    };
    let random = &device(named("head"), "/dev/urandom")["holds"][0];
    assert_eq!(
        (&random["by"], &random["access"]),
        (&"opened".into(), &"read".into())
    );
    let full = device(named("sh"), "/dev/full");
    assert_eq!(
        (&full["holds"][0]["count"], &full["holds"][0]["access"]),
        (&3.into(), &"write".into())
    );
    // The command's output is unchanged, and the report follows it.
    let ran = bench.ok("devices echo words --json");
    assert_eq!(ran.stdout, "words --json\n");
    has(&ran.stderr, &["devices: echo words --json"]);
}
