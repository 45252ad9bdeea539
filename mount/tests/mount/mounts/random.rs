//! Random operations on a mount and in a directory without one, as `fsx` does: each must
//! return the same in both, and whenever no file is open the source must agree with both.
//!
//! The seed is printed; `USERFS_SEED` repeats it. `USERFS_OPERATIONS` sets the number of
//! operations over all settings.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempDir;

use crate::mounts::common::{
    Mounted, REMOTE_SETTINGS, SETTINGS, Setting, assert_same, await_no_temporaries, await_that,
    each,
};
use crate::mounts::script::{Random, Script, directory, entries, number_of, seed_of_now, tree};

/// This many operations take some seconds.
const OPERATIONS: u64 = 14_000;
const LOG_LINES: usize = 60;

const DIRECTORIES: [&str; 3] = ["", "d", "d/e"];

struct Run<'a> {
    mounted: &'a mut Mounted,
    /// The directory without a mount.
    plain: TempDir,
    random: Random,
    /// One on that directory, one on the mount.
    scripts: [Script; 2],
    log: VecDeque<String>,
    steps: u64,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let lines = Vec::from(std::mem::take(&mut self.log)).join("\n  ");
            eprintln!("after {} operations, the last ones:\n  {lines}", self.steps);
            eprintln!("the server said {:?}", self.mounted.said());
        }
    }
}

fn directories(base: &Path) -> Vec<std::os::fd::OwnedFd> {
    let open = |name: &str| directory(&base.join(name));
    DIRECTORIES.map(open).into()
}

impl<'a> Run<'a> {
    fn new(mounted: &'a mut Mounted, seed: u64) -> Self {
        let plain = tempfile::tempdir().unwrap();
        // SFTP has no request for it.
        let allocates = !mounted.setting.is_remote || mounted.setting.mode != "none";
        let scripts = [plain.path(), &mounted.at].map(|base| {
            fs::create_dir_all(base.join("d/e")).unwrap();
            let mut script = Script::new(seed, directories(base), 0);
            script.allocates = allocates;
            script
        });
        Self {
            mounted,
            plain,
            random: Random(!seed),
            scripts,
            log: VecDeque::new(),
            steps: 0,
        }
    }

    fn note(&mut self, line: &str) {
        self.log.truncate(LOG_LINES - 1);
        self.log.push_front(format!("{}: {line}", self.steps));
    }

    fn step(&mut self) {
        self.steps += 1;
        match self.random.below(1000) {
            0..30 => self.sync(),
            30..40 => self.settle(),
            40..42 => self.remount(),
            _ => self.step_both(),
        }
    }

    fn step_both(&mut self) {
        let [plain, mounted] = self.scripts.each_mut().map(|script| script.step());
        self.note(&plain.0);
        assert_eq!(mounted.0, plain.0);
        assert_same(&mounted.1, &plain.1, &plain.0);
    }

    /// Synchronises a file on the mount, and checks that its content is at the source.
    fn sync(&mut self) {
        let open = &self.scripts[0].open;
        if open.is_empty() {
            return;
        }
        let at = self.random.below(open.len());
        let number = open[at].metadata().unwrap().ino();
        self.note(&format!("Sync {at}"));
        self.scripts[1].open[at].sync_all().unwrap();
        for (name, (path, metadata)) in entries(self.plain.path()) {
            if metadata.ino() == number {
                self.mounted.assert_behind(&name, fs::read(path).unwrap());
            }
        }
    }

    /// Closes all files, and compares the source and the mount with the directory.
    fn settle(&mut self) {
        self.note("close all and compare");
        self.scripts
            .iter_mut()
            .for_each(|script| script.open.clear());
        let expected = tree(self.plain.path());
        for name in expected.keys() {
            // A file that was truncated by an open and not written becomes empty at the
            // source only shortly after its last close.
            let length = |path| fs::metadata(path).unwrap().len();
            let is_empty = length(self.plain.path().join(name)) == 0;
            await_that("an empty file", || {
                !is_empty || length(self.mounted.behind(name)) == 0
            });
        }
        let is_directory = |name: &&String| expected[*name].is_none();
        for name in expected.keys().filter(is_directory) {
            await_no_temporaries(&self.mounted.behind(name));
        }
        await_no_temporaries(&self.mounted.source);
        assert_eq!(tree(&self.mounted.source), expected, "at the source");
        assert_eq!(tree(&self.mounted.at), expected, "in the mount");
    }

    fn remount(&mut self) {
        self.settle();
        if self.mounted.setting.is_remote {
            // A mount over SFTP knows only the hard links that it made, so one name of each
            // file is left.
            for (name, (path, _)) in entries(self.plain.path()) {
                let found = fs::metadata(&path).unwrap();
                if found.is_file() && found.nlink() > 1 {
                    self.note(&format!("unlink {name}"));
                    fs::remove_file(path).unwrap();
                    fs::remove_file(self.mounted.path(&name)).unwrap();
                }
            }
        }
        self.note("unmount and mount");
        self.scripts[1].directories.clear();
        self.mounted.unmount_and_mount();
        self.scripts[1].directories = directories(&self.mounted.at);
    }
}

fn agree(setting: &Setting) {
    let seed = number_of("USERFS_SEED").unwrap_or_else(seed_of_now);
    let count = number_of("USERFS_OPERATIONS").unwrap_or(OPERATIONS) / SETTINGS.len() as u64;
    each([setting], |mounted| {
        eprintln!("{count} operations with USERFS_SEED={seed}");
        let mut run = Run::new(mounted, seed);
        for _ in 0..count {
            run.step();
        }
        run.settle();
    });
}

macro_rules! agree {
    ($($test:ident: $setting:expr;)*) => {$(
        #[test]
        fn $test() {
            agree(&$setting);
        }
    )*};
}

agree! {
    random_operations_agree_with_a_directory_in_whole: SETTINGS[0];
    random_operations_agree_with_a_directory_in_blocks: SETTINGS[1];
    random_operations_agree_with_a_directory_without_a_copy: SETTINGS[2];
    random_operations_agree_with_a_directory_without_pages: SETTINGS[3];
    random_operations_agree_with_a_directory_with_the_kernels_write_back: SETTINGS[4];
    random_operations_agree_with_a_directory_passing_through: SETTINGS[5];
    random_operations_over_sftp_agree_with_a_directory_in_whole: REMOTE_SETTINGS[0];
    random_operations_over_sftp_agree_with_a_directory_in_blocks: REMOTE_SETTINGS[1];
    random_operations_over_sftp_agree_with_a_directory_without_a_copy: REMOTE_SETTINGS[2];
    random_operations_over_sftp_agree_with_a_directory_without_pages: REMOTE_SETTINGS[3];
    random_operations_over_sftp_agree_with_a_directory_with_the_kernels_write_back: REMOTE_SETTINGS[4];
}
