//! What this project gives to a kernel: configuration, patches, modules. They
//! are compiled into the program.

use xxhash_rust::xxh3::Xxh3;

use super::{Variant, module_order};

/// Files below `kernel/` of the source tree by their path there, in order.
pub(super) type Files = &'static [(&'static str, &'static [u8])];

/// All files of the kernel sources that this program carries.
pub(super) const FILES: Files = include!(concat!(env!("OUT_DIR"), "/kernel_files.rs"));

/// The series that the patches are made for. Its newest point release in the
/// archive is taken, since the archive keeps no older ones for long.
pub(super) const SOURCE_PACKAGE: &str = "linux-source-6.12";

/// Raised when the way of building changes what comes out of it.
const METHOD_VERSION: &[u8] = b"1";

/// The configuration fragments of a variant, in the order in which they are
/// merged.
pub(super) fn fragments(variant: Variant) -> &'static [&'static str] {
    match variant {
        Variant::Toll => &["configs/guest.config"],
        Variant::Debug => &["configs/guest.config", "configs/debug.config"],
        Variant::Stock => &[],
    }
}

/// A hash that tells different contents apart: of names, lengths and bytes.
#[derive(Default)]
pub(super) struct Digest(Xxh3);

impl Digest {
    pub fn add(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    pub fn add_file(self, (name, content): &(&str, &[u8])) -> Self {
        self.add(name.as_bytes()).add(content)
    }

    /// 16 hexadecimal digits.
    pub fn hex(&self) -> String {
        format!("{:016x}", self.0.digest())
    }
}

/// Files below a directory of the kernel sources.
pub(super) fn below(
    directory: &str,
) -> impl Iterator<Item = &'static (&'static str, &'static [u8])> {
    FILES.iter().filter(move |(path, _)| {
        path.strip_prefix(directory)
            .is_some_and(|rest| rest.starts_with('/'))
    })
}

/// The patches of a variant, in the order in which they are applied.
pub(super) fn patches(
    variant: Variant,
) -> impl Iterator<Item = &'static (&'static str, &'static [u8])> {
    below("patches").filter(move |_| variant != Variant::Stock)
}

/// Configuration and patches: what the image follows from, beside the source
/// and the compiler.
pub(super) fn image_digest(variant: Variant) -> Digest {
    let digest = Digest::default()
        .add(METHOD_VERSION)
        .add(variant.word().as_bytes());
    let is_fragment = |path: &str| fragments(variant).contains(&path);
    let configs = below("configs").filter(|(path, _)| is_fragment(path));
    configs
        .chain(patches(variant))
        .fold(digest, Digest::add_file)
}

/// The hash of all that this program gives to a variant.
pub(super) fn hash(variant: Variant) -> String {
    ["modules", "uapi", "common"]
        .into_iter()
        .flat_map(below)
        .fold(boot_digest(variant), Digest::add_file)
        .hex()
}

/// What the image follows from, and which modules are put beside it.
fn boot_digest(variant: Variant) -> Digest {
    let names = module_order::wanted().filter(|_| variant == Variant::Stock);
    names.fold(image_digest(variant), |digest, name| {
        digest.add(name.as_bytes())
    })
}
