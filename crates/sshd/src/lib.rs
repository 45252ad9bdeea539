//! An OpenSSH server of one's own on the loopback interface, for tests and
//! experiments: keys, configuration and port are its own, nothing of the
//! system's server or of the user's configuration is used, and nothing is
//! left when it is dropped.
//!
//! It lets in the user who started it, and as root any user that is named.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Where Debian puts the server, which is in no user's path.
const PROGRAM: &str = "/usr/sbin/sshd";

/// Gives a program a signal for when its parent dies (util-linux).
const SETPRIV: &str = "/usr/bin/setpriv";

/// OpenSSH's SFTP server as a program of its own.
const SFTP_SERVER: &str = "/usr/lib/openssh/sftp-server";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subsystem {
    /// The one in sshd (`internal-sftp`), with these options.
    Internal(Vec<String>),
    /// The program `sftp-server`, started by the user's shell, with these
    /// options.
    Program(Vec<String>),
    Command(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub subsystem: Subsystem,
    /// Who logs in; the user of this process if it is none. Only root can
    /// serve others.
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

/// A running server, ended with all its sessions when it is dropped.
#[derive(Debug)]
pub struct Sshd {
    /// Keys, configuration and log.
    directory: PathBuf,
    /// Removed in the end, if the directory is the server's own.
    temporary: Option<TempDir>,
    settings: Settings,
    user: String,
    port: u16,
    child: Option<Child>,
}

/// What of the programs that are needed is missing, and what to do about it.
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
    /// Starts a server, or tells in words why there can be none.
    pub fn start(settings: &Settings) -> Result<Self, String> {
        let temporary = tempfile::Builder::new().prefix("toll-sshd-").tempdir();
        let temporary = temporary.map_err(cannot("make a directory for a server"))?;
        let directory = temporary.path().to_path_buf();
        Self::begin(directory, Some(temporary), settings)
    }

    /// Starts a server whose files are in an empty directory of the caller's.
    /// It ends with the thread that starts it, however that ends, where
    /// setpriv(1) is.
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
        // Another user's sshd process reads the keys in it.
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
        // Another program may take the port between the two.
        for _ in 0..5 {
            server.port = free_port().map_err(cannot("find a free port"))?;
            server
                .write_files()
                .map_err(cannot("write a configuration"))?;
            if server.run().map_err(cannot("start sshd"))? {
                return Ok(server);
            }
        }
        let log = std::fs::read_to_string(server.log()).unwrap_or_default();
        let last = log.lines().last().unwrap_or("it said nothing");
        Err(format!("cannot start sshd: {last}"))
    }

    /// Starts it again on the same port, after [`kill`](Self::kill).
    pub fn start_again(&mut self) -> Result<(), String> {
        assert!(self.child.is_none(), "it runs");
        match self.run() {
            Ok(true) => Ok(()),
            Ok(false) => Err("the port is taken".to_owned()),
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
            // A shell finds none of the user's start-up files there, which
            // may print or take their time.
            home = self.directory.display(),
        );
        std::fs::write(self.directory.join("sshd_config"), config)?;
        let host_key = std::fs::read_to_string(self.directory.join("host_key.pub"))?;
        let known = format!("[127.0.0.1]:{} {host_key}", self.port);
        std::fs::write(self.directory.join("known_hosts"), known)
    }

    /// Whether it listens; `false` if the port was taken.
    #[expect(
        clippy::disallowed_methods,
        reason = "the server is for tests and experiments"
    )]
    fn run(&mut self) -> std::io::Result<bool> {
        const PATIENCE: Duration = Duration::from_secs(120);
        if rustix::process::geteuid().is_root() {
            // Its unprivileged part is confined there; Debian's service file
            // makes it at every start of the system.
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
            // Not by connecting: another server may have taken the port, and what
            // serves the attempt would be among the sessions.
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

    /// Where it listens, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where a directory of this machine is through the server, as `toll mount`
    /// and `sshfs` take it.
    pub fn location(&self, directory: &Path) -> String {
        format!("{}@127.0.0.1:{}", self.user, directory.display())
    }

    /// The `-o` options of ssh by which it is reached, whatever the user's
    /// configuration is.
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

    /// The processes that serve connections, of all of them.
    pub fn sessions(&self) -> Vec<u32> {
        let child = self.child.as_ref();
        child.map_or_else(Vec::new, |child| descendants(child.id()))
    }

    /// Ends every connection at once (SIGKILL to what serves it), and leaves
    /// the server listening.
    pub fn kill_sessions(&self) {
        if let Some(child) = &self.child {
            kill_below(child.id());
        }
    }

    /// Ends the server with all its sessions (SIGKILL).
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // What does not run starts no more sessions.
            signal(child.id(), Signal::STOP);
            kill_below(child.id());
            // It has ended if it cannot be killed.
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
        // It may have ended with another one.
        let _ = kill_process(process, signal);
    }
}

/// Kills all processes below one. They are stopped first: one that starts
/// another while it is looked for would leave that behind.
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

/// The processes below one.
fn descendants(process: u32) -> Vec<u32> {
    // Lists of children are there only where the kernel was built with CONFIG_PROC_CHILDREN.
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

/// The fourth field of /proc/PID/stat, which follows a name of any characters in parentheses.
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

/// What a program that must succeed prints.
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
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!("{program} fails: {}", text(&output.stderr))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test starts what it looks for")]
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
        // The shell waits for nothing any more.
        shell.wait().unwrap();
        assert_eq!(parent(below), None);
    }
}
