//! The database behind API servers.

use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use super::binaries::Binaries;
use super::process::{Folder, Process, free_port};

/// A running etcd; several API servers can share it, each under a prefix of its own.
#[derive(Debug)]
pub(crate) struct Etcd {
    // The order matters: fields are dropped from the top, and the folder goes after who writes to it.
    process: Process,
    port: u16,
    _folder: Folder,
}

impl Etcd {
    /// Starts an empty etcd and waits until it takes connections.
    pub(crate) fn start() -> Self {
        let (folder, port) = (Folder::new(), free_port());
        let url = format!("http://127.0.0.1:{port}");
        let args = [
            format!("--data-dir={}", folder.path().join("etcd").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            // Nobody else joins, so any port will do.
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            // What a test wrote need not survive a power cut.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        let process = Process::start(&Binaries::locate().etcd, &args, folder.path());
        let mut etcd = Self { process, port, _folder: folder };
        etcd.process.wait_until("open port", Duration::from_mins(1), || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
        });
        etcd
    }

    /// Returns where API servers reach it.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}
