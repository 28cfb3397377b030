//! The numbers that the daemon shows to Prometheus.
//!
//! Methods take plain texts and numbers, so that whoever knows something can say it. Labels name what the config file
//! names, never objects or revisions: the number of series grows with syncs times clusters and no further. What leaves
//! the configuration is forgotten, because a series that nobody writes any more keeps its last value for ever.

mod series;

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use series::{Forget, Labels, Seconds, Series};

/// The media type of [`Metrics::encode`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of the process.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    rounds: Series<Counter>,
    durations: Series<Histogram>,
    successes: Series<Seconds>,
    objects: Series<Gauge>,
    units: Series<Gauge>,
    problems: Series<Gauge>,
    changes: Series<Counter>,
    holds: Series<Gauge>,
    suspended: Series<Gauge>,
    polls: Series<Counter>,
    source_successes: Series<Seconds>,
    clusters: Series<Gauge>,
    unreachable: Series<Seconds>,
    notifications: Series<Counter>,
    waiting: Series<Gauge>,
    reloaded: Gauge,
    memory_short: Gauge,
    secrets: Series<Gauge>,
}

/// Registers a metric without labels.
fn gauge(registry: &mut Registry, name: &str, help: &str) -> Gauge {
    let gauge = Gauge::default();
    registry.register(name, help, gauge.clone());
    gauge
}

impl Metrics {
    /// Makes the metrics of this version; everything else is unknown until it is said.
    pub(crate) fn new(version: &str) -> Self {
        let mut registry = Registry::with_prefix("gatewright");
        let build = Info::new(vec![("version".to_owned(), version.to_owned())]);
        registry.register("build", "The running version", build);
        let help = "Whether the last attempt to load the configuration succeeded";
        let reloaded = gauge(&mut registry, "config_last_reload_successful", help);
        let help = "Whether memory runs short, so that there are fewer rounds at a time";
        let memory_short = gauge(&mut registry, "memory_short", help);
        let all = &mut registry;
        Self {
            rounds: Series::new(all, "rounds", "Rounds of a sync on a cluster, by how they ended"),
            durations: Series::of_rounds(
                all,
                "round_duration",
                "Time of rounds of a sync on all its clusters together",
            ),
            successes: Series::of_times(
                all,
                "last_success_timestamp",
                "When a round of a sync last ended well on a cluster",
            ),
            objects: Series::new(all, "objects", "Objects after the last round, by state and kind"),
            units: Series::new(all, "units", "Units after the last round, by state"),
            problems: Series::new(all, "problems", "Mistakes in the source of a sync"),
            changes: Series::new(all, "changes", "Changes made to objects, by action"),
            holds: Series::new(all, "holds", "What a guard holds until a person decides"),
            suspended: Series::new(all, "sync_suspended", "Whether a person has suspended a sync"),
            polls: Series::new(all, "source_polls", "Polls of a source, by result"),
            source_successes: Series::of_times(
                all,
                "source_last_success_timestamp",
                "When a source was last read, changed or not",
            ),
            clusters: Series::new(all, "cluster_up", "Whether a cluster answered when it was last asked"),
            unreachable: Series::of_times(
                all,
                "cluster_unreachable_since_timestamp",
                "Since when a cluster does not answer",
            ),
            notifications: Series::new(all, "notifications", "Notifications to a webhook, by what came of a try"),
            waiting: Series::new(all, "notifications_waiting", "Notifications not delivered yet"),
            reloaded,
            memory_short,
            secrets: Series::new(
                all,
                "cluster_secrets_last_read_successful",
                "Whether the last list of clusters of an entry of clusterSecrets could be read and used",
            ),
            registry,
        }
    }

    /// Counts a round that ended on one cluster (`done`, `failed`, `held`, `unreachable`, `stopped`), or that there was
    /// not (`suspended`, `busy`, `not-ready`).
    pub(crate) fn round(&self, sync: &str, cluster: &str, result: &str) {
        self.rounds.with(&[("sync", sync), ("cluster", cluster), ("result", result)], |count| _ = count.inc());
    }

    /// Records how long a round took on all clusters together, in seconds.
    pub(crate) fn round_took(&self, sync: &str, seconds: f64) {
        self.durations.with(&[("sync", sync)], |histogram| histogram.observe(seconds));
    }

    /// Records that a round ended well on a cluster, in seconds since 1970.
    pub(crate) fn succeeded(&self, sync: &str, cluster: &str, at: f64) {
        self.successes.with(&[("sync", sync), ("cluster", cluster)], |time| _ = time.set(at));
    }

    /// Begins to count the time since a round last ended well, unless one is known; in seconds since 1970.
    pub(crate) fn watched(&self, sync: &str, cluster: &str, since: f64) {
        self.successes.begin(&[("sync", sync), ("cluster", cluster)], since);
    }

    /// Sets how many objects a round left in which state, such as `current`, `changed` or `held`, of each kind. What is
    /// not named is forgotten.
    pub(crate) fn objects(&self, sync: &str, cluster: &str, objects: &BTreeMap<(&'static str, &str), u32>) {
        let fresh = objects.iter().map(|((state, kind), count)| ([("state", *state), ("kind", *kind)], *count));
        self.objects.replace(&[("sync", sync), ("cluster", cluster)], fresh);
    }

    /// Sets how many units a round left in which state. States that are not named are forgotten.
    pub(crate) fn units(&self, sync: &str, cluster: &str, states: &BTreeMap<&'static str, u32>) {
        let fresh = states.iter().map(|(state, count)| ([("state", *state)], *count));
        self.units.replace(&[("sync", sync), ("cluster", cluster)], fresh);
    }

    /// Sets how many mistakes the source of a sync has for a cluster.
    pub(crate) fn problems(&self, sync: &str, cluster: &str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.problems.with(&[("sync", sync), ("cluster", cluster)], |gauge| _ = gauge.set(count));
    }

    /// Counts changes that were made: `create`, `update`, `prune` and so on.
    pub(crate) fn changed(&self, sync: &str, cluster: &str, action: &str, count: u32) {
        let labels = [("sync", sync), ("cluster", cluster), ("action", action)];
        self.changes.with(&labels, |counter| _ = counter.inc_by(u64::from(count)));
    }

    /// Sets what each guard holds after a round. Guards that are not named hold nothing, and are forgotten.
    pub(crate) fn holds(&self, sync: &str, cluster: &str, guards: &BTreeMap<&str, u32>) {
        let fresh = guards.iter().map(|(guard, count)| ([("guard", *guard)], *count));
        self.holds.replace(&[("sync", sync), ("cluster", cluster)], fresh);
    }

    pub(crate) fn suspended(&self, sync: &str, is_suspended: bool) {
        self.suspended.with(&[("sync", sync)], |gauge| _ = gauge.set(i64::from(is_suspended)));
    }

    /// Counts a poll of a source: `changed`, `unchanged` or the kind of failure.
    pub(crate) fn polled(&self, source: &str, result: &str) {
        self.polls.with(&[("source", source), ("result", result)], |count| _ = count.inc());
    }

    /// Records that a source was read, in seconds since 1970.
    pub(crate) fn source_succeeded(&self, source: &str, at: f64) {
        self.source_successes.with(&[("source", source)], |time| _ = time.set(at));
    }

    /// Begins to count the time since a source was read, unless it was; in seconds since 1970.
    pub(crate) fn source_watched(&self, source: &str, since: f64) {
        self.source_successes.begin(&[("source", source)], since);
    }

    /// Counts notifications to a webhook: `delivered`, `failed`, `given-up` or `dropped`.
    pub(crate) fn notified(&self, webhook: &str, result: &str, count: usize) {
        self.notifications.with(&[("webhook", webhook), ("result", result)], |its| _ = its.inc_by(count as u64));
    }

    pub(crate) fn notifications_wait(&self, webhook: &str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.waiting.with(&[("webhook", webhook)], |gauge| _ = gauge.set(count));
    }

    pub(crate) fn cluster_up(&self, cluster: &str, up: bool) {
        self.clusters.with(&[("cluster", cluster)], |gauge| _ = gauge.set(i64::from(up)));
    }

    /// Begins to count the time since a cluster does not answer, in seconds since 1970; ends that with `None`.
    pub(crate) fn unreachable(&self, cluster: &str, since: Option<f64>) {
        match since {
            Some(since) => self.unreachable.begin(&[("cluster", cluster)], since),
            None => self.unreachable.forget(&[("cluster", cluster)]),
        }
    }

    /// Records whether the configuration could be loaded, at the start and at each reload.
    pub(crate) fn reloaded(&self, successful: bool) {
        self.reloaded.set(i64::from(successful));
    }

    /// Records whether memory runs short.
    pub(crate) fn memory_is_short(&self, is_short: bool) {
        self.memory_short.set(i64::from(is_short));
    }

    /// Records whether the clusters of an entry of `clusterSecrets` could be read and used.
    pub(crate) fn cluster_secrets(&self, name: &str, successful: bool) {
        self.secrets.with(&[("cluster_secrets", name)], |gauge| _ = gauge.set(i64::from(successful)));
    }

    /// Drops every series that has these labels: of a sync, a cluster, a source, a webhook or an entry of `clusterSecrets`
    /// that is no longer configured, or of a sync on a cluster that it no longer selects.
    pub(crate) fn forget(&self, labels: &Labels<'_>) {
        let counts: [&dyn Forget; 4] = [&self.rounds, &self.changes, &self.polls, &self.notifications];
        let states: [&dyn Forget; 4] = [&self.objects, &self.units, &self.problems, &self.holds];
        let others: [&dyn Forget; 4] = [&self.suspended, &self.clusters, &self.unreachable, &self.waiting];
        let times: [&dyn Forget; 4] = [&self.durations, &self.successes, &self.source_successes, &self.secrets];
        [&counts[..], &states, &others, &times].into_iter().flatten().for_each(|series| series.forget(labels));
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
