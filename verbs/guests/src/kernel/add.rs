//! `toll kernel add`: gives a name to a kernel of the user.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use toll_core::spec::KernelName;
use toll_host::environment::kernel::{Definition, add};
use toll_system::{Failure, output};

const NOTES: &str = "\
Examples:
  toll kernel add mine --patches 0001-faster.patch
  toll kernel add mine --tree ~/linux
  toll kernel add v6.12 --tree ~/linux --revision v6.12
  toll kernel add hz1000 --config hz1000.config
  toll kernel add distribution --image /boot/vmlinuz-6.12 --modules /lib/modules/6.12
  toll kernel add with-driver --module ~/driver

Nothing is copied or built yet: toll kernel build NAME reads the files when it runs. After an edit,
build again; that compiles only what has changed. A tree is never written to. Without --revision, its
work tree is built with uncommitted changes, but without files that git does not track. Trees and
patches are configured for guests (the fragment of the kernel toll), then by --config. A module of
--module is loaded for each trial or command, and unloaded after it.

A name is a level of the factor kernel: toll run crossing --guest -L kernel=toll,mine";

#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub struct AddArguments {
    /// Name of the kernel: a lower-case letter, then letters, digits and any of ._-
    name: KernelName,
    /// Kernel on which the new one is based [default: toll]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tree", "image"])]
    base: Option<KernelName>,
    /// Apply a patch, or all files NAME.patch of a directory in the order of their names
    #[arg(long, value_name = "FILE|DIR", num_args = 1.., conflicts_with = "image")]
    patches: Vec<PathBuf>,
    /// Apply a configuration fragment on top of the base's configuration
    #[arg(long, value_name = "FRAGMENT", conflicts_with = "image")]
    config: Vec<PathBuf>,
    /// Build Linux from a git repository
    #[arg(long, value_name = "DIR", conflicts_with = "image")]
    tree: Option<PathBuf>,
    /// Commit, tag or branch of the repository [default: the work tree]
    #[arg(long, value_name = "REV", requires = "tree")]
    revision: Option<String>,
    /// Boot this image, a bzImage
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Modules of the image: a directory such as /lib/modules/RELEASE
    #[arg(long, value_name = "DIR", requires = "image")]
    modules: Option<PathBuf>,
    /// Build and load the module of a Kbuild directory
    #[arg(long, value_name = "DIR", conflicts_with = "image")]
    module: Vec<PathBuf>,
    /// Replace an existing kernel of this name
    #[arg(long)]
    replace: bool,
}

pub fn run(arguments: &AddArguments) -> anyhow::Result<()> {
    let definition = definition(arguments)?;
    if definition == based_on(&definition) {
        let why = "it adds nothing; give --patches, --tree, --config, --image or --module";
        let name = &arguments.name;
        return Err(Failure::Usage(format!("cannot add kernel {name}: {why}")).into());
    }
    let name = &arguments.name;
    let path = add(name, &definition, arguments.replace).map_err(Failure::Usage)?;
    output::line(&format!("kernel {name}: {}", path.display()))?;
    output::note(&format!("build it with toll kernel build {name}"));
    Ok(())
}

fn based_on(definition: &Definition) -> Definition {
    Definition {
        base: definition.base.clone(),
        ..Definition::default()
    }
}

/// Returns the definition with absolute paths, since other directories use it, too.
fn definition(arguments: &AddArguments) -> anyhow::Result<Definition> {
    let all = |paths: &[PathBuf]| {
        let paths = paths.iter().map(|path| absolute(path));
        paths.collect::<anyhow::Result<Vec<PathBuf>>>()
    };
    let one = |path: &Option<PathBuf>| path.as_deref().map(absolute).transpose();
    let has_root = arguments.tree.is_some() || arguments.image.is_some();
    let toll = || "toll".parse().expect("it is a valid name");
    let modules = one(&arguments.modules)?;
    Ok(Definition {
        base: (!has_root).then(|| arguments.base.clone().unwrap_or_else(toll)),
        tree: one(&arguments.tree)?,
        revision: arguments.revision.clone(),
        image: one(&arguments.image)?,
        image_modules: modules.map(of_one_release),
        patches: all(&arguments.patches)?,
        configs: all(&arguments.config)?,
        modules: all(&arguments.module)?,
    })
}

fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize()
        .with_context(|| format!("cannot use {}", path.display()))
        .map_err(|error| Failure::Usage(format!("{error:#}")).into())
}

/// Returns the directory of a release. Accepts a directory above it, too, such as /lib/modules.
fn of_one_release(directory: PathBuf) -> PathBuf {
    let below = [directory.join("lib/modules"), directory.clone()];
    let candidates = below.iter().flat_map(|place| place.read_dir()).flatten();
    let mut found = candidates
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("modules.dep").is_file());
    match (
        directory.join("modules.dep").is_file(),
        found.next(),
        found.next(),
    ) {
        (false, Some(only), None) => only,
        _ => directory,
    }
}
