//! The database behind API servers.

use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use super::binaries::Binaries;
use super::process::{Folder, Process, command, free_port};

/// The folder of the data, below its own.
const DATA: &str = "etcd";

/// A running etcd; several API servers can share it, each under a prefix of its own.
#[derive(Debug)]
pub(crate) struct Etcd {
    // The order matters: fields are dropped from the top, and the folder goes after who writes to it.
    process: Process,
    port: u16,
    folder: Folder,
}

impl Etcd {
    /// Starts an empty etcd and waits until it takes connections.
    pub(crate) fn start() -> Self {
        Self::start_in(Folder::new())
    }

    /// Starts another etcd with all that this one holds now, as after a restore from a backup.
    pub(crate) fn copy(&self) -> Self {
        let folder = Folder::new();
        // While it stands still, its files are as after a power cut, which it is made for.
        self.process.signal("STOP");
        let copied = command("cp").arg("-r").arg(self.folder.path().join(DATA)).arg(folder.path()).status();
        self.process.signal("CONT");
        assert!(copied.expect("cp can be run").success(), "the database cannot be copied");
        Self::start_in(folder)
    }

    fn start_in(folder: Folder) -> Self {
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}");
        let args = [
            format!("--data-dir={}", folder.path().join(DATA).display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            // Nobody else joins, so any port will do.
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            // What a test wrote need not survive a power cut.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        let process = Process::start(&Binaries::locate().etcd, &args, folder.path());
        let mut etcd = Self { process, port, folder };
        etcd.process.wait_until("open port", Duration::from_mins(1), || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
        });
        etcd
    }

    /// Kills it, whoever still refers to it.
    pub(super) fn kill(&self) {
        self.process.kill();
    }

    /// Returns where API servers reach it.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}
