//! An HTTP proxy on the loopback address that makes tunnels, and remembers where to.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// The proxy, which ends with this value.
pub(crate) struct Tunnel {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
    runtime: Option<Runtime>,
}

impl Tunnel {
    /// Starts one that answers each request for a tunnel with this line, and makes the tunnel if it is a 200.
    pub(crate) fn start(answer: &'static str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(tunnel(client, answer, Arc::clone(&log)));
            }
        });
        Self { url, asked, runtime: Some(runtime) }
    }

    /// Returns the first lines of the requests that came.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        // A tunnel that is open would be waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn tunnel(mut client: TcpStream, answer: &str, asked: Arc<Mutex<Vec<String>>>) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let line = head.lines().next().unwrap_or_default().to_owned();
    let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    client.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await?;
    if answer.starts_with("200") {
        copy_bidirectional(&mut client, &mut TcpStream::connect(target).await?).await?;
    }
    Ok(())
}
