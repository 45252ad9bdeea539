//! From a variant to a complete cache entry.
//!
//! Each variant of a source has a build tree, which stays: after a change of
//! patches, configuration or modules make does what the change asks for, and
//! a changed module makes a new entry with the same image.

use std::path::{Path, PathBuf};

use super::build_lock::BuildLock;
use super::image::Tree;
use super::job::{BuildObserver, Jobs, ask};
use super::package::{Package, empty_directory, make_directory};
use super::recipe::{self, Digest};
use super::record::{self, KERNEL_RECORD_VERSION, KernelRecord};
use super::stock::{StockPackages, copy};
use super::{BuildError, Kernel, Variant, find, own_modules, paths, requirement, source_tree};

/// How a build ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Built {
    /// It was there already.
    Found(Kernel),
    /// It was there already, and apt could not tell whether there is a newer
    /// source, for this reason.
    FoundUnasked(Kernel, String),
    /// It was made now.
    Made(Kernel),
}

/// Checks that what these variants are built with is installed; a variant
/// that is built already needs nothing.
///
/// # Errors
/// If something is missing: all of it at once, with the command that installs
/// it.
pub fn check_requirements(variants: &[Variant]) -> Result<(), BuildError> {
    let is_missing = |variant: &Variant| find(*variant).is_err();
    let missing: Vec<Variant> = variants.iter().copied().filter(is_missing).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => requirement::check(&missing),
    }
}

/// Builds a kernel unless the cache has it, with this many threads. Another
/// build of this user is waited for; an interrupted one is gone on with.
///
/// # Errors
/// If the observer ends it, something is missing, or a step fails.
pub fn build(
    variant: Variant,
    threads: usize,
    observer: &mut dyn BuildObserver,
) -> Result<Built, BuildError> {
    let work = paths::kernel_work();
    check_place(&work)?;
    let origin = match Origin::look_up(variant) {
        Ok(origin) => origin,
        Err(error) => {
            return match find(variant) {
                Ok(kernel) => Ok(Built::FoundUnasked(kernel, error.to_string())),
                Err(_) => Err(error),
            };
        }
    };
    let directory = paths::kernels().join(origin.key(variant));
    if let Some(kernel) = record::complete(&directory) {
        return Ok(Built::Found(kernel));
    }
    requirement::check(&[variant])?;
    let _lock = BuildLock::wait(&work, observer)?;
    // Another builder may have made it meanwhile.
    if let Some(kernel) = record::complete(&directory) {
        return Ok(Built::Found(kernel));
    }
    let place = work.join("build").join(origin.place(variant));
    make_directory(&place)?;
    begin_log(&place, &origin.image_key(variant))?;
    let mut jobs = Jobs::new(&place.join("build.log"), observer)?;
    let parts = origin.make(&mut jobs, &Places { work, place }, variant, threads)?;
    let log = jobs.log().to_owned();
    let record = store(&directory, &parts, &log, |paths| KernelRecord {
        version: KERNEL_RECORD_VERSION,
        variant,
        key: origin.key(variant),
        recipe: recipe::hash(variant),
        release: parts.release.clone(),
        source: origin.source.clone(),
        compiler: origin.compiler.clone(),
        patches: recipe::patches(variant)
            .map(|(path, _)| path.trim_start_matches("patches/").to_owned())
            .collect(),
        image: "bzImage".into(),
        config: "config".into(),
        modules: paths.modules,
        boot_modules: paths.boot_modules,
        built_at: jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string(),
    })?;
    record
        .at(&directory)
        .map(Built::Made)
        .map_err(BuildError::Failed)
}

/// Begins the log anew for another image, so that objects of the one before do
/// not count.
fn begin_log(place: &Path, image_key: &str) -> Result<(), BuildError> {
    let stamp = place.join("build.log.key");
    if std::fs::read_to_string(&stamp).is_ok_and(|key| key == image_key) {
        return Ok(());
    }
    let log = place.join("build.log");
    std::fs::write(&log, "").map_err(|error| BuildError::file(&log, &error))?;
    std::fs::write(&stamp, image_key).map_err(|error| BuildError::file(&stamp, &error))
}

/// The kernel's make takes neither in the path of a tree.
fn check_place(work: &Path) -> Result<(), BuildError> {
    let text = work.to_string_lossy();
    match text.contains(|c: char| c == ':' || c.is_whitespace()) {
        false => Ok(()),
        true => Err(BuildError::Prerequisite(format!(
            "cannot build in {text}: the kernel's build refuses paths with spaces or colons; set \
             XDG_CACHE_HOME to another directory"
        ))),
    }
}

/// Directories that a build uses.
struct Places {
    work: PathBuf,
    /// Of this image alone.
    place: PathBuf,
}

/// What this machine and the archive give to a kernel.
struct Origin {
    packages: Packages,
    /// See [`Kernel::source`].
    source: String,
    /// See [`Kernel::compiler`].
    compiler: String,
}

enum Packages {
    Source(Package),
    Stock(StockPackages),
}

/// What a build made, where it lies before it is stored.
struct Parts {
    release: String,
    image: PathBuf,
    config: PathBuf,
    modules: Vec<PathBuf>,
    boot_modules: Vec<PathBuf>,
}

impl Origin {
    fn look_up(variant: Variant) -> Result<Self, BuildError> {
        let (packages, source, compiler) = match variant {
            Variant::Toll | Variant::Debug => {
                let package = Package::look_up(recipe::SOURCE_PACKAGE)?;
                let source = package.identity();
                (Packages::Source(package), source, "gcc".to_owned())
            }
            Variant::Stock => {
                let packages = StockPackages::look_up()?;
                let (source, compiler) = (packages.identity(), packages.compiler()?);
                (Packages::Stock(packages), source, compiler)
            }
        };
        let version = ask(&compiler, &["--version"]).map_err(BuildError::Prerequisite)?;
        Ok(Self {
            packages,
            source,
            compiler: version.lines().next().unwrap_or_default().trim().to_owned(),
        })
    }

    fn add_to(&self, digest: Digest) -> Digest {
        let digest = digest
            .add(self.source.as_bytes())
            .add(self.compiler.as_bytes());
        match &self.packages {
            Packages::Source(_) => digest,
            Packages::Stock(packages) => {
                let all = packages.identities();
                all.iter()
                    .fold(digest, |digest, name| digest.add(name.as_bytes()))
            }
        }
    }

    fn key(&self, variant: Variant) -> String {
        let digest = Digest::default().add(recipe::hash(variant).as_bytes());
        format!("{}-{}", variant.word(), self.add_to(digest).hex())
    }

    /// The name of the build tree.
    fn place(&self, variant: Variant) -> String {
        format!(
            "{}-{}",
            variant.word(),
            self.add_to(Digest::default()).hex()
        )
    }

    fn image_key(&self, variant: Variant) -> String {
        let digest = self.add_to(recipe::image_digest(variant));
        format!("{}-{}", variant.word(), digest.hex())
    }

    fn make(
        &self,
        jobs: &mut Jobs<'_>,
        places: &Places,
        variant: Variant,
        threads: usize,
    ) -> Result<Parts, BuildError> {
        let own = places.place.join("own");
        match &self.packages {
            Packages::Source(package) => {
                let tree = Tree {
                    source: source_tree::prepare(jobs, package, &places.work)?,
                    objects: places.place.join("objects"),
                    threads,
                    image_key: self.image_key(variant),
                };
                tree.build(jobs, variant)?;
                Ok(Parts {
                    modules: own_modules::build(jobs, &own, &tree)?,
                    release: tree.release()?,
                    image: tree.image(),
                    config: tree.objects.join(".config"),
                    boot_modules: Vec::new(),
                })
            }
            Packages::Stock(packages) => {
                let tree = packages.unpack(jobs, &places.work, &places.place)?;
                tree.relocate_headers()?;
                Ok(Parts {
                    modules: own_modules::build(jobs, &own, &tree)?,
                    image: tree.image(),
                    config: tree.config(),
                    boot_modules: tree.boot_modules(jobs, &places.place.join("boot"))?,
                    release: tree.release,
                })
            }
        }
    }
}

/// Paths in an entry, relative to it.
struct StoredPaths {
    modules: Vec<PathBuf>,
    boot_modules: Vec<PathBuf>,
}

/// Copies what was made into an entry, its record last.
fn store(
    directory: &Path,
    parts: &Parts,
    log: &Path,
    record: impl FnOnce(StoredPaths) -> KernelRecord,
) -> Result<KernelRecord, BuildError> {
    empty_directory(directory)?;
    copy(&parts.image, &directory.join("bzImage"))?;
    copy(&parts.config, &directory.join("config"))?;
    copy(log, &directory.join("build.log"))?;
    let copy_all = |files: &[PathBuf], below: &str| {
        make_directory(&directory.join(below))?;
        files
            .iter()
            .map(|file| {
                let path = Path::new(below).join(file.file_name().unwrap_or_default());
                copy(file, &directory.join(&path))?;
                Ok(path)
            })
            .collect::<Result<Vec<_>, BuildError>>()
    };
    let record = record(StoredPaths {
        modules: copy_all(&parts.modules, "modules")?,
        boot_modules: copy_all(&parts.boot_modules, "boot")?,
    });
    record::write(&record, directory)?;
    Ok(record)
}
