//! Messages to the service manager, on a real notify socket.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use super::{Daemon, gateway};
use crate::cluster::process::free_port;
use crate::program::Desk;

/// The value that systemd would set for a watchdog of a second, in microseconds.
const WATCHDOG: &str = "1000000";

/// A place in which a daemon renders a directory to another one, as a service manager would run it.
struct Manager {
    desk: Desk,
    socket: UnixDatagram,
    port: u16,
}

impl Manager {
    fn new() -> Self {
        let desk = Desk::empty("gatewright.yaml");
        desk.write("specs/edge.yaml", &gateway("edge", 8080));
        let socket = UnixDatagram::bind(desk.path("notify")).expect("the desk is new");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a tenth of a second is a time");
        let manager = Self { desk, socket, port: free_port() };
        manager.configure("");
        manager
    }

    /// Writes the configuration, with something at the end of the sync.
    fn configure(&self, more: &str) {
        let port = self.port;
        let config = format!(
            "stateDir: state\n\
             http: {{listen: \"127.0.0.1:{port}\"}}\n\
             sources: {{specs: {{directory: {{path: specs}}}}}}\n\
             clusters: {{folder: {{directory: {{path: rendered}}}}}}\n\
             syncs:\n  gateways:\n    source: specs\n    clusters: {{names: [folder]}}\n    createNamespaces: true\n{more}"
        );
        self.desk.write("gatewright.yaml", &config);
    }

    fn start(&self) -> Daemon {
        let notify = self.desk.path("notify");
        Daemon::start(
            &self.desk,
            self.port,
            &[("NOTIFY_SOCKET", notify.as_os_str()), ("WATCHDOG_USEC", OsStr::new(WATCHDOG))],
        )
    }

    /// Waits for a message with these lines, and returns those that came before it, pings left out.
    fn hears(&self, daemon: &mut Daemon, lines: &[&str]) -> Vec<String> {
        let mut before = Vec::new();
        daemon.until(&format!("{lines:?}"), |_| {
            let mut buffer = [0; 4096];
            let Ok(size) = self.socket.recv(&mut buffer) else { return false };
            let message = String::from_utf8_lossy(&buffer[..size]).into_owned();
            let is_it = lines.iter().all(|wanted| message.lines().any(|line| line.starts_with(wanted)));
            if !is_it && message != "WATCHDOG=1" {
                before.push(message);
            }
            is_it
        });
        before
    }
}

#[test]
fn a_daemon_whose_state_directory_is_gone_does_no_rounds() {
    let manager = Manager::new();
    let mut daemon = manager.start();
    let rendered = |port: &str| {
        let file = manager.desk.path("rendered/shop/service-edge.yaml");
        fs::read_to_string(file).is_ok_and(|text| text.contains(port))
    };
    daemon.until("the end of the first round", |daemon| rendered("8080") && !daemon.rounds().is_empty());
    fs::remove_dir_all(manager.desk.path("state")).expect("it is there");
    manager.desk.write("specs/edge.yaml", &gateway("edge", 9090));
    let why = "no round, because the state directory was removed or replaced: put it back, and restart the service";
    daemon.until("that it says why", |daemon| daemon.log().iter().any(|line| line["message"] == why));
    assert!(!rendered("9090"));
}

#[test]
fn the_service_manager_is_told_of_start_reload_life_and_stop() {
    let manager = Manager::new();
    let mut daemon = manager.start();
    let ready = ["READY=1", "STATUS=1 syncs, 1 clusters, 1 sources"];
    assert_eq!(manager.hears(&mut daemon, &ready), [""; 0], "nothing is said before it is ready");
    daemon.until("readiness", Daemon::is_ready);
    // It pings at half of the time, whatever else happens; more than one shows that it goes on.
    for _ in 0..3 {
        assert_eq!(manager.hears(&mut daemon, &["WATCHDOG=1"]), [""; 0]);
    }
    daemon.until("the first round", |_| manager.desk.path("rendered/shop/service-edge.yaml").exists());

    manager.configure("    commonLabels: {reloaded: \"yes\"}\n");
    daemon.signal("HUP");
    assert_eq!(manager.hears(&mut daemon, &["RELOADING=1", "MONOTONIC_USEC="]), [""; 0]);
    assert_eq!(manager.hears(&mut daemon, &ready), [""; 0]);
    let service = manager.desk.path("rendered/shop/service-edge.yaml");
    daemon.until("a round as the new file says", |_| {
        fs::read_to_string(&service).is_ok_and(|it| it.contains("reloaded"))
    });

    // A reload that fails has ended too.
    manager.configure("    comonLabels: {reloaded: \"no\"}\n");
    daemon.signal("HUP");
    assert_eq!(manager.hears(&mut daemon, &["RELOADING=1"]), [""; 0]);
    assert_eq!(manager.hears(&mut daemon, &ready), [""; 0]);
    manager.hears(&mut daemon, &["WATCHDOG=1"]);

    daemon.stops_within(Duration::from_secs(5));
    let mut rest = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(size) = manager.socket.recv(&mut buffer) {
        rest.push(String::from_utf8_lossy(&buffer[..size]).into_owned());
    }
    rest.retain(|message| message != "WATCHDOG=1");
    assert_eq!(rest, ["STOPPING=1"]);
}

#[test]
fn without_a_service_manager_it_runs_as_well() {
    let manager = Manager::new();
    let mut daemon = Daemon::start(&manager.desk, manager.port, &[]);
    daemon.until("the first round", |_| manager.desk.path("rendered/shop/service-edge.yaml").exists());
    daemon.stops_within(Duration::from_secs(5));
    assert!(manager.socket.recv(&mut [0; 16]).is_err(), "nobody is told");
}
