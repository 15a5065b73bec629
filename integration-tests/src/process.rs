//! `sluice serve` and other programs as processes of their own: what only a process shows, such as
//! signals, exit codes and memory. Must not know what is tested.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::gateway::write_files;

/// The folder of the programs that were built with this test.
///
/// # Panics
/// When the test was not built by cargo.
#[allow(clippy::expect_used)]
pub fn programs() -> PathBuf {
    let own = std::env::current_exe().expect("the path of this program");
    let deps = own.parent().expect("a folder");
    let folder = if deps.ends_with("deps") {
        deps.parent().expect("the folder above")
    } else {
        deps
    };
    folder.to_path_buf()
}

/// A gateway in a process. Dropping it kills it.
pub struct Process {
    /// Where clients connect.
    pub address: SocketAddr,
    /// Where administrators connect.
    pub admin: SocketAddr,
    folder: TempDir,
    child: Child,
    log: Receiver<String>,
}

impl Process {
    /// Starts `sluice serve` with the files of a test gateway, and waits until it accepts.
    ///
    /// # Panics
    /// When it does not start.
    #[allow(clippy::expect_used)]
    pub fn start(toml: &str, assignments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        write_files(folder.path(), toml);
        let (address, admin) = (free_address(), free_address());
        let mut command = Command::new(programs().join("sluice"));
        command
            .arg("serve")
            .arg("--config")
            .arg(folder.path().join("gateway.toml"));
        command.arg("--set").arg(format!("server.listen={address}"));
        command.arg("--set").arg(format!("admin.listen={admin}"));
        for assignment in assignments {
            command.arg("--set").arg(assignment);
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sluice, built beside this test");
        let (sender, log) = channel();
        let outputs: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|out| Box::new(out) as _),
            child.stderr.take().map(|err| Box::new(err) as _),
        ];
        for output in outputs.into_iter().flatten() {
            let sender = sender.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        let mut process = Self {
            address,
            admin,
            folder,
            child,
            log,
        };
        process.await_accepting();
        process
    }

    #[allow(clippy::panic)]
    fn await_accepting(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(self.address).is_err() {
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                std::thread::sleep(Duration::from_millis(200));
                panic!(
                    "the gateway did not start ({ended:?}):\n{}",
                    self.log().join("\n")
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Lines that it has logged since this was asked last.
    pub fn log(&self) -> Vec<String> {
        self.log.try_iter().collect()
    }

    /// Waits for a line that holds `part`.
    ///
    /// # Panics
    /// When none comes within ten seconds.
    #[allow(clippy::panic)]
    pub fn await_line(&self, part: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut seen = Vec::new();
        while let Ok(line) = self
            .log
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        {
            if line.contains(part) {
                return line;
            }
            seen.push(line);
        }
        panic!("no line with {part:?} in:\n{}", seen.join("\n"));
    }

    /// Sends a signal by its name, as `TERM`.
    ///
    /// # Panics
    /// When there is no `kill` command.
    #[allow(clippy::expect_used)]
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.id().to_string())
            .status();
        assert!(
            sent.expect("the command kill").success(),
            "the signal was not sent"
        );
    }

    /// Waits for its end.
    pub fn ended_within(&mut self, at_most: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + at_most;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().ok().flatten() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Processor time that it has used, in the hundredths of a second that the system counts.
    ///
    /// # Panics
    /// When the system does not say.
    #[allow(clippy::expect_used)]
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id()))
            .expect("a process that runs");
        // The name, which may hold anything, ends with the last parenthesis (proc_pid_stat(5)).
        let (_, fields) = stat.rsplit_once(") ").expect("the fields after the name");
        let ticks = |field: usize| {
            fields
                .split(' ')
                .nth(field)
                .and_then(|text| text.parse::<u64>().ok())
                .expect("a number")
        };
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }

    /// Bytes that are resident, and the most that were.
    ///
    /// # Panics
    /// When the system does not say.
    #[allow(clippy::expect_used)]
    pub fn memory(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()))
            .expect("a process that runs");
        let field = |name: &str| {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .expect("the field");
            line.split_whitespace()
                .next()
                .and_then(|kib| kib.parse::<u64>().ok())
                .expect("a number")
                * 1024
        };
        (field("VmRSS:"), field("VmHWM:"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address on loopback that is free now.
///
/// # Panics
/// When there is none.
#[allow(clippy::expect_used)]
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
}
