//! A kernel of Debian's as it is: image and headers, fetched and unpacked but
//! not installed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::job::Jobs;
use super::own_modules::KernelMake;
use super::package::{Package, empty_directory, make_directory, unpack};
use super::{BuildError, module_order, requirement};

/// Metapackages: the image, and the headers that modules are built against.
/// The cloud flavour has what a virtual machine needs and is a third of the
/// size of the general one.
const IMAGE_PACKAGE: &str = "linux-image-cloud-amd64";
const HEADERS_PACKAGE: &str = "linux-headers-cloud-amd64";

/// The packages that make a stock kernel.
pub(super) struct StockPackages {
    image: Package,
    /// Headers, the programs that build with them, and the choice of compiler.
    headers: Vec<Package>,
}

impl StockPackages {
    /// What the archive has today.
    pub fn look_up() -> Result<Self, BuildError> {
        let needs = |package: &Package, prefix: &str| -> Vec<String> {
            let depends = package.depends.iter();
            depends
                .filter(|name| name.starts_with(prefix))
                .cloned()
                .collect()
        };
        let nothing = |name: &str| {
            BuildError::Failed(format!("cannot fetch {name}: it names no kernel package"))
        };
        let meta = Package::look_up(IMAGE_PACKAGE)?;
        let name = needs(&meta, "linux-image-")
            .pop()
            .ok_or_else(|| nothing(IMAGE_PACKAGE))?;
        let image = Package::look_up(&name)?;
        let meta = Package::look_up(HEADERS_PACKAGE)?;
        let name = needs(&meta, "linux-headers-")
            .pop()
            .ok_or_else(|| nothing(HEADERS_PACKAGE))?;
        let mut headers = vec![Package::look_up(&name)?];
        for prefix in ["linux-headers-", "linux-kbuild-", "linux-compiler-"] {
            for name in needs(&headers[0], prefix) {
                headers.push(Package::look_up(&name)?);
            }
        }
        Ok(Self { image, headers })
    }

    /// Name and version of the image's package.
    pub fn identity(&self) -> String {
        self.image.identity()
    }

    /// The compiler that the headers are used with: `linux-compiler-gcc-12-x86`
    /// stands for `gcc-12`.
    pub fn compiler(&self) -> Result<String, BuildError> {
        let of = |package: &Package| {
            let rest = package.name.strip_prefix("linux-compiler-")?;
            Some(rest.rsplit_once('-')?.0.to_owned())
        };
        let compiler = self
            .headers
            .iter()
            .find_map(of)
            .unwrap_or_else(|| "gcc".into());
        requirement::check_compiler(&compiler)?;
        Ok(compiler)
    }

    /// The names and versions of all.
    pub fn identities(&self) -> Vec<String> {
        let all = std::iter::once(&self.image).chain(&self.headers);
        all.map(Package::identity).collect()
    }

    /// Unpacks all of them below a directory, unless they are there.
    pub fn unpack(
        &self,
        jobs: &mut Jobs<'_>,
        work: &Path,
        place: &Path,
    ) -> Result<StockTree, BuildError> {
        let root = place.join("root");
        if !root.is_dir() {
            let packages = work.join("packages");
            make_directory(&packages)?;
            let partial = place.join("root.partial");
            empty_directory(&partial)?;
            for package in std::iter::once(&self.image).chain(&self.headers) {
                let deb = package.fetch(jobs, &packages)?;
                jobs.observer
                    .step(&format!("unpacking {}", package.identity()));
                unpack(jobs, &deb, &partial)?;
            }
            let release = StockTree::at(&partial)?.release;
            let arguments = [OsStr::new("-b"), partial.as_os_str(), OsStr::new(&release)];
            let depmod = requirement::find("depmod").unwrap_or_else(|| "depmod".into());
            jobs.run(&partial, &depmod.display().to_string(), &arguments, &[])?;
            std::fs::rename(&partial, &root).map_err(|error| BuildError::file(&root, &error))?;
        }
        StockTree::at(&root)
    }
}

/// An unpacked stock kernel.
pub(super) struct StockTree {
    root: PathBuf,
    pub release: String,
}

impl StockTree {
    fn at(root: &Path) -> Result<Self, BuildError> {
        let modules = root.join("lib/modules");
        let entries =
            std::fs::read_dir(&modules).map_err(|error| BuildError::file(&modules, &error))?;
        let mut releases = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let release = releases.next().ok_or_else(|| {
            BuildError::Failed(format!("cannot use {}: it is empty", modules.display()))
        })?;
        Ok(Self {
            root: root.to_owned(),
            release,
        })
    }

    pub fn image(&self) -> PathBuf {
        self.root.join(format!("boot/vmlinuz-{}", self.release))
    }

    pub fn config(&self) -> PathBuf {
        self.root.join(format!("boot/config-{}", self.release))
    }

    fn headers(&self) -> PathBuf {
        self.root
            .join(format!("usr/src/linux-headers-{}", self.release))
    }

    /// Makes the headers usable where they lie: their Makefile names the place
    /// where they would be installed, and with an image of the kernel beside
    /// them a module's link would want another program, for type information
    /// that nothing here reads.
    pub fn relocate_headers(&self) -> Result<(), BuildError> {
        let makefile = self.headers().join("Makefile");
        let wrong = |error: std::io::Error| BuildError::file(&makefile, &error);
        let text = std::fs::read_to_string(&makefile).map_err(wrong)?;
        let here = format!("include {}/usr/src/", self.root.display());
        let text = text.replace("include /usr/src/", &here);
        std::fs::write(&makefile, text).map_err(wrong)?;
        match std::fs::remove_file(self.headers().join("vmlinux")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(wrong(error)),
            _ => Ok(()),
        }
    }

    /// Copies the modules that a guest must insert first, uncompressed, and
    /// gives their files in their order.
    pub fn boot_modules(
        &self,
        jobs: &mut Jobs<'_>,
        directory: &Path,
    ) -> Result<Vec<PathBuf>, BuildError> {
        let modules = self.root.join("lib/modules").join(&self.release);
        let read = |name: &str| {
            let path = modules.join(name);
            std::fs::read_to_string(&path).map_err(|error| BuildError::file(&path, &error))
        };
        let order = module_order::boot_order(&read("modules.dep")?, &read("modules.builtin")?)
            .map_err(|why| {
                BuildError::Failed(format!("cannot use Linux {}: {why}", self.release))
            })?;
        empty_directory(directory)?;
        let mut files = Vec::new();
        for path in order {
            let target = directory.join(format!("{}.ko", module_order::name(&path)));
            if let Some(packed) = path
                .ends_with(".xz")
                .then(|| target.with_extension("ko.xz"))
            {
                copy(&modules.join(&path), &packed)?;
                jobs.run(
                    directory,
                    "xz",
                    &[OsStr::new("-d"), packed.as_os_str()],
                    &[],
                )?;
            } else {
                copy(&modules.join(&path), &target)?;
            }
            files.push(target);
        }
        Ok(files)
    }
}

impl KernelMake for StockTree {
    fn make(&self, jobs: &mut Jobs<'_>, targets: &[OsString]) -> Result<(), BuildError> {
        jobs.run(&self.headers(), "make", targets, &[])
    }
}

/// Copies a file and waits until the device has it, as the record that names
/// it must not be there without it.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), BuildError> {
    std::fs::copy(from, to).map_err(|error| BuildError::file(from, &error))?;
    let file = std::fs::File::open(to).map_err(|error| BuildError::file(to, &error))?;
    file.sync_all()
        .map_err(|error| BuildError::file(to, &error))
}
