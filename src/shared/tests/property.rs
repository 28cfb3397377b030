//! Whatever happens to some hosts: in the end they and the store are alike, and what was said to be in the store and was
//! not changed again is there.

use proptest::prelude::*;
use tokio::runtime::Builder;

use super::*;

const HOSTS: usize = 3;
const SYNCS: [&str; 2] = ["edge", "core"];

/// Files that people write on any host, and files that only rounds of a sync write.
const SAID: [&str; 3] = ["approvals/t1.json", "suspended/edge.json", "suspended/core.json"];
const OWNED: [&str; 4] = [
    "status/SYNC/west.json",
    "rendered/SYNC/west/index",
    "undo/20261120T100000.000Z-SYNC.west/west/after",
    "reports/20261120T100000.000Z-SYNC.json",
];

#[derive(Clone, Debug)]
enum Event {
    /// A person writes on a host, or removes.
    Say(usize, usize, bool),
    /// The host that looks after a sync writes a file of it, or removes it.
    Round(usize, usize, bool),
    Flush(usize),
    Synchronize(usize),
    /// The process ends; the files stay.
    Crash(usize),
    /// All that a host has is gone.
    Wipe(usize),
    /// A sync gets another host; `true` if the one that had it lets go of it properly.
    Acquire(usize, usize, bool),
}

fn event() -> impl Strategy<Value = Event> {
    let host = 0..HOSTS;
    let is_written = prop::bool::weighted(0.8);
    prop_oneof![
        4 => (host.clone(), 0..SAID.len(), is_written).prop_map(|(a, b, c)| Event::Say(a, b, c)),
        6 => (0..SYNCS.len(), 0..OWNED.len(), is_written).prop_map(|(a, b, c)| Event::Round(a, b, c)),
        3 => host.clone().prop_map(Event::Flush),
        3 => host.clone().prop_map(Event::Synchronize),
        1 => host.clone().prop_map(Event::Crash),
        1 => host.clone().prop_map(Event::Wipe),
        2 => (0..SYNCS.len(), host, any::<bool>()).prop_map(|(a, b, c)| Event::Acquire(a, b, c)),
    ]
}

/// The hosts, and what each file must be in the end.
struct World {
    folder: TempDir,
    hosts: Vec<Host>,
    owner: [Option<usize>; SYNCS.len()],
    /// A number for each content, so that no two are the same.
    written: usize,
    /// The files that a host has changed and nobody has confirmed.
    pending: Vec<BTreeMap<String, Option<String>>>,
    /// The files of which a host knows that they have to be pushed.
    noted: Vec<BTreeSet<String>>,
    /// The files that must be there in the end, or must not; of other files nothing is known.
    certain: BTreeMap<String, Option<String>>,
    contents: BTreeSet<String>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("store")).expect("a test may");
        let mut world = Self {
            folder,
            hosts: Vec::new(),
            owner: [None; SYNCS.len()],
            written: 0,
            pending: vec![BTreeMap::new(); HOSTS],
            noted: vec![BTreeSet::new(); HOSTS],
            certain: BTreeMap::new(),
            contents: BTreeSet::new(),
        };
        world.hosts = (0..HOSTS).map(|host| world.start(host)).collect();
        world
    }

    fn start(&self, host: usize) -> Host {
        let mut started = Host::in_folder(&self.path(host), &self.folder.path().join("store"));
        let of = SYNCS.iter().zip(self.owner).filter(|(_, owner)| *owner == Some(host));
        started.syncs = of.map(|(sync, _)| (*sync).to_owned()).collect();
        started
    }

    fn path(&self, host: usize) -> PathBuf {
        self.folder.path().join(host.to_string())
    }

    fn change(&mut self, host: usize, name: &str, is_written: bool) {
        let content = is_written.then(|| {
            self.written += 1;
            // No two have the same length either.
            format!("{}{}", self.written, "x".repeat(self.written))
        });
        match &content {
            Some(text) => self.hosts[host].write(name, text),
            None => self.hosts[host].state.remove(name).expect("it is removed"),
        }
        self.contents.extend(content.clone());
        self.certain.remove(name);
        self.pending[host].insert(name.to_owned(), content);
        // To remove what was never alike in the store is no change: there may be a file that this host has not seen yet.
        let name = name.to_owned();
        let is_known =
            |name: &str| Name::parse(name).and_then(|name| self.hosts[host].shared.local.known(&name)).is_some();
        if is_written || is_known(&name) {
            self.noted[host].insert(name);
        } else {
            self.noted[host].remove(&name);
        }
    }

    /// Flushes a host: all that it has noted is in the store then.
    async fn flush(&mut self, host: usize) {
        self.hosts[host].flush().await;
        let noted = std::mem::take(&mut self.noted[host]);
        for name in &noted {
            let in_store = fs::read_to_string(self.folder.path().join("store").join(name)).ok();
            assert_eq!(in_store, self.hosts[host].read(name), "{name} was flushed");
        }
        // What was changed before a crash is noted no more, and is not confirmed by this.
        let (done, left) = self.pending[host].clone().into_iter().partition(|(name, _)| noted.contains(name));
        self.pending[host] = done;
        self.confirm(host);
        self.pending[host] = left;
    }

    /// Each thing that a host was told to be in the store counts, unless another one has changed the same and has yet to say so.
    fn confirm(&mut self, host: usize) {
        for (name, content) in std::mem::take(&mut self.pending[host]) {
            let is_disputed = self.pending.iter().any(|pending| pending.contains_key(&name));
            // Of what a host writes that has lost the sync, the one that has it now keeps its own.
            let sync = Name::parse(&name).filter(|name| name.group().writer == Writer::Owner);
            let sync = sync.and_then(|name| SYNCS.iter().position(|sync| name.sync() == Some(*sync)));
            let is_late = sync.is_some_and(|sync| self.owner[sync] != Some(host));
            // Of a removal nothing is certain: a host that has lost what it knew may have the file still.
            if !is_disputed && !is_late && content.is_some() {
                self.certain.insert(name, content);
            }
        }
    }

    async fn synchronize(&mut self, host: usize) {
        self.hosts[host].synchronize().await;
        self.noted[host].clear();
        for (name, content) in self.pending[host].clone() {
            // Another one may have won.
            if self.hosts[host].read(&name) != content {
                self.pending[host].remove(&name);
            }
        }
        self.confirm(host);
    }

    async fn acquire(&mut self, sync: usize, host: usize, is_proper: bool) {
        if let Some(before) = self.owner[sync].filter(|before| *before != host) {
            if is_proper {
                self.flush(before).await;
            }
            self.hosts[before].syncs.remove(SYNCS[sync]);
        }
        self.synchronize(host).await;
        self.owner[sync] = Some(host);
        self.hosts[host].syncs.insert(SYNCS[sync].to_owned());
    }

    async fn happen(&mut self, event: Event) {
        match event {
            Event::Say(host, name, is_written) => self.change(host, SAID[name], is_written),
            Event::Round(sync, name, is_written) => {
                if let Some(host) = self.owner[sync] {
                    self.change(host, &OWNED[name].replace("SYNC", SYNCS[sync]), is_written);
                }
            }
            Event::Flush(host) => self.flush(host).await,
            Event::Synchronize(host) => self.synchronize(host).await,
            Event::Crash(host) => {
                self.hosts[host] = self.start(host);
                self.noted[host].clear();
            }
            Event::Wipe(host) => {
                fs::remove_dir_all(self.path(host)).unwrap_or_default();
                self.pending[host].clear();
                self.noted[host].clear();
                // A host that has nothing looks after nothing before it has looked.
                self.hosts[host] = self.start(host);
                self.synchronize_as_nobody(host).await;
            }
            Event::Acquire(sync, host, is_proper) => self.acquire(sync, host, is_proper).await,
        }
    }

    /// Exchanges until nothing moves any more; `false` if that has no end. It takes some rounds of all: what a host removes
    /// that has lost the sync is written again by the one that has it, and only then taken by the others.
    async fn settle(&self) -> bool {
        for _ in 0..5 {
            let mut moved = false;
            for host in &self.hosts {
                moved |= host.synchronize().await != Synchronized::default();
            }
            if !moved {
                return true;
            }
        }
        false
    }

    async fn synchronize_as_nobody(&mut self, host: usize) {
        let syncs = std::mem::take(&mut self.hosts[host].syncs);
        self.synchronize(host).await;
        self.hosts[host].syncs = syncs;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn hosts_and_store_end_alike_and_nothing_confirmed_is_lost(events in prop::collection::vec(event(), 1..40)) {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut world = World::new();
            for event in events {
                world.happen(event).await;
            }
            prop_assert!(world.settle().await, "the hosts push and take for ever");
            let store = world.hosts[0].shared.remote.list().await.expect("the store answers");
            let mut files = world.hosts[0].files();
            for host in &world.hosts[1..] {
                prop_assert_eq!(&host.files(), &files);
            }
            let names: Vec<&String> = store.keys().filter(|name| *name != marker::MARKER).collect();
            prop_assert_eq!(names, files.keys().collect::<Vec<_>>());
            for (name, content) in &files {
                let in_store = fs::read_to_string(world.folder.path().join("store").join(name)).expect("it is there");
                prop_assert_eq!(&in_store, content);
                prop_assert!(world.contents.contains(content), "{} holds what nobody has written", name);
            }
            for (name, content) in world.certain {
                prop_assert_eq!(files.remove(&name), content, "{}", name);
            }
            Ok(())
        })?;
    }
}
