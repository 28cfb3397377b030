//! Programs that run beside the tests, and folders for them, neither of which outlives the test process.
//!
//! A test process may panic, exit with statics that are never dropped, or be killed.
//! In each case its servers must be gone afterwards, or the next run meets a machine full of them.
//! Dropping a [`Process`] covers the first case.
//! The kernel covers the others: `setpriv` from util-linux asks it to kill the server when its parent ends.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(50);
const LOG_TAIL_LINES: usize = 30;

/// A server that is killed when this value is dropped or this process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `program`, its output appended to `NAME.log` in `folder`.
    pub(crate) fn start(program: &Path, args: &[String], folder: &Path) -> Self {
        Self::spawn(program, args, folder, |_| {})
    }

    /// Starts `program` as [`Process::start`] does, but returns its input and its output; the log has its errors.
    pub(crate) fn start_with_pipes(program: &Path, args: &[String], folder: &Path) -> (Self, ChildStdin, ChildStdout) {
        let mut process = Self::spawn(program, args, folder, |command| {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        });
        let (input, output) = (process.child.stdin.take(), process.child.stdout.take());
        (process, input.expect("it was asked for"), output.expect("it was asked for"))
    }

    fn spawn(program: &Path, args: &[String], folder: &Path, connect: impl FnOnce(&mut Command)) -> Self {
        let name = program.file_name().expect("a program has a name").to_string_lossy().into_owned();
        let log = folder.join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log).expect("the folder for logs can be written");
        let errors = output.try_clone().expect("a file that was just opened can be duplicated");
        let mut command = command("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).args(args);
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        connect(&mut command);
        let child = spawn_from_lasting_thread(command).expect("setpriv, which ties servers to the tests, can be run");
        Self { name, child, log }
    }

    /// Waits until `ready` says yes.
    ///
    /// Panics with the end of the server's log when that takes longer than `limit` or the server ends before.
    #[expect(clippy::disallowed_methods, reason = "real servers take real time")]
    pub(crate) fn wait_until(&mut self, what: &str, limit: Duration, mut ready: impl FnMut() -> bool) {
        let started = Instant::now();
        while !ready() {
            let ended = self.child.try_wait().expect("the state of a child can be asked for");
            assert!(ended.is_none(), "{} ended before {what} ({ended:?}):\n{}", self.name, self.log_tail());
            let late = started.elapsed() > limit;
            assert!(!late, "{}: no {what} within {limit:?}:\n{}", self.name, self.log_tail());
            thread::sleep(POLL);
        }
    }

    /// Returns the number by which the kernel knows the server: `setpriv` becomes what it starts.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        let script = format!("kill -{name} {}", self.id());
        let status = command("sh").args(["-c", &script]).status().expect("a shell can be run");
        assert!(status.success(), "{} cannot be sent {name}", self.name);
    }

    /// Kills the server, whoever still refers to it.
    pub(super) fn kill(&self) {
        // It fails only for one that has ended.
        drop(command("sh").args(["-c", &format!("kill -KILL {}", self.id())]).status());
    }

    /// Returns the last lines that the server has written to its log.
    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read(&self.log).expect("the log was created at the start");
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a child that has been waited for already, and then there is nothing left to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A temporary folder that is removed when this value is dropped or this process ends, however it ends.
///
/// A shared server lives in a static, which is never dropped, and its database is large.
/// So a shell does the removing: it waits for the end of its input, which the kernel closes with this process.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    remover: Child,
}

impl Folder {
    /// Creates an empty folder.
    pub(crate) fn new() -> Self {
        let path =
            tempfile::Builder::new().prefix("gatewright-").tempdir().expect("temporary folders can be made").keep();
        // The servers may still be writing while they are being killed, hence the tries.
        let script = r#"cat; for _ in 1 2 3 4 5; do rm -rf "$0" && break; sleep 0.2; done"#;
        let mut command = command("sh");
        command.args(["-c", script]).arg(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        own_process_group(&mut command);
        let remover = command.spawn().expect("a shell can be run");
        Self { path, remover }
    }

    /// Returns where the folder is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.remover.stdin.take());
        drop(self.remover.wait());
    }
}

/// Prepares a call of a program: the one place of the test support that starts any.
#[expect(clippy::disallowed_methods, reason = "the tests run real servers and a real kubectl")]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// Returns a port of the loopback address that nobody listens at, and that nobody else of this process gets.
///
/// It is below those that the kernel gives to whoever asks for any port, so that none of them takes it before the server
/// that it is for does.
pub(crate) fn free_port() -> u16 {
    const PORTS: Range<u16> = 20_000..32_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);

    let number = PORTS.end - PORTS.start;
    let first = u16::try_from(std::process::id() % u32::from(number)).expect("it is less than the number of ports");
    let tried = std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed) % number).take(usize::from(number));
    let mut ports = tried.map(|offset| PORTS.start + (first + offset) % number);
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()).expect("one of so many ports is free")
}

/// Keeps an interrupt from the terminal away from the program, which is to act after the tests have ended.
fn own_process_group(command: &mut Command) {
    std::os::unix::process::CommandExt::process_group(command, 0);
}

/// Starts the program from a thread that runs as long as this process.
///
/// What the kernel takes for the parent is the thread: a server that a test's own thread started would be killed with
/// that thread, although other tests share the server.
fn spawn_from_lasting_thread(command: Command) -> io::Result<Child> {
    type Order = (Command, mpsc::Sender<io::Result<Child>>);
    static ORDERS: OnceLock<mpsc::Sender<Order>> = OnceLock::new();

    let orders = ORDERS.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Order>();
        thread::spawn(move || {
            for (mut command, reply) in receiver {
                reply.send(command.spawn()).expect("whoever orders a process waits for it");
            }
        });
        sender
    });
    let (reply, answer) = mpsc::channel();
    orders.send((command, reply)).expect("the thread ends only with this process");
    answer.recv().expect("every order is answered")
}
