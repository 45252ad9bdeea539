//! A cluster on this machine: a real Slurm with its accounting, and four nodes. Each node is
//! a process namespace with its own host name and /var/tmp.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use toll_testing::{Ran, Running, has_program, is_root, skip, wait_until};

/// The name of the jobs of `toll fleet submit`.
pub const JOB_NAME: &str = "toll-fleet";

pub const NODES: [&str; 4] = ["node1", "node2", "node3", "node4"];

const PROGRAMS: [&str; 9] = [
    "mariadb-install-db",
    "mariadbd",
    "munged",
    // mariadb-install-db starts it, and Debian ships it in a separate package.
    "my_print_defaults",
    "sbatch",
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "unshare",
];

pub struct Cluster {
    directory: TempDir,
    /// The servers, last started first: they are stopped in this order.
    servers: Vec<Running>,
    nodes: Vec<(String, Running)>,
}

impl Cluster {
    /// Starts a cluster and waits until its nodes are idle. Returns `None` if the machine cannot
    /// run one.
    pub fn start() -> Option<Self> {
        let missing = PROGRAMS.iter().find(|program| !has_program(program));
        if let Some(program) = missing {
            skip(&format!("starting a Slurm needs {program}"));
            return None;
        }
        if !is_root() {
            skip("cluster nodes with their own host names need root");
            return None;
        }
        // Not below the build directory: a socket's path has at most 107 bytes.
        let directory = tempfile::tempdir().unwrap();
        let everyone = std::fs::Permissions::from_mode(0o755);
        // munged refuses a socket that not everyone can reach.
        std::fs::set_permissions(directory.path(), everyone).unwrap();
        let mut cluster = Self {
            directory,
            servers: Vec::new(),
            nodes: Vec::new(),
        };
        cluster.configure();
        cluster.start_servers();
        for node in NODES {
            cluster.start_node(node);
        }
        cluster.wait_for_nodes("idle", 4);
        Some(cluster)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn configuration(&self) -> PathBuf {
        self.path("slurm.conf")
    }

    fn configure(&self) {
        let at = self.directory.path().display();
        let [controller, accounting, database, nodes @ ..] = free_ports::<7>();
        let addresses = NODES.iter().zip(nodes).map(|(node, port)| {
            format!("NodeName={node} NodeHostname={node} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=100\n")
        });
        let addresses: String = addresses.collect();
        for name in ["state", "munge", "database"] {
            std::fs::create_dir(self.path(name)).unwrap();
        }
        let slurm = format!(
            "\
ClusterName=toll
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={at}/munge.socket
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={accounting}
AccountingStoragePass={at}/munge.socket
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool.%n
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd.%n.pid
SlurmctldLogFile={at}/slurmctld.log
SlurmdLogFile={at}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
# Within seconds, a silent node is down, and an ended job is only in the accounting.
SlurmdTimeout=5
MinJobAge=2
SchedulerParameters=sched_interval=1,bf_interval=1
{addresses}PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"
        );
        let accounting = format!(
            "\
AuthType=auth/munge
AuthInfo=socket={at}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={accounting}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=root
PidFile={at}/slurmdbd.pid
LogFile={at}/slurmdbd.log
"
        );
        std::fs::write(self.configuration(), slurm).unwrap();
        std::fs::write(self.path("slurmdbd.conf"), accounting).unwrap();
        std::fs::write(self.path("database.port"), database.to_string()).unwrap();
        std::fs::write(self.path("munge/key"), [7; 128]).unwrap();
        for name in ["munge", "munge/key", "slurmdbd.conf"] {
            let mode = if name == "munge" { 0o700 } else { 0o600 };
            let own = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(self.path(name), own).unwrap();
        }
    }

    fn start_servers(&mut self) {
        let at = self.directory.path().to_owned();
        let at = at.display();
        self.serve(&format!(
            "exec munged --foreground --key-file={at}/munge/key --socket={at}/munge.socket \
             --pid-file={at}/munged.pid --log-file={at}/munged.log --seed-file={at}/munge/seed"
        ));
        self.ok(&format!(
            "mariadb-install-db --no-defaults --datadir={at}/database --user=root \
             --auth-root-authentication-method=normal --skip-test-db"
        ));
        self.serve(&format!(
            "exec mariadbd --no-defaults --datadir={at}/database --user=root --skip-grant-tables \
             --bind-address=127.0.0.1 --port=$(cat {at}/database.port) --skip-networking=0 \
             --socket={at}/database.socket --innodb-buffer-pool-size=16M"
        ));
        let port: u16 = std::fs::read_to_string(self.path("database.port"))
            .unwrap()
            .parse()
            .unwrap();
        wait_until("the database answers", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        wait_until("munge answers", || self.path("munge.socket").exists());
        self.serve(&format!("cd {at}; exec slurmdbd -D"));
        wait_until("the accounting answers", || {
            self.run("sacctmgr -i add cluster toll").code == Some(0)
        });
        self.serve("exec slurmctld -D");
    }

    fn serve(&mut self, line: &str) {
        let server = self.server(line);
        self.servers.insert(0, server);
    }

    fn server(&self, line: &str) -> Running {
        let mut command = self.command(line);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("bash starts"))
    }

    pub fn start_node(&mut self, node: &str) {
        let own = self.path(&format!("var.{node}"));
        let _ = std::fs::create_dir(&own);
        let own = own.display();
        let server = self.server(&format!(
            "exec unshare --uts --mount --pid --fork --kill-child --mount-proc bash -c \
             'mount --bind {own} /var/tmp; hostname {node}; exec slurmd -D -N {node}'"
        ));
        self.nodes.push((node.to_owned(), server));
    }

    /// Kills all processes of a node at once, as a power cut does.
    pub fn kill_node(&mut self, node: &str) {
        self.nodes.retain_mut(|(name, server)| {
            if name == node {
                server.kill();
            }
            name != node
        });
    }

    pub fn wait_for_nodes(&self, state: &str, count: usize) {
        wait_until(&format!("{count} nodes are {state}"), || {
            let listed = self.run("sinfo --noheader --Node --format=%T");
            let in_state = |line: &&str| line.trim_end_matches('*') == state;
            listed.stdout.lines().filter(in_state).count() == count
        });
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        command
            .args(["-c", line])
            .env("SLURM_CONF", self.configuration())
            .stdin(Stdio::null());
        command
    }

    /// Runs a shell line that uses this Slurm.
    pub fn run(&self, line: &str) -> Ran {
        let output = self.command(line).output().expect("bash starts");
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub fn ok(&self, line: &str) -> Ran {
        let ran = self.run(line);
        assert_eq!(ran.code, Some(0), "{line}: {ran:#?}");
        ran
    }
}

/// Returns ports on which nobody listens at present.
fn free_ports<const N: usize>() -> [u16; N] {
    // All are opened at once, so that they differ.
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Whether a process has this path in its arguments, as servers and jobs do.
pub fn is_running(path: &Path) -> bool {
    !toll_testing::processes_marked(&path.display().to_string()).is_empty()
}
