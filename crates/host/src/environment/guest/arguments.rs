//! QEMU's command line for a guest, as pure functions.

use std::ffi::OsString;
use std::os::fd::RawFd;

use toll_wire::guest::{
    ERROR_PORT, INIT_COUNT, INIT_ICOUNT, INIT_ORDINARY, INIT_VARIABLE, OUTPUT_PORT, PAIR_VARIABLE,
    PORT, PairSide, SHARED_TAG, SHARED_VARIABLE, SWAP_DISK, SWAP_VARIABLE, WORK_DISK,
};

use super::disk::{INITRAMFS, KERNEL, SHARED, SWAP_IMAGE};
use super::plugin::{COUNTS, COUNTS_BYTES_MAX, PLUGIN};
use super::spec::{Accelerator, GuestSpec};
use crate::environment::kernel::Board;

/// Descriptors that QEMU inherits: its ends of the guest's ports, and its end of the network card's
/// cable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptors {
    pub requests: RawFd,
    pub output: RawFd,
    pub error: RawFd,
    pub card: Option<(PairSide, RawFd)>,
}

/// Builds QEMU's arguments, with `work` as work disk. QEMU must be started in the directory
/// of the guest's disk. Files have fixed names there, since commas and colons in a name have
/// a meaning for QEMU.
pub(super) fn qemu(
    spec: &GuestSpec,
    accelerator: Accelerator,
    tsc_khz: Option<u64>,
    descriptors: Descriptors,
    work: &str,
) -> Vec<OsString> {
    let board = spec.kernel.board;
    let mut list: Vec<OsString> = Vec::new();
    let mut add = |words: &[&str]| list.extend(words.iter().map(OsString::from));
    add(&["-nodefaults", "-no-user-config", "-display", "none"]);
    // When a guest panics or ends, it reboots, which ends QEMU.
    add(&["-no-reboot"]);
    match board {
        // A kernel without ACPI hangs silently on this board if ACPI is on.
        Board::Microvm => add(&["-machine", "microvm,acpi=off"]),
        Board::Pc => add(&["-machine", "q35"]),
    }
    accelerate(&mut add, spec, accelerator);
    add(&["-m", &format!("size={}k", spec.memory_bytes.div_ceil(1024))]);
    add(&[
        "-chardev",
        "stdio,id=console,signal=off",
        "-serial",
        "chardev:console",
    ]);
    add(&["-device", &device("virtio-serial", board)]);
    for (name, descriptor) in [
        (PORT, descriptors.requests),
        (OUTPUT_PORT, descriptors.output),
        (ERROR_PORT, descriptors.error),
    ] {
        add(&["-chardev", &format!("socket,id={name},fd={descriptor}")]);
        add(&[
            "-device",
            &format!("virtserialport,chardev={name},name={name}"),
        ]);
    }
    if spec.has_plugin(accelerator) {
        let places = format!("./{PLUGIN},out={COUNTS},limit={COUNTS_BYTES_MAX}");
        add(&["-plugin", &places]);
    }
    // A disk would reply at another instruction in each run, so there is no disk.
    if spec.counted.is_none() {
        disk(&mut add, board, work, WORK_DISK);
    }
    if spec.swap_bytes > 0 {
        disk(&mut add, board, SWAP_IMAGE, SWAP_DISK);
    }
    if spec.has_shared_directory {
        shared_directory(&mut add, board);
    }
    if let Some(card) = descriptors.card {
        network_card(&mut add, board, card);
    }
    add(&["-initrd", INITRAMFS]);
    let side = descriptors.card.map(|(side, _)| side);
    add(&[
        "-append",
        &kernel_command_line(spec, accelerator, tsc_khz, side),
    ]);
    add(&["-kernel", KERNEL]);
    list
}

/// Virtual CPUs that a guest really gets. With a clock that counts instructions, QEMU runs only one
/// CPU at a time.
pub(super) fn vcpus(spec: &GuestSpec, accelerator: Accelerator) -> u32 {
    match accelerator {
        Accelerator::Icount => 1,
        Accelerator::Kvm | Accelerator::Tcg => spec.vcpus,
    }
}

fn accelerate(add: &mut impl FnMut(&[&str]), spec: &GuestSpec, accelerator: Accelerator) {
    match accelerator {
        Accelerator::Kvm => add(&["-accel", "kvm", "-cpu", "host"]),
        // `rep movsb` and `rep stosb` are translated byte by byte: without the CPU
        // flag the guest's kernel clears memory 4 to 8 times faster.
        Accelerator::Tcg => add(&["-accel", "tcg,thread=multi", "-cpu", "max,-erms"]),
        Accelerator::Icount => {
            // While the guest waits, its clock advances as the host's does. With `sleep=off` the
            // clock would jump to the guest's next timer again and again. So minutes would pass in
            // the guest during one disk write: journals commit and requests time out. The jumps are
            // repeatable only if the guest waits for nothing but timers.
            let sleep = if spec.counted.is_some() { "off" } else { "on" };
            add(&[
                "-accel",
                "tcg",
                "-icount",
                &format!("shift=0,sleep={sleep}"),
            ]);
            // Makes runs repeatable. The only random numbers are QEMU's, which follow from the
            // seed, and the calendar starts with the guest.
            add(&["-cpu", "max,-erms,-rdrand,-rdseed"]);
            add(&["-seed", &spec.seed.to_string()]);
            add(&["-rtc", "base=2020-01-01,clock=vm"]);
        }
    }
    add(&["-smp", &vcpus(spec, accelerator).to_string()]);
}

/// Adds a raw image as a disk. `cache=writeback` puts the host's page cache below the guest's: QEMU
/// flushes what the guest flushes. So a durable write costs at least as much as on the host. But
/// data that is cold in the guest may be warm on the host. So a cold read is cold only for the
/// guest's cache. File systems such as tmpfs refuse the modes that open the image with `O_DIRECT`.
fn disk(add: &mut impl FnMut(&[&str]), board: Board, image: &str, serial: &str) {
    let drive = format!("file={image},id={serial},if=none,format=raw,cache=writeback");
    let device = device("virtio-blk", board);
    add(&["-drive", &drive]);
    add(&[
        "-device",
        &format!("{device},drive={serial},serial={serial}"),
    ]);
}

/// Adds a host directory over 9p. The guest's files belong to QEMU's user, whatever owner the guest
/// gives them.
fn shared_directory(add: &mut impl FnMut(&[&str]), board: Board) {
    let file_system = format!("local,id=shared,path={SHARED},security_model=none");
    let device = device("virtio-9p", board);
    add(&["-fsdev", &file_system]);
    add(&[
        "-device",
        &format!("{device},fsdev=shared,mount_tag={SHARED_TAG}"),
    ]);
}

/// Adds a network card that a stream socket joins to another guest's card. For each packet, QEMU
/// sends its length and then the packet. The card has no boot ROM, since QEMU would search its own
/// files for one.
fn network_card(
    add: &mut impl FnMut(&[&str]),
    board: Board,
    (side, descriptor): (PairSide, RawFd),
) {
    let device = device("virtio-net", board);
    let address = side.hardware_address();
    let rom = match board {
        Board::Microvm => "",
        Board::Pc => ",romfile=",
    };
    add(&["-netdev", &format!("socket,id=cable,fd={descriptor}")]);
    add(&[
        "-device",
        &format!("{device},netdev=cable,mac={address}{rom}"),
    ]);
}

fn device(name: &str, board: Board) -> String {
    match board {
        Board::Microvm => format!("{name}-device"),
        Board::Pc => format!("{name}-pci"),
    }
}

/// Builds the kernel's command line: what a guest needs, then what its user adds.
///
/// `tsc_khz` is the rate of the guest's time-stamp counter, if known. Otherwise the guest measures
/// the rate against an emulated timer, which fails on a busy machine. It then counts timer ticks,
/// many of which are lost.
fn kernel_command_line(
    spec: &GuestSpec,
    accelerator: Accelerator,
    tsc_khz: Option<u64>,
    side: Option<PairSide>,
) -> String {
    let kind = match accelerator {
        _ if spec.counted.is_some() => INIT_COUNT,
        Accelerator::Icount => INIT_ICOUNT,
        Accelerator::Kvm | Accelerator::Tcg => INIT_ORDINARY,
    };
    // The console shows only warnings and worse, since each character is an exit from the guest.
    // The archive's files are in ramfs, which is never swapped out. The init is named twice, so
    // that a kernel that cannot run it panics instead of continuing with the shell.
    let mut words = vec![
        "console=ttyS0 panic=-1 reboot=t loglevel=5 rootfstype=ramfs init=/init".to_owned(),
        format!("{INIT_VARIABLE}={kind}"),
    ];
    if spec.swap_bytes > 0 {
        words.push(format!("{SWAP_VARIABLE}=1"));
    }
    if spec.has_shared_directory {
        words.push(format!("{SHARED_VARIABLE}=1"));
    }
    if let Some(side) = side {
        words.push(format!("{PAIR_VARIABLE}={}", side.word()));
    }
    if let Some(khz) = tsc_khz {
        words.push(format!("tsc=reliable tsc_early_khz={khz}"));
    }
    if accelerator != Accelerator::Kvm && cfg!(target_arch = "x86_64") {
        // The kernel spins for some ticks of its timer, and panics if it sees too few
        // (timer_irq_works in arch/x86/kernel/apic/io_apic.c). On a busy machine QEMU's timer
        // thread runs later than the translated code. Under KVM the kernel skips this check by
        // itself.
        words.push("no_timer_check".into());
    }
    if accelerator == Accelerator::Icount {
        // To calibrate the local APIC's timer the kernel spins for 100 ms of the guest's clock.
        // Each iteration leaves the translated code, so this took nine tenths of a boot. The only
        // CPU uses the board's timer instead.
        words.push("nokaslr nolapic_timer".into());
    }
    if !spec.command_line.trim().is_empty() {
        words.push(spec.command_line.trim().to_owned());
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    const WORK: &str = "work.img";
    const DESCRIPTORS: Descriptors = Descriptors {
        requests: 10,
        output: 11,
        error: 12,
        card: None,
    };

    fn spec(board: Board) -> GuestSpec {
        let kernel = serde_json::json!({
            "name": "one", "board": board, "checks_itself": false, "release": "6.12", "image": "/cache/a,b/bzImage", "config": "",
            "modules": [], "trial_modules": [], "boot_modules": [], "key": "", "recipe": "", "source": "",
            "compiler": "", "patches": [], "built_at": "",
        });
        GuestSpec {
            memory_bytes: 256 << 20,
            vcpus: 2,
            swap_bytes: 1 << 30,
            command_line: " lru_gen=0 ".into(),
            seed: 7,
            ..GuestSpec::new(serde_json::from_value(kernel).unwrap(), PathBuf::new())
        }
    }

    /// Shows an option and its value on each line.
    fn shown(arguments: &[OsString]) -> String {
        let mut text = String::new();
        for argument in arguments {
            let argument = argument.to_string_lossy();
            text.push_str(if argument.starts_with('-') { "\n" } else { " " });
            text.push_str(&argument);
        }
        text
    }

    fn shown_for(spec: &GuestSpec, accelerator: Accelerator, tsc_khz: Option<u64>) -> String {
        shown(&qemu(spec, accelerator, tsc_khz, DESCRIPTORS, WORK))
    }

    #[test]
    fn an_own_kernel_runs_on_the_small_board() {
        let khz = Some(2_100_000);
        insta::assert_snapshot!(shown_for(&spec(Board::Microvm), Accelerator::Tcg, khz));
    }

    #[test]
    fn a_directory_of_the_host_is_served_over_9p() {
        let of = |board| {
            let spec = GuestSpec {
                has_shared_directory: true,
                ..spec(board)
            };
            let text = shown_for(&spec, Accelerator::Tcg, None);
            let is_of_directory = |line: &&str| line.to_lowercase().contains("shared");
            let lines: Vec<&str> = text.lines().filter(is_of_directory).collect();
            lines.join("\n")
        };
        insta::assert_snapshot!([of(Board::Microvm), of(Board::Pc)].join("\n\n"));
    }

    #[test]
    fn a_kernel_of_a_distribution_runs_on_a_pc() {
        let mut spec = spec(Board::Pc);
        spec.swap_bytes = 0;
        spec.command_line.clear();
        insta::assert_snapshot!(shown_for(&spec, Accelerator::Kvm, None));
    }

    #[test]
    fn a_clock_of_instructions_comes_with_what_makes_it_repeat() {
        let khz = Some(1_000_000);
        insta::assert_snapshot!(shown_for(&spec(Board::Microvm), Accelerator::Icount, khz));
    }

    #[test]
    fn the_guests_of_a_pair_are_joined_by_a_card_each() {
        let of = |board, side| {
            let descriptors = Descriptors {
                card: Some((side, 13)),
                ..DESCRIPTORS
            };
            let list = qemu(&spec(board), Accelerator::Tcg, None, descriptors, WORK);
            let is_of_card = |line: &&str| ["net", "TOLL"].iter().any(|word| line.contains(word));
            let text = shown(&list);
            text.lines()
                .filter(is_of_card)
                .collect::<Vec<_>>()
                .join("\n")
        };
        insta::assert_snapshot!(
            [
                of(Board::Microvm, PairSide::Main),
                of(Board::Pc, PairSide::Partner)
            ]
            .join("\n\n")
        );
    }
}
