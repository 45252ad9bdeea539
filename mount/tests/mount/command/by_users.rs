//! `toll mount` by a user other than root, through `fusermount3`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use toll_sshd::{Settings, Sshd, Subsystem};
use toll_testing::{copy_program, has_program, is_root, isolated, skip, wait_until};

use super::MOUNT;

/// Debian's `nobody`. The user database needs no entry for this number.
const USER: u32 = 65534;

/// Gives everybody the right to open `/dev/fuse`, as udev does. In a separate mount
/// namespace, removes further rights that this system gives to users.
const PREPARE: &str = "\
    set -e
    mknod fuse c 10 229
    chmod \"$1\" fuse
    mount --bind fuse /dev/fuse
    : >fuse.conf
    chmod 644 fuse.conf
    [ ! -e /etc/fuse.conf ] || mount --bind fuse.conf /etc/fuse.conf
    echo ready
    read -r end";

/// A source and a mount point of an ordinary user, with the paths at which the user
/// sees them.
struct Place {
    directory: tempfile::TempDir,
    /// Keeps the mount namespace alive as long as its input is open.
    holder: Child,
}

fn obstacle() -> Option<String> {
    if !is_root() || fs::File::open("/dev/fuse").is_err() {
        return Some("only root can become somebody else, and needs /dev/fuse".to_owned());
    }
    let programs = ["fusermount3", "unshare", "nsenter", "setpriv", "mknod"];
    let missing = programs.iter().find(|name| !has_program(name));
    missing.map(|name| format!("{name} is missing"))
}

impl Place {
    /// `None` if users other than root cannot mount here.
    fn new(mode_of_device: &str) -> Option<Self> {
        if let Some(reason) = obstacle() {
            skip(&reason);
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["source", "at", "state"] {
            fs::create_dir(path(name)).unwrap();
            chown(path(name), Some(USER), Some(USER)).unwrap();
        }
        fs::create_dir(path("not-theirs")).unwrap();
        // The directory in which the program was built may be accessible to root alone.
        copy_program(MOUNT.as_ref(), &path("toll-mount"));
        let mut holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", PREPARE, "sh", mode_of_device])
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        let output = holder.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut said).unwrap();
        if said != "ready\n" {
            holder.wait().unwrap();
            skip("no mount namespace can be made here");
            return None;
        }
        Some(Self { directory, holder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns a command that root runs in the user's mount namespace.
    fn by_root(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--mount", "--target", &self.holder.id().to_string(), "--"])
            .arg(program)
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Returns a command that the user runs.
    fn by_user(&self, program: &str, arguments: &[&str]) -> Command {
        let user = USER.to_string();
        let (uid, gid) = (format!("--reuid={user}"), format!("--regid={user}"));
        let mut command = self.by_root("setpriv", &[&uid, &gid, "--clear-groups", "--"]);
        let at = |name: &str| self.path(name).display().to_string();
        command
            .args(["env", "-C", &at(""), &format!("HOME={}", at("state"))])
            .arg(format!("XDG_STATE_HOME={}", at("state")))
            .arg(program)
            .args(arguments);
        command
    }

    fn mount(&self, arguments: &[&str]) -> Output {
        let mut command = self.by_user("./toll-mount", &[]);
        command.args(arguments).output().unwrap()
    }

    /// Returns the output of a shell command of the user, which must succeed.
    fn shell(&self, line: &str) -> String {
        let output = self.by_user("sh", &["-ec", line]).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Mounts `source` through a server.
    fn mount_remote(&self, server: &Sshd, options: &[&str]) {
        // ssh refuses a key that others may read, or that belongs to somebody else.
        let key = self.path("key");
        fs::copy(server.identity(), &key).unwrap();
        chown(&key, Some(USER), Some(USER)).unwrap();
        let source = server.location(&self.path("source"));
        let port = server.port().to_string();
        let mut arguments = vec!["--port", &port, "--identity", "key"];
        arguments.extend(["--ssh-config", "/dev/null"]);
        let settings = server.ssh_settings();
        for setting in &settings {
            arguments.extend(["--ssh-option", setting]);
        }
        arguments.extend(options);
        arguments.extend([&*source, "at"]);
        let mounted = self.mount(&arguments);
        assert!(mounted.status.success(), "{mounted:?}");
    }

    fn is_mounted(&self) -> bool {
        let at = self.path("at").display().to_string();
        let mounts = fs::read_to_string(format!("/proc/{}/mounts", self.holder.id())).unwrap();
        let mut points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        points.any(|point| point == at)
    }

    fn unmount(&self) {
        self.shell("fusermount3 -u at");
        assert!(!self.is_mounted());
        let state = self.path("state/toll/mount");
        wait_until("nothing but messages is left", || {
            let entries = fs::read_dir(&state).unwrap().flatten();
            entries
                .map(|entry| entry.file_name())
                .all(|name| name == "messages")
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = self
            .by_root("umount", &["-l", "-q"])
            .arg(self.path("at"))
            .output();
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

fn owner(path: &Path) -> u32 {
    fs::metadata(path).unwrap().uid()
}

#[test]
fn somebody_who_is_not_root_mounts_a_directory_of_their_own_for_themselves() {
    isolated(|| {
        let Some(place) = Place::new("666") else {
            return;
        };
        for options in [
            &["--cache", "whole"][..],
            &["--cache", "blocks"],
            &["--cache", "none"],
            &["--cache", "none", "--kernel-cache", "writeback"],
        ] {
            let mounted = place.mount(&[options, &["source", "at"]].concat());
            assert!(mounted.status.success(), "{options:?}: {mounted:?}");
            assert!(place.is_mounted());
            let said = place.shell(
                "cd at; echo one >f; echo two >>f; mkdir d; mv f d/g; cat d/g; chmod 600 d/g; \
             ln -s g d/s; cat d/s; truncate -s 4 d/g",
            );
            assert_eq!(said, "one\ntwo\none\ntwo\n", "{options:?}");
            let there = place.path("source/d/g");
            assert_eq!(owner(&there), USER);
            assert_eq!(fs::read(&there).unwrap(), b"one\n", "{options:?}");
            assert_eq!(fs::metadata(&there).unwrap().mode() & 0o777, 0o600);
            let at = place.path("at").display().to_string();
            let by_root = place.by_root("ls", &[&at]).output().unwrap();
            assert!(!by_root.status.success(), "{by_root:?}");
            place.shell("rm -r at/d");
            place.unmount();
        }
    });
}

#[test]
fn a_signal_ends_a_mount_of_somebody_who_is_not_root_with_files_open() {
    isolated(|| {
        let Some(place) = Place::new("666") else {
            return;
        };
        for cache in ["whole", "blocks", "none"] {
            let arguments = ["--foreground", "--cache", cache, "source", "at"];
            let mut server = place.by_user("./toll-mount", &arguments).spawn().unwrap();
            wait_until("it is mounted", || place.is_mounted());
            let line = "exec 3>at/f; echo open >&3; echo ready; read -r end";
            let mut user = place.by_user("sh", &["-ec", line]);
            user.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut user = user.spawn().unwrap();
            let mut said = String::new();
            let output = user.stdout.take().unwrap();
            BufReader::new(output).read_line(&mut said).unwrap();
            assert_eq!(said, "ready\n");
            // The program itself: all before it in the line became the next.
            kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
            let status = server.wait().unwrap();
            assert!(status.success(), "{cache}: {status}");
            assert!(!place.is_mounted(), "{cache}");
            let behind = fs::read(place.path("source/f")).unwrap();
            assert_eq!(behind, b"open\n", "{cache}");
            drop(user.stdin.take());
            user.wait().unwrap();
        }
    });
}

/// Number of threads of a mount: the main one, two that wait for the end, the session's
/// and those that wait for requests.
const THREADS: usize = 12;

#[test]
fn a_mount_of_somebody_who_may_start_no_further_thread_goes_on() {
    isolated(|| {
        let Some(place) = Place::new("666") else {
            return;
        };
        let content: Vec<u8> = (0..2_000_000_u32).flat_map(u32::to_le_bytes).collect();
        fs::write(place.path("source/large"), &content).unwrap();
        for cache in ["whole", "blocks", "none"] {
            let arguments = ["--foreground", "--cache", cache, "source", "at"];
            let mut server = place.by_user("./toll-mount", &arguments).spawn().unwrap();
            wait_until("it is mounted", || place.is_mounted());
            let threads = format!("/proc/{}/task", server.id());
            wait_until("it has its threads", || {
                fs::read_dir(&threads).unwrap().count() == THREADS
            });
            let limit = |processes: &str| {
                let limit = format!("--nproc={processes}:");
                let arguments = ["--pid", &server.id().to_string(), &limit];
                let limited = place.by_user("prlimit", &arguments).status().unwrap();
                assert!(limited.success(), "{limited}");
            };
            limit("1");
            // This reads ahead, and makes more calls at once than there are waiting
            // threads.
            let same = place.shell(
                "cmp at/large source/large && echo same
             for number in $(seq 40); do
                 (dd if=at/large bs=300k count=5 status=none >at/$number &&
                  cmp -n 1500000 at/$number at/large) &
             done
             wait
             cat at/[1-9]* | wc -c; rm at/[1-9]*",
            );
            assert_eq!(same, "same\n61440000\n", "{cache}");
            // Unmounting needs a new process.
            limit("1000");
            kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
            let status = server.wait().unwrap();
            assert!(status.success(), "{cache}: {status}");
        }
    });
}

#[test]
fn what_somebody_who_is_not_root_cannot_do_is_told_with_a_remedy() {
    isolated(|| {
        let Some(place) = Place::new("666") else {
            return;
        };
        let pass_through = "--cache none --kernel-cache passthrough source at";
        let cases = [
            ("--allow-other source at", "leave out --allow-other"),
            ("source not-theirs", "choose a directory of your own"),
            (
                pass_through,
                "only root can let reads and writes pass through",
            ),
        ];
        for (arguments, remedy) in cases {
            let output = place.mount(&arguments.split(' ').collect::<Vec<_>>());
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.contains(remedy), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(!place.is_mounted());
        }
    });
}

#[test]
fn a_device_that_only_root_may_open_is_told_with_a_remedy() {
    isolated(|| {
        let Some(place) = Place::new("600") else {
            return;
        };
        let output = place.mount(&["source", "at"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("mode 0666"), "{said}");
    });
}

#[test]
fn somebody_who_is_not_root_mounts_a_directory_of_another_host() {
    isolated(|| {
        let Some(place) = Place::new("666") else {
            return;
        };
        if let Some(reason) = toll_sshd::missing() {
            return skip(&reason);
        }
        let sshd = Sshd::start(&Settings::default()).unwrap();
        place.mount_remote(&sshd, &[]);
        let said = place.shell("mkdir at/d; echo far >at/d/f; cat at/d/f");
        assert_eq!(said, "far\n");
        assert_eq!(fs::read(place.path("source/d/f")).unwrap(), b"far\n");
        place.unmount();
    });
}

/// Debian's `daemon`, the number that the mounting user has at the server.
const SERVER_USER: u32 = 1;
/// Number of another user at the server, and of a group that both users are in.
const STRANGER: u32 = 64_001;
const GROUP: u32 = 64_003;

/// Returns the settings of a server that works as [`SERVER_USER`].
fn server_of_another_number() -> Settings {
    Settings {
        subsystem: Subsystem::Command(format!(
            "exec setpriv --reuid {SERVER_USER} --regid {SERVER_USER} --groups {GROUP} \
             /usr/lib/openssh/sftp-server"
        )),
        ..Settings::default()
    }
}

/// Makes `source` a private directory of a user, with files of that user and of a
/// stranger.
fn fill_source(place: &Place, owner: u32) {
    for (name, uid, gid, mode) in [
        ("source", owner, owner, 0o700),
        ("source/own", owner, owner, 0o600),
        ("source/shared", STRANGER, GROUP, 0o664),
        ("source/strangers", STRANGER, STRANGER, 0o600),
        ("source/public", STRANGER, STRANGER, 0o644),
    ] {
        let path = place.path(name);
        if !path.is_dir() {
            fs::write(&path, "content\n").unwrap();
        }
        chown(&path, Some(uid), Some(gid)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn what_a_user_may_do_at_another_host_is_decided_there_whatever_the_numbers_are() {
    isolated(|| {
        let Some(place) = Place::new("666") else {
            return;
        };
        if let Some(reason) = toll_sshd::missing() {
            return skip(&reason);
        }
        let sshd = Sshd::start(&server_of_another_number()).unwrap();
        for options in [&["--cache", "whole"][..], &["--cache", "none"]] {
            fill_source(&place, SERVER_USER);
            place.mount_remote(&sshd, options);
            let said = place.shell(
                "cd at; echo more >>own; cat own; echo more >>shared; cat shared
             cat strangers 2>/dev/null && exit 9
             (echo x >strangers) 2>/dev/null && exit 9
             exec 3<public; perl -e 'exit !truncate(\"public\", 0)' && exit 9; cat public
             [ -r own ]; [ -w own ]; [ ! -x own ]; [ -w shared ]; [ ! -r strangers ]
             mkdir -m 700 d; echo new >d/new; cp -p own d/copy; mv own d; ls d
             chown $(id -u):$(id -g) d/new; chown 64001 d/new 2>/dev/null && exit 9
             stat -c %u:%g d d/new shared; chmod 400 d/new; [ ! -w d/new ]",
            );
            let expected = "content\nmore\ncontent\nmore\ncontent\ncopy\nnew\nown\n\
                        65534:65534\n65534:65534\n64001:64003\n";
            assert_eq!(said, expected, "{options:?}");
            assert_eq!(owner(&place.path("source/d/new")), SERVER_USER);
            assert_eq!(owner(&place.path("source/shared")), STRANGER);
            let strangers = fs::read(place.path("source/strangers")).unwrap();
            assert_eq!(strangers, b"content\n");
            place.shell("rm -rf at/d");
            place.unmount();
        }
        fill_source(&place, SERVER_USER);
        place.mount_remote(&sshd, &["--idmap", "none"]);
        let said = place.shell("echo more >>at/own; stat -c %u:%g at/own");
        assert_eq!(said, "1:1\n");
        place.unmount();
    });
}

#[test]
fn root_at_another_host_is_the_user_who_mounts() {
    isolated(|| {
        let Some(place) = Place::new("666") else {
            return;
        };
        if let Some(reason) = toll_sshd::missing() {
            return skip(&reason);
        }
        let sshd = Sshd::start(&Settings::default()).unwrap();
        fill_source(&place, 0);
        place.mount_remote(&sshd, &[]);
        let said = place.shell(
            "cd at; cat own; echo new >strangers; echo new >new; mkdir d; [ -w strangers ]
         chown 64001 d; chown $(id -u) strangers; stat -c %u new d strangers",
        );
        assert_eq!(said, "content\n65534\n64001\n65534\n");
        // Files that are created or taken back belong to root at the source.
        let owners = ["new", "d", "strangers"].map(|name| owner(&place.path("source").join(name)));
        assert_eq!(owners, [0, STRANGER, 0]);
        place.unmount();
    });
}
