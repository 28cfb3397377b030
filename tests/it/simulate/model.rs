//! The cluster of the simulator does what a real API server does, where rounds go by it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gatewright::basics::clock::SystemClock;
use gatewright::cluster::kube::KubeCluster;
use gatewright::cluster::kubeconfig::{Settings, StandardLookup};
use gatewright::cluster::simulated::link::{Fault, Latency};
use gatewright::cluster::simulated::objects::Bodies;
use gatewright::cluster::simulated::{SimulatedCluster, World};
use gatewright::cluster::{Cluster, Mode, Precondition, Range};
use gatewright_engine::kinds;
use gatewright_engine::live::Live;
use gatewright_engine::object::{Gvk, Object};
use proptest::prelude::*;
use serde_json::json;

use crate::cluster::{shared, unique};

/// An act of somebody on an object.
#[derive(Clone, Debug)]
enum Act {
    /// Applies it with a value; in a dry run or not, over what was read last, or where nothing is.
    Apply { object: usize, value: u8, is_dry_run: bool, is_new: bool },
    /// Applies it over what it was some time ago.
    ApplyOver { object: usize, value: u8, version: usize },
    /// Deletes what was read last.
    Delete { object: usize },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..2_usize, 0..3_u8, any::<bool>(), any::<bool>())
            .prop_map(|(object, value, is_dry_run, is_new)| Act::Apply { object, value, is_dry_run, is_new }),
        1 => (0..2_usize, 0..3_u8, 0..4_usize)
            .prop_map(|(object, value, version)| Act::ApplyOver { object, value, version }),
        1 => (0..2_usize).prop_map(|object| Act::Delete { object }),
    ]
}

/// A cluster, and what was ever read of each object there, in the order in which it was read.
struct Side {
    cluster: Arc<dyn Cluster>,
    seen: BTreeMap<usize, Vec<Live>>,
    namespace: String,
}

/// The visible part of an act, without the names that each cluster gives by itself.
#[derive(Debug, PartialEq)]
struct Seen {
    outcome: Result<(), String>,
    /// Of the answer and of the object after it: which of the uids seen before it has, whether its version was seen before,
    /// its generation, and its value.
    states: Vec<Option<(usize, bool, i64, String)>>,
}

impl Side {
    fn object(&self, object: usize, value: u8) -> Object {
        let metadata =
            json!({"name": format!("o{object}"), "namespace": self.namespace, "labels": {"simulated": "yes"}});
        let body = if object == 0 {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value.to_string()}})
        } else {
            // It has generations, and no controller that reports on it.
            let spec = json!({"podSelector": {"matchLabels": {"value": value.to_string()}}});
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec})
        };
        Object::new(body).expect("it has all that it needs")
    }

    fn over(live: Option<&Live>) -> Precondition {
        live.map_or(Precondition::Absent, |live| Precondition::Unchanged {
            uid: live.uid.clone(),
            resource_version: live.resource_version.clone(),
        })
    }

    async fn carry_out(&mut self, act: &Act) -> Seen {
        let number = match act {
            Act::Apply { object, .. } | Act::ApplyOver { object, .. } | Act::Delete { object } => *object,
        };
        let (gvk, id) = (self.object(number, 0).gvk(), self.object(number, 0).id().clone());
        let seen = self.seen.get(&number).cloned().unwrap_or_default();
        let answer = match act {
            Act::Apply { value, is_dry_run, is_new, .. } => {
                let only_if = if *is_new { Precondition::Absent } else { Self::over(seen.last()) };
                let mode = if *is_dry_run { Mode::DryRun } else { Mode::Real };
                self.cluster.apply(&self.object(number, *value), &only_if, mode).await.map(Some)
            }
            Act::ApplyOver { value, version, .. } => self
                .cluster
                .apply(&self.object(number, *value), &Self::over(seen.get(*version)), Mode::Real)
                .await
                .map(Some),
            Act::Delete { .. } => match seen.last() {
                Some(live) => self.cluster.delete(&gvk, &id, &live.uid, &live.resource_version).await.map(|()| None),
                None => Ok(None),
            },
        };
        let now = self.cluster.get(&gvk, &id).await.expect("it can be read");
        let outcome = answer.as_ref().map(|_| ()).map_err(|error| format!("{:?}", error.reason));
        // A dry run that makes an object answers with a uid that nobody will ever see again.
        let is_lasting = !matches!(act, Act::Apply { is_dry_run: true, .. });
        let answer = answer.ok().flatten().filter(|_| is_lasting);
        let states = [answer, now.clone()].into_iter().map(|live| live.map(|live| Self::told(&seen, &live))).collect();
        if let Some(now) = now {
            self.seen.entry(number).or_default().push(now);
        }
        Seen { outcome, states }
    }

    fn told(seen: &[Live], live: &Live) -> (usize, bool, i64, String) {
        let body = live.object.body();
        let uid = seen.iter().position(|known| known.uid == live.uid).unwrap_or(seen.len());
        let is_known =
            seen.iter().any(|known| known.uid == live.uid && known.resource_version == live.resource_version);
        let value = [&body["data"]["value"], &body["spec"]["podSelector"]["matchLabels"]["value"]]
            .map(ToString::to_string)
            .concat();
        (uid, is_known, body["metadata"]["generation"].as_i64().unwrap_or_default(), value)
    }

    /// Returns the names that a list of metadata has.
    async fn listed(&self, gvk: &Gvk) -> Vec<String> {
        let range = Range { label: Some(("simulated", "yes")), namespace: Some(&self.namespace) };
        let listed = self.cluster.list_metadata(gvk, range).await.expect("it can be listed").expect("it has metadata");
        let mut names: Vec<String> = listed.objects.into_iter().map(|it| it.name).collect();
        names.sort();
        names
    }
}

fn sides(namespace: &str) -> [Side; 2] {
    let settings = Settings { path: Some(shared().kubeconfig("admin")), ..Settings::default() };
    let real = KubeCluster::new("real", settings, StandardLookup::default(), Arc::new(SystemClock::new()));
    let quick = Latency { median: Duration::from_millis(1), p99: Duration::from_millis(1) };
    let world = World { seed: 1, latency: quick, ready: quick, errors: 0.0, bodies: Arc::new(Bodies::default()) };
    let (kinds, clock) = (kinds::Table::builtin(), Arc::new(SystemClock::new()) as Arc<_>);
    let limit = Duration::from_secs(30);
    let simulated = SimulatedCluster::new("simulated", (&world, Fault::None, limit), &kinds, &clock);
    let side = |cluster| Side { cluster, seen: BTreeMap::new(), namespace: namespace.to_owned() };
    [side(Arc::new(real)), side(Arc::new(simulated))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_both_say_the_same(acts in proptest::collection::vec(act(), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        runtime.block_on(async {
            let namespace = unique("simulated");
            let [mut real, mut simulated] = sides(&namespace);
            let metadata = json!({"name": namespace});
            let of_namespace = Object::new(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
            let of_namespace = of_namespace.expect("it is whole");
            real.cluster.apply(&of_namespace, &Precondition::Absent, Mode::Real).await.expect("it is new");
            for act in &acts {
                let (expected, seen) = (real.carry_out(act).await, simulated.carry_out(act).await);
                prop_assert_eq!(seen, expected, "{:?} of {:?}", act, acts);
            }
            for gvk in [Gvk::new("v1", "ConfigMap"), Gvk::new("networking.k8s.io/v1", "NetworkPolicy")] {
                prop_assert_eq!(simulated.listed(&gvk).await, real.listed(&gvk).await);
            }
            Ok(())
        })?;
    }
}
