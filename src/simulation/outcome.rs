//! The outcome of a simulation: times, requests, CPU and memory, and the slowest clusters with their reasons.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde::Serialize;

use super::progress::Tale;
use crate::cluster::simulated::link::{Fault, Traffic, Verb};
use crate::cluster::simulated::{SimulatedCluster, World};
use crate::report::{Report, StepReport};

/// The version of the form.
const SCHEMA: &str = "gatewright.dev/simulation/v1alpha1";

/// The outcome of a simulation. All times are in seconds, all sizes in bytes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    schema: &'static str,
    /// The number of clusters, and of those with each fault.
    pub(crate) clusters: usize,
    pub(crate) faults: BTreeMap<Fault, usize>,
    pub(crate) seed: u64,
    /// The phases, in their order.
    pub(crate) phases: Vec<Phase>,
    /// The plan of the change for all clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<Planned>,
    /// The objects of all clusters, and how many bodies they share.
    pub(crate) objects: usize,
    pub(crate) bodies: usize,
    /// The most memory of this process at any time, the simulated clusters included; `None` where the system does not say.
    pub(crate) peak_memory: Option<u64>,
}

/// One phase.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Phase {
    pub(crate) name: String,
    /// The simulated time of the whole phase.
    pub(crate) took: f64,
    /// The CPU time of this process, the simulated clusters included.
    pub(crate) cpu: f64,
    /// The most memory of this process up to its end.
    pub(crate) peak_memory: Option<u64>,
    pub(crate) clusters: usize,
    pub(crate) converged: usize,
    /// The times of the clusters without a fault, and of those with one.
    pub(crate) sound: Option<Times>,
    pub(crate) faulty: Option<Times>,
    /// Requests to all clusters, each try counted.
    pub(crate) requests: BTreeMap<Verb, u64>,
    pub(crate) throttled: u64,
    pub(crate) errors: u64,
    pub(crate) unanswered: u64,
    /// The slowest of a hundred, at least one; those that did not converge first.
    pub(crate) slowest: Vec<Slow>,
}

/// The times in which clusters have reached the goal of a phase.
#[derive(Debug, Serialize)]
pub(crate) struct Times {
    pub(crate) p50: f64,
    pub(crate) p95: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

/// A cluster that was slow.
#[derive(Debug, Serialize)]
pub(crate) struct Slow {
    pub(crate) cluster: String,
    /// `None`: it did not converge.
    pub(crate) took: Option<f64>,
    pub(crate) reasons: Vec<String>,
}

/// The plan for all clusters.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Planned {
    pub(crate) took: f64,
    pub(crate) cpu: f64,
    /// The most memory of this process up to its end.
    pub(crate) peak_memory: Option<u64>,
    /// The clusters that something would change on, and the steps on all of them.
    pub(crate) clusters: usize,
    pub(crate) steps: usize,
}

impl Outcome {
    pub(super) fn of(world: &World, clusters: &BTreeMap<String, Arc<SimulatedCluster>>) -> Self {
        let mut faults: BTreeMap<Fault, usize> = BTreeMap::new();
        for cluster in clusters.values().filter(|cluster| cluster.fault() != Fault::None) {
            *faults.entry(cluster.fault()).or_default() += 1;
        }
        Self {
            schema: SCHEMA,
            clusters: clusters.len(),
            faults,
            seed: world.seed,
            phases: Vec::new(),
            plan: None,
            objects: 0,
            bodies: 0,
            peak_memory: None,
        }
    }

    /// Notes how things stand in the end.
    pub(super) fn end(&mut self, world: &World, clusters: &BTreeMap<String, Arc<SimulatedCluster>>) {
        self.objects = clusters.values().map(|cluster| cluster.count()).sum();
        self.bodies = world.bodies.count();
        self.peak_memory = peak_memory();
    }

    /// Tells whether every cluster that answers has reached the goal of every phase.
    pub(crate) fn has_converged(&self) -> bool {
        let lost = self.faults.get(&Fault::Unreachable).copied().unwrap_or_default();
        self.phases.iter().all(|phase| phase.converged + lost >= phase.clusters)
    }
}

impl Phase {
    pub(super) fn of(
        name: &str,
        (took, cpu): (SignedDuration, Duration),
        tales: &BTreeMap<String, Tale>,
        traffic: &BTreeMap<&str, Traffic>,
        faults: &BTreeMap<&str, Fault>,
    ) -> Self {
        let fault = |name: &str| faults.get(name).copied().unwrap_or_default();
        let times = |is_sound: bool| {
            let chosen = tales.iter().filter(|(name, _)| (fault(name) == Fault::None) == is_sound);
            Times::of(chosen.filter_map(|(_, tale)| tale.took).collect())
        };
        let mut requests: BTreeMap<Verb, u64> = BTreeMap::new();
        for (verb, number) in traffic.values().flat_map(|traffic| &traffic.requests) {
            *requests.entry(*verb).or_default() += number;
        }
        let mut order: Vec<(&String, &Tale)> = tales.iter().collect();
        order.sort_by_key(|(_, tale)| std::cmp::Reverse((tale.took.is_none(), tale.took)));
        order.truncate(tales.len().div_ceil(100));
        let slow = |(name, tale): (&String, &Tale)| Slow {
            cluster: name.clone(),
            took: tale.took.map(|took| took.as_secs_f64()),
            reasons: reasons(tale, fault(name), traffic.get(name.as_str())),
        };
        Self {
            name: name.to_owned(),
            took: took.as_secs_f64(),
            cpu: cpu.as_secs_f64(),
            peak_memory: peak_memory(),
            clusters: tales.len(),
            converged: tales.values().filter(|tale| tale.took.is_some()).count(),
            sound: times(true),
            faulty: times(false),
            requests,
            throttled: traffic.values().map(|it| it.throttled).sum(),
            errors: traffic.values().map(|it| it.errors).sum(),
            unanswered: traffic.values().map(|it| it.unanswered).sum(),
            slowest: order.into_iter().map(slow).collect(),
        }
    }
}

impl Times {
    fn of(mut times: Vec<SignedDuration>) -> Option<Self> {
        times.sort();
        let max = times.last()?.as_secs_f64();
        // The smallest time that so many of a hundred do not exceed.
        let at = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1].as_secs_f64();
        Some(Self { p50: at(50), p95: at(95), p99: at(99), max })
    }
}

impl Planned {
    pub(super) fn of(reports: &[Report], took: SignedDuration, cpu: Duration) -> Self {
        let clusters = || reports.iter().flat_map(|report| report.clusters.values());
        let changes = |steps: &[StepReport]| steps.iter().filter(|step| step.is_change()).count();
        Self {
            took: took.as_secs_f64(),
            cpu: cpu.as_secs_f64(),
            peak_memory: peak_memory(),
            clusters: clusters().filter(|cluster| changes(&cluster.steps) > 0).count(),
            steps: clusters().map(|cluster| changes(&cluster.steps)).sum(),
        }
    }
}

/// Says why a cluster took as long as it did.
fn reasons(tale: &Tale, fault: Fault, traffic: Option<&Traffic>) -> Vec<String> {
    let traffic = traffic.cloned().unwrap_or_default();
    let mut reasons = Vec::new();
    match fault {
        Fault::None => {}
        Fault::Unreachable => reasons.push("unreachable".to_owned()),
        Fault::Throttled => reasons.push(format!("throttled: answered 429 {} times", traffic.throttled)),
        Fault::Slow => reasons.push("slow: ten times the latency of others".to_owned()),
    }
    if traffic.errors > 0 {
        reasons.push(format!("answered 503 {} times", traffic.errors));
    }
    if let Some(why) = &tale.why {
        reasons.push(format!("{} rounds before, the last: {why}", tale.rounds));
    }
    if reasons.is_empty() {
        reasons.push(format!("nothing but its {} requests", traffic.requests.values().sum::<u64>()));
    }
    reasons
}

fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
