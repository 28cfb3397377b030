//! The numbers that the daemon shows to Prometheus.
//!
//! Methods take plain texts and numbers, so that whoever knows something can say it. Labels name what the config file
//! names, never objects or revisions: the number of series grows with syncs times clusters and no further. What leaves
//! the configuration is forgotten, because a series that nobody writes any more keeps its last value for ever.

mod series;

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::process::metrics::series::{Seconds, Series};

/// The media type of [`Metrics::encode`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of the process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    rounds: Series<Round, Counter>,
    durations: Series<Sync, Histogram>,
    successes: Series<Target, Seconds>,
    objects: Series<Objects, Gauge>,
    units: Series<Units, Gauge>,
    problems: Series<Target, Gauge>,
    changes: Series<Change, Counter>,
    holds: Series<Hold, Gauge>,
    suspended: Series<Sync, Gauge>,
    polls: Series<Poll, Counter>,
    source_successes: Series<Source, Seconds>,
    clusters: Series<Cluster, Gauge>,
    notifications: Series<Delivery, Counter>,
    waiting: Series<Webhook, Gauge>,
    reloaded: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Sync {
    sync: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Cluster {
    cluster: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Source {
    source: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Target {
    sync: String,
    cluster: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Round {
    sync: String,
    cluster: String,
    result: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Objects {
    sync: String,
    cluster: String,
    state: String,
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Units {
    sync: String,
    cluster: String,
    state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Change {
    sync: String,
    cluster: String,
    action: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Hold {
    sync: String,
    cluster: String,
    guard: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Poll {
    source: String,
    result: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Webhook {
    webhook: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Delivery {
    webhook: String,
    result: String,
}

impl Metrics {
    /// Makes the metrics of this version; everything else is unknown until it is said.
    pub(crate) fn new(version: &str) -> Self {
        let mut registry = Registry::with_prefix("gatewright");
        let build = Info::new(vec![("version".to_owned(), version.to_owned())]);
        registry.register("build", "The running version", build);
        let reloaded = Gauge::default();
        let help = "Whether the last attempt to load the configuration succeeded";
        registry.register("config_last_reload_successful", help, reloaded.clone());
        Self {
            rounds: Series::new(&mut registry, "rounds", "Rounds of a sync on a cluster, by how they ended", None),
            durations: Series::new(
                &mut registry,
                "round_duration",
                "How long rounds of a sync took on all its clusters together",
                Some(Unit::Seconds),
            ),
            successes: Series::new(
                &mut registry,
                "last_success_timestamp",
                "When a round of a sync last ended well on a cluster",
                Some(Unit::Seconds),
            ),
            objects: Series::new(&mut registry, "objects", "Objects after the last round, by state and kind", None),
            units: Series::new(&mut registry, "units", "Units after the last round, by state", None),
            problems: Series::new(&mut registry, "problems", "Mistakes in the source of a sync", None),
            changes: Series::new(&mut registry, "changes", "Changes made to objects, by action", None),
            holds: Series::new(&mut registry, "holds", "What a guard holds until a person decides", None),
            suspended: Series::new(&mut registry, "sync_suspended", "Whether a person has suspended a sync", None),
            polls: Series::new(&mut registry, "source_polls", "Polls of a source, by result", None),
            source_successes: Series::new(
                &mut registry,
                "source_last_success_timestamp",
                "When a source was last read, changed or not",
                Some(Unit::Seconds),
            ),
            clusters: Series::new(
                &mut registry,
                "cluster_up",
                "Whether a cluster answered when it was last asked",
                None,
            ),
            notifications: Series::new(
                &mut registry,
                "notifications",
                "Notifications to a webhook, by what came of a try",
                None,
            ),
            waiting: Series::new(&mut registry, "notifications_waiting", "Notifications not delivered yet", None),
            reloaded,
            registry,
        }
    }

    /// Counts a round that ended on one cluster (`done`, `failed`, `held`, `unreachable`, `stopped`), or that there was
    /// not (`suspended`, `busy`, `not-ready`).
    pub(crate) fn round(&self, sync: &str, cluster: &str, result: &str) {
        let labels = Round { sync: sync.to_owned(), cluster: cluster.to_owned(), result: result.to_owned() };
        self.rounds.with(labels, |count| _ = count.inc());
    }

    /// Records how long a round took on all clusters together, in seconds.
    pub(crate) fn round_took(&self, sync: &str, seconds: f64) {
        self.durations.with(Sync { sync: sync.to_owned() }, |histogram| histogram.observe(seconds));
    }

    /// Records that a round ended well on a cluster, in seconds since 1970.
    pub(crate) fn succeeded(&self, sync: &str, cluster: &str, at: f64) {
        let labels = Target { sync: sync.to_owned(), cluster: cluster.to_owned() };
        self.successes.with(labels, |time| _ = time.set(at));
    }

    /// Begins to count the time since a round last ended well, unless one is known; in seconds since 1970.
    pub(crate) fn watched(&self, sync: &str, cluster: &str, since: f64) {
        self.successes.begin(Target { sync: sync.to_owned(), cluster: cluster.to_owned() }, since);
    }

    /// Sets how many objects a round left in which state, such as `current`, `changed` or `held`, of each kind. What is
    /// not named is forgotten.
    pub(crate) fn objects(&self, sync: &str, cluster: &str, objects: &BTreeMap<(&'static str, &str), u32>) {
        let (sync, cluster) = (sync.to_owned(), cluster.to_owned());
        let fresh = objects.iter().map(|((state, kind), count)| {
            let (sync, cluster, state, kind) = (sync.clone(), cluster.clone(), (*state).to_owned(), (*kind).to_owned());
            (Objects { sync, cluster, state, kind }, *count)
        });
        self.objects.replace(|labels| labels.sync == sync && labels.cluster == cluster, fresh);
    }

    /// Sets how many units a round left in which state. States that are not named are forgotten.
    pub(crate) fn units(&self, sync: &str, cluster: &str, states: &BTreeMap<&'static str, u32>) {
        let fresh = states.iter().map(|(state, count)| {
            (Units { sync: sync.to_owned(), cluster: cluster.to_owned(), state: (*state).to_owned() }, *count)
        });
        self.units.replace(|labels| labels.sync == sync && labels.cluster == cluster, fresh);
    }

    /// Sets how many mistakes the source of a sync has for a cluster.
    pub(crate) fn problems(&self, sync: &str, cluster: &str, count: usize) {
        let labels = Target { sync: sync.to_owned(), cluster: cluster.to_owned() };
        self.problems.with(labels, |gauge| _ = gauge.set(i64::try_from(count).unwrap_or(i64::MAX)));
    }

    /// Counts changes that were made: `create`, `update`, `prune` and so on.
    pub(crate) fn changed(&self, sync: &str, cluster: &str, action: &str, count: u32) {
        let labels = Change { sync: sync.to_owned(), cluster: cluster.to_owned(), action: action.to_owned() };
        self.changes.with(labels, |counter| _ = counter.inc_by(u64::from(count)));
    }

    /// Sets what each guard holds after a round. Guards that are not named hold nothing, and are forgotten.
    pub(crate) fn holds(&self, sync: &str, cluster: &str, guards: &BTreeMap<&str, u32>) {
        let fresh = guards.iter().map(|(guard, count)| {
            (Hold { sync: sync.to_owned(), cluster: cluster.to_owned(), guard: (*guard).to_owned() }, *count)
        });
        self.holds.replace(|labels| labels.sync == sync && labels.cluster == cluster, fresh);
    }

    /// Records whether a sync is suspended.
    pub(crate) fn suspended(&self, sync: &str, is_suspended: bool) {
        self.suspended.with(Sync { sync: sync.to_owned() }, |gauge| _ = gauge.set(i64::from(is_suspended)));
    }

    /// Counts a poll of a source: `changed`, `unchanged` or the kind of failure.
    pub(crate) fn polled(&self, source: &str, result: &str) {
        let labels = Poll { source: source.to_owned(), result: result.to_owned() };
        self.polls.with(labels, |count| _ = count.inc());
    }

    /// Records that a source was read, in seconds since 1970.
    pub(crate) fn source_succeeded(&self, source: &str, at: f64) {
        self.source_successes.with(Source { source: source.to_owned() }, |time| _ = time.set(at));
    }

    /// Begins to count the time since a source was read, unless it was; in seconds since 1970.
    pub(crate) fn source_watched(&self, source: &str, since: f64) {
        self.source_successes.begin(Source { source: source.to_owned() }, since);
    }

    /// Counts notifications to a webhook: `delivered`, `failed`, `given-up` or `dropped`.
    pub(crate) fn notified(&self, webhook: &str, result: &str, count: usize) {
        let labels = Delivery { webhook: webhook.to_owned(), result: result.to_owned() };
        self.notifications.with(labels, |counter| _ = counter.inc_by(count as u64));
    }

    /// Sets how many notifications wait for a webhook.
    pub(crate) fn notifications_wait(&self, webhook: &str, count: usize) {
        let labels = Webhook { webhook: webhook.to_owned() };
        self.waiting.with(labels, |gauge| _ = gauge.set(i64::try_from(count).unwrap_or(i64::MAX)));
    }

    /// Records whether a cluster answered.
    pub(crate) fn cluster_up(&self, cluster: &str, up: bool) {
        self.clusters.with(Cluster { cluster: cluster.to_owned() }, |gauge| _ = gauge.set(i64::from(up)));
    }

    /// Records whether the configuration could be loaded, at the start and at each reload.
    pub(crate) fn reloaded(&self, successful: bool) {
        self.reloaded.set(i64::from(successful));
    }

    /// Drops every series of a sync that is no longer configured.
    pub(crate) fn forget_sync(&self, sync: &str) {
        self.forget_targets(|its, _| its == sync);
        self.durations.forget(|labels| labels.sync == sync);
        self.suspended.forget(|labels| labels.sync == sync);
    }

    /// Drops every series of a sync on a cluster that it no longer selects.
    pub(crate) fn forget_target(&self, sync: &str, cluster: &str) {
        self.forget_targets(|its, its_cluster| its == sync && its_cluster == cluster);
    }

    /// Drops every series of a cluster that is no longer configured.
    pub(crate) fn forget_cluster(&self, cluster: &str) {
        self.forget_targets(|_, its| its == cluster);
        self.clusters.forget(|labels| labels.cluster == cluster);
    }

    /// Drops every series of a source that is no longer configured.
    pub(crate) fn forget_source(&self, source: &str) {
        self.polls.forget(|labels| labels.source == source);
        self.source_successes.forget(|labels| labels.source == source);
    }

    /// Drops every series of a webhook that is no longer configured.
    pub(crate) fn forget_webhook(&self, webhook: &str) {
        self.notifications.forget(|labels| labels.webhook == webhook);
        self.waiting.forget(|labels| labels.webhook == webhook);
    }

    fn forget_targets(&self, gone: impl Fn(&str, &str) -> bool) {
        self.rounds.forget(|labels| gone(&labels.sync, &labels.cluster));
        self.successes.forget(|labels| gone(&labels.sync, &labels.cluster));
        self.objects.forget(|labels| gone(&labels.sync, &labels.cluster));
        self.units.forget(|labels| gone(&labels.sync, &labels.cluster));
        self.problems.forget(|labels| gone(&labels.sync, &labels.cluster));
        self.changes.forget(|labels| gone(&labels.sync, &labels.cluster));
        self.holds.forget(|labels| gone(&labels.sync, &labels.cluster));
    }

    /// Writes all metrics as `OpenMetrics` text, of type [`CONTENT_TYPE`].
    pub(crate) fn encode(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        text::encode(&mut page, &self.registry)?;
        Ok(page)
    }
}

#[cfg(test)]
mod tests;
