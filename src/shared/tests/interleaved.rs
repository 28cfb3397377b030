//! Flushes and exchanges of the same host at the same time, in every order.

use std::sync::atomic::AtomicUsize;

use proptest::prelude::*;
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::slow::{LIST, Slow};
use super::*;

const WEST: &str = "status/edge/west.json";
const TOKEN: &str = "approvals/t1.json";

#[tokio::test]
async fn a_flush_waits_for_no_listing_and_for_no_other_file() {
    let (_folder, [a, b, _]) = folders();
    let store = Arc::new(Slow::default());
    let (host, other) = (store.host(&a, &["edge"]), store.host(&b, &["core"]));
    host.synchronize().await;
    assert_ne!(locks::number(&name("status/core/west.json")), locks::number(&name(WEST)));
    for (number, slow) in [LIST, "status/core/west.json"].into_iter().enumerate() {
        other.write("status/core/west.json", &format!("of another host: {number}"));
        other.flush().await;
        store.close(slow);
        let mut exchange = Box::pin(host.synchronize());
        store.reached(slow, &mut exchange).await;
        host.write(WEST, &number.to_string());
        let is_first = async {
            tokio::select! {
                () = host.flush() => true,
                _ = &mut exchange => false,
            }
        };
        let is_first = timeout(Duration::from_secs(20), is_first).await.expect("it does not wait for that");
        assert!(is_first, "the exchange is kept waiting");
        assert_eq!(store.text(WEST).await, Some(number.to_string()), "{slow}");
        store.open(slow);
        exchange.await;
        assert_eq!(host.read(WEST), Some(number.to_string()), "{slow}");
    }
    assert_eq!(host.read("status/core/west.json").as_deref(), Some("of another host: 1"));
}

#[tokio::test]
async fn what_an_exchange_has_yet_to_push_is_pushed_by_a_flush() {
    let (_folder, [a, ..]) = folders();
    let store = Arc::new(Slow::default());
    let host = store.host(&a, &["edge"]);
    host.write(WEST, "1");
    store.close(WEST);
    let mut exchange = Box::pin(host.synchronize());
    store.reached(WEST, &mut exchange).await;
    let mut flush = Box::pin(host.flush());
    for _ in 0..20 {
        assert!(futures::poll!(&mut flush).is_pending(), "it is not in the store yet");
        sleep(Duration::from_millis(1)).await;
    }
    // Whoever is at it does not wait for the end of it.
    drop(exchange);
    store.open(WEST);
    flush.await;
    assert_eq!(store.text(WEST).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn what_is_flushed_after_a_listing_is_not_judged_by_it() {
    let (_folder, [a, ..]) = folders();
    let store = Arc::new(Slow::default());
    // A file of another host's sync is the one that the store could take away.
    let host = store.host(&a, &[]);
    host.write("approvals/t0.json", "1");
    host.synchronize().await;
    store.close(LIST);
    let mut exchange = Box::pin(host.synchronize());
    store.reached(LIST, &mut exchange).await;
    host.write(TOKEN, "1");
    host.state.remove("approvals/t0.json").expect("it is removed");
    host.flush().await;
    store.open(LIST);
    assert_eq!(exchange.await, Synchronized::default());
    assert_eq!((host.read(TOKEN).as_deref(), host.read("approvals/t0.json")), (Some("1"), None));
    assert_eq!((store.text(TOKEN).await.as_deref(), store.text("approvals/t0.json").await), (Some("1"), None));
}

#[tokio::test]
async fn what_is_removed_during_an_exchange_is_not_taken_for_a_loss() {
    let (_folder, [a, ..]) = folders();
    for is_flushed in [false, true] {
        let store = Arc::new(Slow::default());
        let host = store.host(&a.join(is_flushed.to_string()), &["edge"]);
        let names: Vec<String> = (0..20).map(|number| format!("asked/edge/c{number}.json")).collect();
        for name in &names {
            host.write(name, "1");
        }
        host.synchronize().await;
        store.close(LIST);
        let mut exchange = Box::pin(host.synchronize());
        store.reached(LIST, &mut exchange).await;
        for name in &names {
            host.state.remove(name).expect("it is removed");
        }
        if is_flushed {
            host.flush().await;
        }
        store.open(LIST);
        assert_eq!(exchange.await.restored, 0, "{is_flushed}");
        host.flush().await;
        host.synchronize().await;
        assert_eq!(host.files(), BTreeMap::new(), "{is_flushed}");
        assert_eq!(store.text(&names[0]).await, None, "{is_flushed}");
    }
}

#[tokio::test]
async fn what_is_being_removed_is_missing_on_purpose_before_it_is_noted() {
    let (_folder, [a, ..]) = folders();
    let store = Arc::new(Slow::default());
    let host = store.host(&a, &["edge"]);
    let runs: Vec<String> = (10..30).map(|day| format!("undo/202611{day}T100000.000Z-edge/west/after")).collect();
    for name in &runs {
        host.write(name, "1");
    }
    host.synchronize().await;
    let changing = host.state.changing("undo");
    fs::remove_dir_all(host.state.path("undo")).expect("a test may");
    assert_eq!(host.synchronize().await.restored, 0);
    host.state.touched("undo");
    drop(changing);
    host.flush().await;
    assert_eq!(host.synchronize().await, Synchronized::default());
    assert_eq!(host.files(), BTreeMap::new());
}

#[tokio::test]
async fn a_late_word_is_not_pushed_where_the_new_host_has_not_written_yet() {
    let (_folder, [a, b, c]) = folders();
    for is_flush in [true, false] {
        let store = Arc::new(Slow::default());
        let host = |folder: &Path, syncs: &[&str]| store.host(&folder.join(is_flush.to_string()), syncs);
        let (mut old, new) = (host(&a, &["edge"]), host(&b, &["edge"]));
        let run = "undo/20261120T100000.000Z-edge/west/after";
        for name in [WEST, "rollouts/edge.json", "suspended/edge.json", run] {
            old.write(name, "in time");
        }
        old.synchronize().await;
        new.synchronize().await;
        // It has lost the sync; the other one has had no reason to write any of them.
        old.syncs.clear();
        for name in [WEST, "suspended/edge.json", "status/edge/east.json", run] {
            old.write(name, "late");
        }
        old.state.remove("rollouts/edge.json").expect("it is removed");
        if is_flush {
            old.shared.flush(|_| false).await.expect("the store answers");
        } else {
            old.synchronize().await;
        }
        for (name, expected) in [
            (WEST, "in time"),
            ("rollouts/edge.json", "in time"),
            // People write this one, nobody has ever had that one, and only one round writes the last one.
            ("suspended/edge.json", "late"),
            ("status/edge/east.json", "late"),
            (run, "late"),
        ] {
            assert_eq!(store.text(name).await.as_deref(), Some(expected), "{name}");
            assert_eq!(old.read(name).as_deref(), Some(expected), "{name} here");
        }
        assert_eq!(old.read("shared/conflicts/status/edge/west.json").as_deref(), Some("late"));
        // Whoever comes third goes on from what counts.
        let third = host(&c, &[]);
        third.synchronize().await;
        assert_eq!(third.read(WEST).as_deref(), Some("in time"));
    }
}

#[tokio::test]
async fn a_host_that_loses_a_sync_during_a_flush_pushes_nothing_of_it_any_more() {
    let (_folder, [a, ..]) = folders();
    let store = Arc::new(Slow::default());
    let host = store.host(&a, &["edge"]);
    host.write(WEST, "in time");
    host.synchronize().await;
    // It looks whether the store is still the same one, for long.
    *lock(&host.shared.confirmed) = None;
    store.close(marker::MARKER);
    host.write(WEST, "late");
    let is_ours = AtomicBool::new(true);
    let mut flush = Box::pin(host.shared.flush(|_| is_ours.load(Ordering::Relaxed)));
    store.reached(marker::MARKER, &mut flush).await;
    is_ours.store(false, Ordering::Relaxed);
    store.open(marker::MARKER);
    flush.await.expect("the store answers");
    assert_eq!(store.text(WEST).await.as_deref(), Some("in time"));
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("it is one")
}

/// A process that writes files which nobody else writes.
struct Process {
    host: Arc<Host>,
    files: [&'static str; 3],
    wanted: BTreeMap<&'static str, Option<String>>,
}

/// The next step of a process: which file is written, and whether it is removed instead; then a flush, or none.
type Step = (usize, bool, bool);

impl Process {
    async fn work(&mut self, steps: &[Step], written: &AtomicUsize, store: &Slow) {
        for (file, is_removed, is_flushed) in steps {
            let name = self.files[*file];
            if *is_removed {
                self.host.state.remove(name).expect("it is removed");
                self.wanted.insert(name, None);
            } else {
                // No two are alike.
                let text = written.fetch_add(1, Ordering::Relaxed).to_string();
                self.host.write(name, &text);
                self.wanted.insert(name, Some(text));
            }
            if *is_flushed {
                self.flush(store).await;
            }
            sleep(Duration::from_micros(300)).await;
        }
        self.flush(store).await;
    }

    /// A file that was written before a flush is in the store after it.
    async fn flush(&self, store: &Slow) {
        self.host.shared.flush(|sync| self.host.syncs.contains(sync)).await.expect("the store answers");
        for (name, wanted) in &self.wanted {
            assert_eq!(store.text(name).await, *wanted, "{name}");
        }
    }
}

/// Exchanges all, again and again, until the work is done.
async fn exchange(host: &Host, is_done: &AtomicBool) {
    while !is_done.load(Ordering::Relaxed) {
        host.synchronize().await;
        sleep(Duration::from_micros(100)).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_flush_is_whole_whatever_exchanges_do_meanwhile(
        seed in any::<u64>(),
        steps in prop::array::uniform3(prop::collection::vec((0..3_usize, any::<bool>(), any::<bool>()), 1..12)),
    ) {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (_folder, [a, b, _]) = folders();
            let store = Slow::random(seed);
            // Two hosts, and a command on one of them.
            let process = |folder: &Path, syncs: &[&str], files| {
                Process { host: Arc::new(store.host(folder, syncs)), files, wanted: BTreeMap::new() }
            };
            let mut processes = [
                process(&a, &["edge"], [WEST, "rollouts/edge.json", "approvals/t1.json"]),
                process(&b, &["core"], ["status/core/west.json", "rollouts/core.json", "approvals/t2.json"]),
                process(&a, &[], ["suspended/core.json", "suspended/edge.json", "approvals/t3.json"]),
            ];
            let daemons = [Arc::clone(&processes[0].host), Arc::clone(&processes[1].host)];
            let (written, is_done) = (AtomicUsize::new(1), AtomicBool::new(false));
            let [first, second, third] = &mut processes;
            let work = async {
                tokio::join!(
                    first.work(&steps[0], &written, &store),
                    second.work(&steps[1], &written, &store),
                    third.work(&steps[2], &written, &store)
                );
                is_done.store(true, Ordering::Relaxed);
            };
            tokio::join!(work, exchange(&daemons[0], &is_done), exchange(&daemons[1], &is_done));
            for host in daemons.iter().chain(&daemons) {
                host.synchronize().await;
            }
            for host in &daemons {
                for (name, wanted) in processes.iter().flat_map(|process| &process.wanted) {
                    prop_assert_eq!(&host.read(name), wanted, "{}", name);
                }
            }
            Ok(())
        })?;
    }
}
