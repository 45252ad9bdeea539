//! The order in which a stock kernel's modules must be inserted.

use std::collections::BTreeMap;

/// What a guest needs before it has a disk, a console, a network card and its
/// file system.
/// Without the CRC module ext4 refuses file systems with checksums, and nobody
/// would load it on demand.
const WANTED: &[(&str, Need)] = &[
    ("virtio_pci", Need::Always),
    ("virtio_mmio", Need::IfThere),
    ("virtio_blk", Need::Always),
    ("virtio_console", Need::Always),
    ("virtio_net", Need::IfThere),
    ("crc32c_generic", Need::IfThere),
    ("ext4", Need::Always),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Always,
    IfThere,
}

/// The names of what is inserted first, in order.
pub(super) fn wanted() -> impl Iterator<Item = &'static str> {
    WANTED.iter().map(|(name, _)| *name)
}

/// A module's name from its path: `kernel/crypto/crc32c-intel.ko.xz` is
/// `crc32c_intel`.
pub(super) fn name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.split(".ko").next().unwrap_or(file);
    stem.replace('-', "_")
}

/// The paths of the modules that must be inserted, each behind what it needs,
/// from the contents of `modules.dep` and `modules.builtin`.
///
/// # Errors
/// If the kernel has neither a module nor built in what a guest needs.
pub(super) fn boot_order(dependencies: &str, builtin: &str) -> Result<Vec<String>, String> {
    let modules: BTreeMap<String, (&str, Vec<&str>)> = dependencies
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(path, needs)| (name(path), (path, needs.split_whitespace().collect())))
        .collect();
    let is_builtin = |wanted: &str| builtin.lines().any(|path| name(path) == wanted);
    let mut order: Vec<String> = Vec::new();
    for (wanted, need) in WANTED {
        let Some((path, needs)) = modules.get(*wanted) else {
            if *need == Need::Always && !is_builtin(wanted) {
                return Err(format!("the kernel has no {wanted}, which a guest needs"));
            }
            continue;
        };
        // modules.dep has all that is needed, the last to be inserted first.
        for path in needs.iter().rev().chain([path]) {
            if !order.iter().any(|known| known == path) {
                order.push((*path).to_owned());
            }
        }
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPENDENCIES: &str = "\
kernel/drivers/virtio/virtio_ring.ko:
kernel/drivers/virtio/virtio.ko: kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/virtio/virtio_pci.ko: kernel/drivers/virtio/virtio.ko kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/block/virtio_blk.ko: kernel/drivers/virtio/virtio.ko kernel/drivers/virtio/virtio_ring.ko
kernel/drivers/net/virtio_net.ko: kernel/drivers/virtio/virtio.ko
";

    #[test]
    fn modules_stand_behind_what_they_need_each_once() {
        let builtin = "kernel/fs/ext4/ext4.ko\nkernel/drivers/char/virtio_console.ko\n";
        let order = boot_order(DEPENDENCIES, builtin).unwrap();
        let names: Vec<String> = order.iter().map(|path| name(path)).collect();
        assert_eq!(
            names,
            [
                "virtio_ring",
                "virtio",
                "virtio_pci",
                "virtio_blk",
                "virtio_net"
            ]
        );
    }

    #[test]
    fn a_kernel_without_what_a_guest_needs_is_refused() {
        let error = boot_order(DEPENDENCIES, "kernel/fs/ext4/ext4.ko\n").unwrap_err();
        assert!(error.contains("virtio_console"), "{error}");
    }

    #[test]
    fn names_are_as_the_kernel_has_them() {
        assert_eq!(
            name("kernel/arch/x86/crypto/crc32c-intel.ko.xz"),
            "crc32c_intel"
        );
    }
}
