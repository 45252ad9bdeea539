//! Pairs of guests that are connected by a network.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use toll_host::environment::guest::{Guest, GuestDisk, GuestFailure, GuestGroup};
use toll_testing::any_kernel;
use toll_wire::guest::PairSide;
use toll_wire::{FailureKind, Outcome};

use super::guest::{NEVER, Setting, completed, failed, kernel, setting, shell};

/// Boots a pair with disks of its own.
fn boot(setting: &Setting, interrupted: &dyn Fn() -> bool) -> Result<GuestGroup, GuestFailure> {
    let disk = |name: &str| {
        let directory = setting.directory.path().join(name);
        GuestDisk::create(&directory, 64 << 20, None).unwrap()
    };
    let disks = [&disk("main"), &disk("partner")];
    GuestGroup::boot(&setting.spec, &disks, interrupted)
}

fn pair(name: &str) -> Option<GuestGroup> {
    let mut setting = setting(kernel(name)?);
    if name == "stock" {
        setting.spec.memory_bytes = 512 << 20;
    }
    Some(boot(&setting, NEVER).unwrap_or_else(|failure| panic!("{failure}")))
}

fn guests(pair: &GuestGroup) -> [&Guest; 2] {
    [pair.main(), pair.partner().expect("a pair has a partner")]
}

fn processes(pair: &GuestGroup) -> [u32; 2] {
    guests(pair).map(Guest::process_id)
}

#[track_caller]
fn assert_gone(processes: [u32; 2]) {
    for process in processes {
        assert!(!Path::new(&format!("/proc/{process}")).exists());
    }
}

/// Counts the processes that work in or below a directory, as each QEMU does in its disk's
/// directory.
fn processes_in(directory: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let places = entries.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok());
    places.filter(|place| place.starts_with(directory)).count()
}

fn kill(process: u32) {
    let pid = Pid::from_raw(process.cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

#[test]
fn the_guests_of_a_pair_reach_each_other_and_nobody_else() {
    for name in ["toll", "stock"] {
        let Some(mut pair) = pair(name) else {
            return;
        };
        let reach = |side: PairSide| {
            let (ipv4, ipv6) = (side.ipv4(), side.ipv6());
            shell(&format!(
                "for a in {ipv4} {ipv6}; do ping -c 2 -W 20 $a || exit 1; done; \
                 ip route | grep -v 10.0.77.0/24 >&2; cat /sys/class/net/*/address"
            ))
        };
        let data = completed(pair.trial(&[reach(PairSide::Partner), reach(PairSide::Main)], NEVER));
        let said = data.samples[0].stdout.clone().unwrap_or_default();
        assert_eq!(said.matches(" 0% packet loss").count(), 2, "{said}");
        assert!(said.contains("02:00:0a:00:4d:01"), "{said}");
        assert_eq!(data.samples[0].stderr.as_deref(), Some(""));
        assert_eq!(guests(&pair).map(|guest| guest.facts().cpus_online), [2, 2]);
        let both = processes(&pair);
        pair.end();
        assert_gone(both);
    }
}

#[test]
fn bytes_arrive_in_the_other_guest_as_they_were_sent() {
    let Some(mut pair) = pair(any_kernel()) else {
        return;
    };
    let make = shell("dd if=/dev/urandom of=sent bs=64k count=64 2>/dev/null");
    completed(pair.trial(&[make, shell("true")], NEVER));
    let send = shell("nc -l -p 2325 -e /bin/cat sent");
    let receive = shell(
        "until nc 10.0.77.1 2325 >got && [ -s got ]; do sleep 0.2; done; md5sum <got >&2; exit 7",
    );
    // The receiver fails on purpose, since the message of a failure contains the end of its output.
    let outcome = pair.trial(&[send.clone(), receive], NEVER);
    let message = failed(outcome, FailureKind::Failed);
    assert!(message.starts_with("partner: "), "{message}");
    assert!(pair.is_alive());
    let data = completed(pair.trial(&[shell("md5sum <sent"), shell("true")], NEVER));
    let sum = data.samples[0].stdout.clone().unwrap_or_default();
    assert!(
        message.contains(sum.trim().trim_end_matches(" -")),
        "{sum} {message}"
    );
    pair.end();
}

#[test]
fn a_partner_that_dies_ends_the_trial_and_both_guests() {
    for victim in [PairSide::Partner, PairSide::Main] {
        let Some(mut pair) = pair("toll") else {
            return;
        };
        let both = processes(&pair);
        let process = processes(&pair)[victim as usize];
        let killer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            kill(process);
        });
        let sleep = shell("sleep 1000");
        let message = failed(
            pair.trial(&[sleep.clone(), sleep], NEVER),
            FailureKind::Crashed,
        );
        killer.join().unwrap();
        let whose = match victim {
            PairSide::Main => "main guest: the guest died",
            PairSide::Partner => "partner: the guest died",
        };
        assert!(message.starts_with(whose), "{message}");
        assert!(!pair.is_alive());
        assert_gone(both);
    }
}

#[test]
fn a_part_that_fails_does_not_wait_for_the_others_time_limit() {
    let Some(mut pair) = pair("toll") else {
        return;
    };
    let mut endless = shell("sleep 1000");
    endless.timeout_ms = 3_600_000;
    let outcome = pair.trial(&[endless, shell("echo no >&2; exit 3")], NEVER);
    let message = failed(outcome, FailureKind::Failed);
    assert!(
        message.starts_with("partner: ") && message.contains('3'),
        "{message}"
    );
    assert!(!pair.is_alive());
}

#[test]
fn a_partner_that_will_not_boot_ends_the_main_guest() {
    let Some(kernel) = kernel("toll") else {
        return;
    };
    let setting = setting(kernel);
    let place = |name: &str| setting.directory.path().join(name);
    let main = GuestDisk::create(&place("main"), 64 << 20, None).unwrap();
    let partner = GuestDisk::create(&place("partner"), 64 << 20, None).unwrap();
    std::fs::write(place("partner/work.img"), [0; 4096]).unwrap();
    let failure = GuestGroup::boot(&setting.spec, &[&main, &partner], NEVER).unwrap_err();
    let GuestFailure::Failed(message) = failure else {
        panic!("{failure:?}");
    };
    assert!(
        message.starts_with("cannot boot the partner: "),
        "{message}"
    );
    assert!(message.contains("cannot mount ext4"), "{message}");
    assert_eq!(processes_in(setting.directory.path()), 0);
}

#[test]
fn an_interrupt_ends_both_guests_whenever_it_comes() {
    let Some(mut pair) = pair("toll") else {
        return;
    };
    let both = processes(&pair);
    let sleep = shell("sleep 1000");
    assert_eq!(
        pair.trial(&[sleep.clone(), sleep], &|| true),
        None::<Outcome>
    );
    assert!(!pair.is_alive());
    assert_gone(both);

    let setting = setting(kernel("toll").unwrap());
    // The callback is first called once the main guest boots.
    let is_booting = || {
        setting
            .directory
            .path()
            .join("partner/initramfs.cpio")
            .exists()
    };
    let failure = boot(&setting, &is_booting).unwrap_err();
    assert_eq!(failure, GuestFailure::Interrupted);
    assert_eq!(processes_in(setting.directory.path()), 0);
}
