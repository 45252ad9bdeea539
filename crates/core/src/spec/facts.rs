//! Facts by which machines may differ.

/// Names of all facts.
pub const FACTS: [&str; 6] = [
    "CPU family",
    "kernel",
    "file system",
    "virtualization",
    "mitigations",
    "operating system",
];

/// The fact whose levels have an order.
pub const KERNEL: &str = "kernel";

pub(super) fn is_fact(name: &str) -> bool {
    FACTS.contains(&name)
}

pub(super) fn no_fact(name: &str) -> String {
    format!(
        "machines have no fact {name}; they have {}",
        FACTS.join(", ")
    )
}
