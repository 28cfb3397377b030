//! A round that somebody asks for over HTTP.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

use super::{Daemon, LIMIT};
use crate::cluster::process::free_port;
use crate::errors::{folder, gateway};
use crate::program::Desk;

fn reconcile(desk: &Desk, port: u16) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("it listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a socket takes it");
    let token = desk.read("state/dashboard.token");
    let head = format!("Host: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json", token.trim());
    let path = "/api/v1/syncs/edge/reconcile";
    write!(stream, "POST {path} HTTP/1.0\r\n{head}\r\nContent-Length: 2\r\n\r\n{{}}").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

/// Nothing else would begin one: the source is asked each hour, and the rounds are those of a year.
#[test]
fn a_round_begins_when_somebody_asks_for_it() {
    let (desk, port) = (Desk::empty("gatewright.yaml"), free_port());
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nhttp: {{listen: \"127.0.0.1:{port}\", actions: true}}\n\
             sources: {{specs: {{poll: 1h, directory: {{path: specs}}}}}}\nclusters: {{out: {}}}\n\
             syncs: {{edge: {{source: specs, clusters: {{names: [out]}}, createNamespaces: true, schedule: {{interval: 365d}}}}}}\n",
            folder()
        ),
    );
    let mut daemon = Daemon::start(&desk, port, &[]);
    daemon.until("it is ready", Daemon::is_ready);
    let service = desk.path("rendered/shop/service-edge.yaml");
    // Once more, and it would be told as a fight with whoever deletes it.
    for drift in 0..2 {
        daemon.until("what is wanted is there", |_| service.exists());
        fs::remove_file(&service).expect("it is there");
        let answer = reconcile(&desk, port);
        assert!(answer.starts_with("HTTP/1.0 200") && answer.contains("on 1 cluster"), "{drift}: {answer}");
    }
    daemon.until("a round puts it back", |_| service.exists());
    let causes: Vec<String> = daemon.rounds().into_iter().map(|round| round.cause).collect();
    assert!(causes.iter().all(|cause| cause == "revision"), "{causes:?}: {:#?}", daemon.log());
    daemon.stops_within(LIMIT);
}
