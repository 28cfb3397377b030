//! Hosts that are lost at moments that a seed says, for as long as it says, and that come back.
//!
//! For how long each sync had nobody is written to `hosts-without-owner.txt` in `target/tmp`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};

use super::{Fleet, Host, LEASE, SYNCS};
use crate::cluster::audit::Request;
use crate::cluster::proxy::{Answer, Proxy, Seen};
use crate::program::asked;

/// The number of losses where `GATEWRIGHT_LOSSES` asks for no other: one of each sort. `GATEWRIGHT_SEED` is the first seed.
const RUNS: usize = 3;

/// A way in which a host is lost, and how it comes back.
type Loss = (&'static str, fn(&mut Host), fn(&mut Host));

const LOSSES: [Loss; 3] = [
    ("killed", |host| drop(host.daemon.take()), Host::start),
    ("frozen", |host| host.signal("STOP"), |host| host.signal("CONT")),
    (
        "cut off from the management cluster",
        |host| host.proxy.answer(usize::MAX, |_| true, Answer::Silent),
        |host| host.proxy.recovers(),
    ),
];

/// A loss as its seed has it.
struct Plan {
    loss: &'static Loss,
    /// The sync whose host is lost.
    sync: &'static str,
    /// The time between a change that the host is to make and its loss.
    delay: Duration,
    /// For how long it is lost; `None`: until others have done its work.
    lasts: Option<Duration>,
}

impl Plan {
    fn of(seed: usize) -> Self {
        let mut random = StdRng::seed_from_u64(seed as u64);
        let delay = Duration::from_millis(random.random_range(0..3_000));
        let lasts =
            Duration::from_millis(random.random_range(0..3 * u64::try_from(LEASE.as_millis()).expect("it is short")));
        Self {
            loss: &LOSSES[seed % LOSSES.len()],
            sync: SYNCS.choose(&mut random).expect("there are some"),
            delay,
            lasts: random.random_bool(0.5).then_some(lasts),
        }
    }
}

impl Fleet {
    /// Loses the host of a sync with a change in its hands; returns how long it took until another one had it.
    #[expect(clippy::disallowed_methods, reason = "real servers take real time")]
    fn loses(&mut self, seed: usize) -> Option<Duration> {
        let Plan { loss: (how, lose, comes_back), sync, delay, lasts } = Plan::of(seed);
        let holder = self.holder(sync).expect("somebody looks after it");
        let context = format!("seed {seed}: {} is {how}, which had {sync}", self.hosts[holder].name);
        let port = |step: u16| 8_100 + 10 * (u16::try_from(seed % 100).expect("it is small")) + step;
        self.wants(sync, port(0));
        thread::sleep(delay);
        lose(&mut self.hosts[holder]);
        let (since, mut taken) = (Instant::now(), None);
        if let Some(lasts) = lasts {
            thread::sleep(lasts);
        } else {
            self.until(&format!("{context}: another one has it"), || self.holder(sync).is_some_and(|it| it != holder));
            taken = Some(since.elapsed());
            self.until(&format!("{context}: the work is done"), || self.port(sync) == port(0).to_string());
            self.wants(sync, port(1));
            self.until(&format!("{context}: it goes on"), || self.port(sync) == port(1).to_string());
        }
        comes_back(&mut self.hosts[holder]);
        for sync in SYNCS {
            self.wants(sync, port(2));
        }
        let all_go_on =
            || SYNCS.iter().all(|sync| self.holder(sync).is_some() && self.port(sync) == port(2).to_string());
        self.until(&format!("{context}: all go on beside the one that is back"), all_go_on);
        let requests = self.audited.requests();
        let late = late(&requests);
        assert!(late.is_empty(), "{context}: {late:?}\n{}", self.logs());
        taken
    }
}

impl Request {
    /// Tells whether it is about an object of a sync, or a record of it.
    fn is_about(&self, sync: &str) -> bool {
        let is_record = self.resource != "leases" && self.name.split('.').nth(1) == Some(sync);
        is_record || self.uri.contains(&format!("/namespaces/{sync}/"))
    }
}

/// Returns the changes of objects by hosts whose sync another one had taken before.
fn late(requests: &[Request]) -> Vec<&Request> {
    let mut holders: BTreeMap<&str, &str> = BTreeMap::new();
    let mut late = Vec::new();
    for request in requests.iter().filter(|it| it.is_write() && !it.is_dry_run() && it.code < 300) {
        if let Some(sync) = request.name.strip_prefix("gatewright.sync.") {
            holders.insert(sync, request.holder.split('_').next().unwrap_or_default());
        }
        let sync = SYNCS.iter().find(|sync| request.is_about(sync));
        let is_late = |sync| holders.get(sync).is_none_or(|holder| *holder != request.user);
        if sync.copied().is_some_and(is_late) {
            late.push(request);
        }
    }
    late
}

#[test]
fn what_a_host_looked_after_that_is_lost_goes_on_elsewhere_and_nothing_of_it_comes_too_late() {
    let (first, runs) = (asked("GATEWRIGHT_SEED", 0), asked("GATEWRIGHT_LOSSES", RUNS));
    let mut fleet = Fleet::new(&["host-a", "host-b", "host-c"]);
    fleet.start();
    let mut figures = String::new();
    for seed in first..first + runs {
        if let Some(taken) = fleet.loses(seed) {
            writeln!(figures, "seed {seed}: {:.1} s until another one had it", taken.as_secs_f64())
                .expect("a text takes everything");
        }
    }
    let changes = |it: &Request| it.uri.contains("/namespaces/red/") && it.is_write();
    assert!(fleet.audited.requests().iter().any(changes), "the log shows who has changed what");
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("hosts-without-owner.txt"), figures)
        .expect("it can be written");
}

/// It is frozen between two writes of a round, so that whatever it does first when it goes on comes too late.
#[test]
fn what_was_planned_before_a_host_froze_is_not_made_when_it_goes_on() {
    let mut fleet = Fleet::new(&["host-a", "host-b"]);
    let targets: Vec<Proxy> = fleet.hosts.iter().map(|_| Proxy::start(&fleet.audited.server)).collect();
    for (host, target) in fleet.hosts.iter().zip(&targets) {
        let direct = fleet.audited.server.kubeconfig(host.name).display().to_string();
        let seen = format!("{}, allowInsecureTls: true", target.kubeconfig().display());
        host.desk.replace("gatewright.yaml", &direct, &seen);
        for _ in SYNCS {
            host.desk.replace("gatewright.yaml", "{units: 0, percent: 0}", "{units: 100, percent: 100}");
        }
    }
    fleet.start();
    let frozen = fleet.holder("red").expect("somebody looks after it");
    let freeze = fleet.hosts[frozen].daemon.as_ref().expect("it runs").signaller("STOP");
    let is_first = |seen: &Seen| seen.is("PATCH", "/serviceaccounts/late") && seen.is_write();
    targets[frozen].answer(1, is_first, Answer::After(Arc::new(freeze)));
    fleet.gateway("red", "late", 8081);
    let late = |fleet: &Fleet| {
        let get = ["get", "serviceaccount,configmap,service", "-n", "red", "-o", "name"];
        fleet.audited.server.kubectl_ok(&get).lines().filter(|line| line.ends_with("/late")).count()
    };
    fleet.until("another one goes on with it", || {
        fleet.holder("red").is_some_and(|it| it != frozen) && late(&fleet) == 3
    });
    for host in &fleet.hosts {
        fs::remove_file(host.desk.path("specs/red/late.yaml")).expect("it is there");
    }
    fleet.until("it is withdrawn", || late(&fleet) == 0);
    let before = targets[frozen].carried_out();
    fleet.hosts[frozen].signal("CONT");
    fleet.until("it knows what it has missed", || fleet.logs().contains("the Lease of this host has run out"));
    for (sync, port) in SYNCS.iter().zip([8181, 8182, 8183]) {
        fleet.wants(sync, port);
    }
    fleet
        .until("all go on", || SYNCS.iter().zip(["8181", "8182", "8183"]).all(|(sync, port)| fleet.port(sync) == port));
    let after = targets[frozen].carried_out();
    let late_writes: Vec<_> = after.iter().skip(before.len()).filter(|line| line.contains("/late")).collect();
    assert!(late_writes.is_empty(), "{late_writes:?}");
    assert_eq!(late(&fleet), 0, "{}", fleet.logs());
}
