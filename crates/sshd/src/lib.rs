//! A private OpenSSH server on the loopback interface, for tests and experiments. It
//! has its own keys, configuration and port, and ignores the system's server and the
//! user's configuration. Dropping an [`Sshd`] leaves nothing behind.
//!
//! The server accepts logins of the user who started it. If root started it, it accepts
//! logins of one given user instead.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Path of the server on Debian, whose directory is not in a user's `PATH`.
const PROGRAM: &str = "/usr/sbin/sshd";

/// Path of the util-linux program that starts a program which gets a signal when its
/// parent dies.
const SETPRIV: &str = "/usr/bin/setpriv";

/// Path of OpenSSH's SFTP server as a separate program.
const SFTP_SERVER: &str = "/usr/lib/openssh/sftp-server";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subsystem {
    /// The SFTP server inside sshd (`internal-sftp`), with these options.
    Internal(Vec<String>),
    /// The program `sftp-server`, started by the user's shell, with these
    /// options.
    Program(Vec<String>),
    Command(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub subsystem: Subsystem,
    /// User who logs in; `None` for the user of this process. Only root can serve other
    /// users.
    pub user: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            subsystem: Subsystem::Internal(Vec::new()),
            user: None,
        }
    }
}

/// A running server. Dropping this value ends the server and all its sessions.
#[derive(Debug)]
pub struct Sshd {
    /// Directory with keys, configuration and log.
    directory: PathBuf,
    /// Removes the directory when dropped; `None` if the caller owns the directory.
    temporary: Option<TempDir>,
    settings: Settings,
    user: String,
    port: u16,
    child: Option<Child>,
}

/// Returns a message with the first missing program and what to install; `None` if none
/// is missing.
pub fn missing() -> Option<String> {
    for program in [PROGRAM, "/usr/bin/ssh", "/usr/bin/ssh-keygen"] {
        if !Path::new(program).exists() {
            return Some(format!(
                "{program} is missing; install openssh-server and openssh-client"
            ));
        }
    }
    None
}

impl Sshd {
    /// Starts a server whose files are in a temporary directory. An error says why it
    /// cannot start.
    pub fn start(settings: &Settings) -> Result<Self, String> {
        let temporary = tempfile::Builder::new().prefix("toll-sshd-").tempdir();
        let temporary = temporary.map_err(cannot("make a directory for a server"))?;
        let directory = temporary.path().to_path_buf();
        Self::begin(directory, Some(temporary), settings)
    }

    /// Starts a server whose files are in an empty directory of the caller. If
    /// setpriv(1) is installed, the server is killed when the thread that started it
    /// ends, however that happens.
    pub fn start_in(directory: PathBuf, settings: &Settings) -> Result<Self, String> {
        Self::begin(directory, None, settings)
    }

    fn begin(
        directory: PathBuf,
        temporary: Option<TempDir>,
        settings: &Settings,
    ) -> Result<Self, String> {
        if let Some(missing) = missing() {
            return Err(missing);
        }
        // An sshd process of another user reads the keys in this directory.
        std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o755))
            .map_err(cannot("set permissions"))?;
        let user = match &settings.user {
            Some(user) => user.clone(),
            None => run("/usr/bin/id", &["-un"])?,
        };
        for key in ["host_key", "user_key"] {
            let path = directory.join(key).display().to_string();
            let arguments = ["-q", "-t", "ed25519", "-N", "", "-f", &path];
            run("/usr/bin/ssh-keygen", &arguments)?;
        }
        std::fs::copy(
            directory.join("user_key.pub"),
            directory.join("authorized_keys"),
        )
        .map_err(cannot("copy a key"))?;
        let mut server = Self {
            directory,
            temporary,
            settings: settings.clone(),
            user,
            port: 0,
            child: None,
        };
        // Another program may take the port before sshd listens on it.
        for _ in 0..5 {
            server.port = free_port().map_err(cannot("find a free port"))?;
            server
                .write_files()
                .map_err(cannot("write a configuration"))?;
            if server.run().map_err(cannot("start sshd"))? {
                return Ok(server);
            }
        }
        Err(server.refusal())
    }

    fn refusal(&self) -> String {
        let log = std::fs::read_to_string(self.log()).unwrap_or_default();
        let last = log.lines().last().unwrap_or("its log is empty");
        format!("cannot start sshd: {last}")
    }

    /// Restarts the server on the same port, after [`kill`](Self::kill).
    pub fn start_again(&mut self) -> Result<(), String> {
        assert!(self.child.is_none(), "the server is still running");
        match self.run() {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.refusal()),
            Err(error) => Err(format!("cannot start sshd: {error}")),
        }
    }

    fn write_files(&self) -> std::io::Result<()> {
        let path = |name: &str| self.directory.join(name).display().to_string();
        let subsystem = match &self.settings.subsystem {
            Subsystem::Internal(options) => format!("internal-sftp {}", options.join(" ")),
            Subsystem::Program(options) => format!("{SFTP_SERVER} {}", options.join(" ")),
            Subsystem::Command(command) => command.clone(),
        };
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\n\
             HostKey {host_key}\n\
             AuthorizedKeysFile {authorized}\n\
             PidFile none\n\
             StrictModes no\n\
             UsePAM no\n\
             PasswordAuthentication no\n\
             KbdInteractiveAuthentication no\n\
             PermitRootLogin prohibit-password\n\
             AllowUsers {user}\n\
             UseDNS no\n\
             PrintMotd no\n\
             PrintLastLog no\n\
             MaxStartups 100\n\
             LogLevel VERBOSE\n\
             SetEnv HOME={home}\n\
             Subsystem sftp {subsystem}\n",
            port = self.port,
            host_key = path("host_key"),
            authorized = path("authorized_keys"),
            user = self.user,
            // This hides the user's shell start-up files, which may print something or
            // be slow.
            home = self.directory.display(),
        );
        std::fs::write(self.directory.join("sshd_config"), config)?;
        let host_key = std::fs::read_to_string(self.directory.join("host_key.pub"))?;
        let known = format!("[127.0.0.1]:{} {host_key}", self.port);
        std::fs::write(self.directory.join("known_hosts"), known)
    }

    /// Starts sshd. Returns `true` once sshd listens, and `false` if it ended because
    /// the port was taken.
    #[expect(
        clippy::disallowed_methods,
        reason = "the server is for tests and experiments"
    )]
    fn run(&mut self) -> std::io::Result<bool> {
        const PATIENCE: Duration = Duration::from_secs(120);
        if rustix::process::geteuid().is_root() {
            // sshd confines its unprivileged part to this directory, which Debian's service
            // file creates at every boot.
            std::fs::create_dir_all("/run/sshd")?;
        }
        let messages = self.log();
        let log = File::create(&messages)?;
        let mut command = Command::new(PROGRAM);
        if self.temporary.is_none() && Path::new(SETPRIV).exists() {
            command = Command::new(SETPRIV);
            command.args(["--pdeathsig", "KILL", PROGRAM]);
        }
        let child = command
            .arg("-f")
            .arg(self.directory.join("sshd_config"))
            .args(["-D", "-e"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0)
            .spawn()?;
        let child = self.child.insert(child);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if child.try_wait()?.is_some() {
                self.child = None;
                return Ok(false);
            }
            // Connecting is no test: another server may have taken the port, and the
            // attempt would be listed as a session.
            if std::fs::read_to_string(&messages)?.contains("Server listening on ") {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
        Err(std::io::ErrorKind::TimedOut.into())
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// Returns the port on 127.0.0.1 on which the server listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the location of a local directory as seen through the server, in the
    /// form that `toll mount` and `sshfs` take.
    pub fn location(&self, directory: &Path) -> String {
        format!("{}@127.0.0.1:{}", self.user, directory.display())
    }

    /// Returns the `-o` options with which ssh reaches the server, independent of the
    /// user's configuration.
    pub fn ssh_settings(&self) -> Vec<String> {
        let known = self.directory.join("known_hosts");
        vec![
            format!("UserKnownHostsFile={}", known.display()),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "StrictHostKeyChecking=yes".to_owned(),
            "IdentitiesOnly=yes".to_owned(),
            "IdentityAgent=none".to_owned(),
        ]
    }

    pub fn identity(&self) -> PathBuf {
        self.directory.join("user_key")
    }

    /// Returns the processes that serve connections.
    pub fn sessions(&self) -> Vec<u32> {
        let child = self.child.as_ref();
        child.map_or_else(Vec::new, |child| descendants(child.id()))
    }

    /// Ends every connection at once, by SIGKILL to the processes that serve it. The
    /// server keeps listening.
    pub fn kill_sessions(&self) {
        if let Some(child) = &self.child {
            kill_below(child.id());
        }
    }

    /// Ends the server and all its sessions by SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The server is stopped first, so that it starts no more sessions.
            signal(child.id(), Signal::STOP);
            kill_below(child.id());
            // If this fails, the server has already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.kill();
    }
}

fn signal(process: u32, signal: Signal) {
    if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // The process may have ended together with another one.
        let _ = kill_process(process, signal);
    }
}

/// Kills all descendants of a process. Stops them first, because a process that forks
/// during the search would leave its child behind.
fn kill_below(process: u32) {
    let mut stopped = Vec::new();
    loop {
        let mut fresh = descendants(process);
        fresh.retain(|one| !stopped.contains(one));
        if fresh.is_empty() {
            break;
        }
        fresh.iter().for_each(|one| signal(*one, Signal::STOP));
        stopped.extend(fresh);
    }
    stopped.iter().for_each(|one| signal(*one, Signal::KILL));
}

/// Returns the descendants of a process.
fn descendants(process: u32) -> Vec<u32> {
    // Lists of children exist only in kernels built with CONFIG_PROC_CHILDREN.
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            let process = name.to_str()?.parse().ok()?;
            Some((process, parent(process)?))
        })
        .collect();
    let mut found = vec![process];
    let mut at = 0;
    while let Some(&process) = found.get(at) {
        let children = parents.iter().filter(|(_, parent)| *parent == process);
        found.extend(children.map(|(child, _)| child));
        at += 1;
    }
    found.split_off(1)
}

/// Returns the parent of a process, which is the second field after the name in
/// /proc/PID/stat. The name is in parentheses and may contain any character.
fn parent(process: u32) -> Option<u32> {
    let stat = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

fn free_port() -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

fn cannot(what: &str) -> impl Fn(std::io::Error) -> String {
    move |error| format!("cannot {what}: {error}")
}

/// Runs a program that must succeed and returns its output.
#[expect(
    clippy::disallowed_methods,
    reason = "the server is for tests and experiments"
)]
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let output = output.map_err(cannot(&format!("start {program}")))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{program} failed: {}", text(&output.stderr)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test starts its own process")]
    fn processes_below_one_are_found_by_their_parents_and_killed() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & wait"])
            .spawn()
            .unwrap();
        let below = loop {
            match descendants(shell.id())[..] {
                [below] => break below,
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        assert_eq!(parent(below), Some(shell.id()));
        kill_below(shell.id());
        // Its child is dead, so the shell ends.
        shell.wait().unwrap();
        assert_eq!(parent(below), None);
    }
}
