//! A stand-in for the controllers of kgateway and agentgateway on a real API server: it watches, deploys, prunes and
//! reports as they do, and has no xDS.
//!
//! What it deploys for a Gateway is what our packs render from what is *on the cluster*, in the words and the layout of
//! the release that it is told to be.
//! It looks after the namespaces that it is given and no others, so that tests can share a server.

mod addresses;
mod api;
mod identities;
mod layout;
mod reconcile;
mod release;
mod status;
mod watched;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gatewright::basics::clock::SystemClock;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::cluster::ApiServer;
pub(crate) use addresses::Addresses;
use api::Api;
pub(crate) use identities::{Identity, identities};
use reconcile::{Context, gateways};
pub(crate) use release::{Product, Release};
use watched::Watched;

/// The longest that anything may take on a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_mins(10);
/// The wait before a reconcile that has failed is tried again.
const BACK_OFF: Duration = Duration::from_millis(200);

/// A Gateway.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// An object that it has deleted, such as `PodDisruptionBudget ns/edge`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deletion {
    pub(crate) id: String,
    pub(crate) uid: String,
}

/// The record of what it has done, restarts included.
#[derive(Default)]
struct Log {
    reconciles: BTreeMap<Key, usize>,
    deletions: Vec<Deletion>,
    /// Changes of anything on the server.
    writes: usize,
    failures: Vec<String>,
}

/// The reason for a look at a Gateway.
enum Event {
    /// Something of a kind has changed, or is gone.
    Changed { kind: &'static str, object: Value, is_gone: bool },
    /// Somebody asks for a reconcile, and may want to know when it is over.
    Asked(Key, Option<oneshot::Sender<()>>),
}

/// The controller, which ends with this value.
pub(crate) struct Controller {
    kubeconfig: PathBuf,
    release: Release,
    namespaces: BTreeSet<String>,
    log: Arc<Mutex<Log>>,
    running: Option<Running>,
}

struct Running {
    runtime: Runtime,
    api: Api,
    events: UnboundedSender<Event>,
}

impl Controller {
    /// Starts one that looks after these namespaces, and waits until it has reconciled what is there.
    pub(crate) fn start(server: &ApiServer, release: Release, namespaces: &[&str]) -> Self {
        let mut controller = Self {
            kubeconfig: server.kubeconfig("admin"),
            release,
            namespaces: namespaces.iter().map(ToString::to_string).collect(),
            log: Arc::default(),
            running: None,
        };
        controller.restart();
        controller
    }

    /// Ends it, between two requests, as the end of its pod would. What it has done stays known.
    pub(crate) fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.runtime.shutdown_timeout(LIMIT);
        }
    }

    /// Ends it if it runs, starts it again, and waits until it has reconciled what is there.
    pub(crate) fn restart(&mut self) {
        self.stop();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let (events, received) = unbounded_channel();
        let api = runtime.block_on(Api::new(&self.kubeconfig));
        let context = Context {
            api: api.clone(),
            packs: self.release.packs(),
            product: self.release.product,
            clock: SystemClock::new(),
            log: Arc::clone(&self.log),
        };
        runtime.block_on(context.make_classes()).expect("the kinds of the Gateway API are installed");
        watched::start(&runtime, &api, self.release.product, &self.namespaces, &events);
        runtime.spawn(work(context, received, events.clone()));
        self.running = Some(Running { runtime, api, events });
        self.reconcile_all();
    }

    /// Has every Gateway reconciled once more, as after a rotation of its certificate, and waits for it.
    pub(crate) fn reconcile_all(&self) {
        let running = self.running.as_ref().expect("it runs");
        let all = async {
            let mut waiting = Vec::new();
            for namespace in &self.namespaces {
                for gateway in running.api.items(&gateways(namespace)).await.expect("the server answers") {
                    let (sender, done) = oneshot::channel();
                    let name = gateway["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                    let key = Key { namespace: namespace.clone(), name };
                    assert!(running.events.send(Event::Asked(key, Some(sender))).is_ok(), "the controller has ended");
                    waiting.push(done);
                }
            }
            for done in waiting {
                assert!(done.await.is_ok(), "the controller has ended");
            }
        };
        let done = running.runtime.block_on(async { tokio::time::timeout(LIMIT, all).await });
        assert!(done.is_ok(), "the controller does not get through within {LIMIT:?}: {:?}", self.log().failures);
    }

    /// Waits until a reconcile of every Gateway finds nothing to change.
    pub(crate) fn settle(&self) {
        for _ in 0..20 {
            let before = self.log().writes;
            self.reconcile_all();
            if self.log().writes == before {
                return;
            }
        }
        let log = self.log();
        let (deletions, failures) = (&log.deletions, &log.failures);
        assert!(deletions.is_empty() && failures.is_empty(), "no end: it deletes {deletions:?}, and {failures:?}");
        assert_eq!(log.writes, 0, "it finds something to change each time");
    }

    /// Returns how often a Gateway was reconciled, failures included.
    pub(crate) fn reconciles(&self, namespace: &str, name: &str) -> usize {
        let key = Key { namespace: namespace.to_owned(), name: name.to_owned() };
        self.log().reconciles.get(&key).copied().unwrap_or_default()
    }

    /// Returns how often it has looked at any Gateway.
    pub(crate) fn all_reconciles(&self) -> usize {
        self.log().reconciles.values().sum()
    }

    /// Returns what it has deleted so far, in order.
    pub(crate) fn deletions(&self) -> Vec<Deletion> {
        self.log().deletions.clone()
    }

    /// Returns why reconciles have failed so far, in order.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.log().failures.clone()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Reconciles one Gateway after the other, each once for all that has happened in the meantime.
async fn work(context: Context, mut received: UnboundedReceiver<Event>, events: UnboundedSender<Event>) {
    let mut watched = Watched::default();
    let mut queue: BTreeMap<Key, Vec<oneshot::Sender<()>>> = BTreeMap::new();
    loop {
        let first = if queue.is_empty() { received.recv().await } else { None };
        for event in first.into_iter().chain(std::iter::from_fn(|| received.try_recv().ok())) {
            match event {
                Event::Asked(key, done) => queue.entry(key).or_default().extend(done),
                Event::Changed { kind, object, is_gone } => {
                    for key in watched.affected(kind, &object, is_gone) {
                        queue.entry(key).or_default();
                    }
                }
            }
        }
        let Some((key, waiting)) = queue.pop_first() else { continue };
        let outcome = context.reconcile(&key).await;
        if !matches!(outcome, Ok(false)) {
            *context.log().reconciles.entry(key.clone()).or_default() += 1;
        }
        if let Err(failure) = outcome {
            context.log().failures.push(failure.to_string());
            let events = events.clone();
            tokio::spawn(async move {
                tokio::time::sleep(BACK_OFF).await;
                events.send(Event::Asked(key, None))
            });
        }
        // Who has asked may have given up.
        for done in waiting {
            done.send(()).unwrap_or_default();
        }
    }
}
