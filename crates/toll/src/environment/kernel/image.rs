//! The kernel of the pinned source: configured and compiled out of its tree.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::job::Jobs;
use super::own_modules::KernelMake;
use super::package::make_directory;
use super::{BuildError, Variant, config, recipe};

/// Objects that are compiled, about: for the progress that is shown.
fn objects_expected(variant: Variant) -> u64 {
    match variant {
        Variant::Toll => 1300,
        Variant::Debug => 1400,
        Variant::Stock => 0,
    }
}

/// A source tree with a tree for what is made of it.
pub(super) struct Tree {
    pub source: PathBuf,
    /// The kernel's `O=`.
    pub objects: PathBuf,
    pub threads: usize,
    /// What the image follows from: see [`super::recipe::image_digest`].
    pub image_key: String,
}

impl Tree {
    /// Configures and compiles. Done once, the next call returns at once;
    /// interrupted or with other patches, make does what is missing.
    ///
    /// # Errors
    /// If it fails, or options of the fragments did not take effect.
    pub fn build(&self, jobs: &mut Jobs<'_>, variant: Variant) -> Result<(), BuildError> {
        let configured = self.objects.join("toll.configured");
        let built = self.objects.join("toll.built");
        if self.is_stamped(&built) {
            return Ok(());
        }
        make_directory(&self.objects)?;
        if !self.is_stamped(&configured) {
            jobs.observer.step("configuring");
            self.configure(jobs, variant)?;
            self.stamp(&configured)?;
        }
        let release = self.release()?;
        jobs.observer.step(&format!(
            "compiling Linux {release} with {} {}",
            self.threads,
            if self.threads == 1 {
                "thread"
            } else {
                "threads"
            }
        ));
        jobs.expected = objects_expected(variant);
        // `modules` also where the configuration has none: it makes
        // Module.symvers, by which modules outside of the tree are linked.
        let result = self.make(jobs, &["bzImage", "modules"].map(OsString::from));
        jobs.expected = 0;
        result?;
        self.stamp(&built)
    }

    fn configure(&self, jobs: &mut Jobs<'_>, variant: Variant) -> Result<(), BuildError> {
        self.make(jobs, &["tinyconfig".into()])?;
        let config = self.objects.join(".config");
        let mut arguments = vec![
            OsString::from("-O"),
            self.objects.clone().into(),
            config.clone().into(),
        ];
        let mut texts = Vec::new();
        for wanted in recipe::fragments(variant) {
            let found = recipe::FILES.iter().find(|(path, _)| path == wanted);
            let (_, content) = found.ok_or_else(|| {
                BuildError::Failed(format!("cannot configure: this toll carries no {wanted}"))
            })?;
            let name = wanted.rsplit('/').next().unwrap_or(wanted);
            let file = self.objects.join(format!("toll.{name}"));
            std::fs::write(&file, content).map_err(|error| BuildError::file(&file, &error))?;
            arguments.push(file.into());
            texts.push(String::from_utf8_lossy(content));
        }
        let variables = self.variables();
        let variables: Vec<(&str, &OsStr)> =
            variables.iter().map(|(k, v)| (*k, v.as_os_str())).collect();
        let script = "scripts/kconfig/merge_config.sh";
        let script = self.source.join(script).display().to_string();
        jobs.run(&self.source, &script, &arguments, &variables)?;
        let text =
            std::fs::read_to_string(&config).map_err(|error| BuildError::file(&config, &error))?;
        let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let dropped = config::dropped(&texts, &text);
        match dropped.is_empty() {
            true => Ok(()),
            false => Err(BuildError::Failed(format!(
                "cannot configure {}: options that the fragments ask for did not take effect: {}; \
                 what they depend on is off, or this source has them under other names",
                variant.word(),
                dropped.join(", ")
            ))),
        }
    }

    /// A stamp holds the key of the image that a step was done for.
    fn is_stamped(&self, path: &Path) -> bool {
        std::fs::read_to_string(path).is_ok_and(|key| key == self.image_key)
    }

    fn stamp(&self, path: &Path) -> Result<(), BuildError> {
        std::fs::write(path, &self.image_key).map_err(|error| BuildError::file(path, &error))
    }

    /// Builder, host and time are in the image. They are set, so that the
    /// same sources make the same bytes and no user's name is in them.
    fn variables(&self) -> Vec<(&'static str, OsString)> {
        // A release has no `+` because the cache lies in somebody's repository.
        let mut variables = vec![
            ("LOCALVERSION", OsString::new()),
            ("KBUILD_BUILD_USER", "toll".into()),
            ("KBUILD_BUILD_HOST", "toll".into()),
            ("KBUILD_BUILD_VERSION", "1".into()),
        ];
        if let Some(time) = self.source_time() {
            variables.push(("KBUILD_BUILD_TIMESTAMP", time.into()));
        }
        variables
    }

    /// When Debian made the source, as `date` would print it.
    fn source_time(&self) -> Option<String> {
        let modified = std::fs::metadata(self.source.join("Makefile"))
            .ok()?
            .modified()
            .ok()?;
        let time = jiff::Timestamp::try_from(modified).ok()?;
        Some(time.strftime("%a %b %e %H:%M:%S UTC %Y").to_string())
    }

    /// As `uname -r` will have it.
    pub fn release(&self) -> Result<String, BuildError> {
        let file = self.objects.join("include/config/kernel.release");
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            // Before the first compilation only the Makefile knows.
            Err(_) => return Ok(self.version().unwrap_or_default()),
        };
        Ok(text.trim().to_owned())
    }

    /// The version that the source's Makefile begins with.
    fn version(&self) -> Option<String> {
        let makefile = std::fs::read_to_string(self.source.join("Makefile")).ok()?;
        let value = |name: &str| {
            let prefix = format!("{name} = ");
            makefile
                .lines()
                .find_map(|line| line.strip_prefix(&prefix).map(str::to_owned))
        };
        Some(format!(
            "{}.{}.{}",
            value("VERSION")?,
            value("PATCHLEVEL")?,
            value("SUBLEVEL")?
        ))
    }

    pub fn image(&self) -> PathBuf {
        self.objects.join("arch/x86/boot/bzImage")
    }
}

impl KernelMake for Tree {
    fn make(&self, jobs: &mut Jobs<'_>, targets: &[OsString]) -> Result<(), BuildError> {
        let mut objects = OsString::from("O=");
        objects.push(&self.objects);
        let mut arguments = vec![objects, format!("-j{}", self.threads).into()];
        arguments.extend(targets.iter().cloned());
        let variables = self.variables();
        let variables: Vec<(&str, &OsStr)> =
            variables.iter().map(|(k, v)| (*k, v.as_os_str())).collect();
        jobs.run(&self.source, "make", &arguments, &variables)
    }
}
