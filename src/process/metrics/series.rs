//! One metric for each label set, and forgetting them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Registry, Unit};

use crate::basics::lock::lock;

/// Upper bounds for the duration of a round: from a quiet one on one cluster to one that waits for a large model.
const ROUND_SECONDS: [f64; 14] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0];

/// A moment, in seconds since 1970.
pub(super) type Seconds = Gauge<f64, AtomicU64>;

/// Labels with their values, in the order in which they are written.
pub(crate) type Labels<'a> = [(&'static str, &'a str)];

type Owned = Vec<(&'static str, String)>;

/// One metric for each label set.
///
/// The library's own family cannot tell its label sets, which forgetting needs, and writes them in another order each
/// time.
#[derive(Debug)]
pub(super) struct Series<M> {
    metrics: Arc<Mutex<BTreeMap<Owned, M>>>,
    /// Makes the metric of a label set that is seen for the first time.
    fresh: fn() -> M,
}

pub(super) trait Forget {
    /// Drops the metrics of all label sets that have these labels.
    fn forget(&self, labels: &Labels<'_>);
}

impl<M> Series<M> {
    /// Changes one metric, which is made if it is not there.
    pub(super) fn with(&self, labels: &Labels<'_>, change: impl FnOnce(&M)) {
        change(lock(&self.metrics).entry(owned(labels)).or_insert_with(self.fresh));
    }
}

impl<M: EncodeMetric + TypedMetric + fmt::Debug + Send + 'static> Series<M> {
    pub(super) fn new(registry: &mut Registry, name: &str, help: &str) -> Self
    where
        M: Default,
    {
        Self::with_fresh(M::default, registry, (name, help), None)
    }

    fn with_fresh(fresh: fn() -> M, registry: &mut Registry, (name, help): (&str, &str), unit: Option<Unit>) -> Self {
        let metrics = Arc::default();
        let shared = Self { metrics: Arc::clone(&metrics), fresh };
        match unit {
            Some(unit) => registry.register_with_unit(name, help, unit, shared),
            None => registry.register(name, help, shared),
        }
        Self { metrics, fresh }
    }
}

impl Series<Histogram> {
    /// Makes a histogram of how long rounds take, and registers it.
    pub(super) fn of_rounds(registry: &mut Registry, name: &str, help: &str) -> Self {
        Self::with_fresh(|| Histogram::new(ROUND_SECONDS), registry, (name, help), Some(Unit::Seconds))
    }
}

impl Series<Seconds> {
    /// Makes the metric of a moment and registers it.
    pub(super) fn of_times(registry: &mut Registry, name: &str, help: &str) -> Self {
        Self::with_fresh(Seconds::default, registry, (name, help), Some(Unit::Seconds))
    }

    /// Sets a moment where none is known.
    pub(super) fn begin(&self, labels: &Labels<'_>, value: f64) {
        lock(&self.metrics).entry(owned(labels)).or_insert_with(|| {
            let seconds = Seconds::default();
            seconds.set(value);
            seconds
        });
    }
}

impl Series<Gauge> {
    /// Puts new values in the place of all that begin with these labels, at once for whoever reads.
    pub(super) fn replace<'a, const N: usize>(
        &self,
        common: &Labels<'_>,
        new: impl Iterator<Item = ([(&'static str, &'a str); N], u32)>,
    ) {
        let mut metrics = lock(&self.metrics);
        // Those that begin with the same labels stand beside each other.
        let common_labels = owned(common);
        let of_them =
            metrics.range(common_labels.clone()..).take_while(|(labels, _)| labels.starts_with(&common_labels));
        for labels in of_them.map(|(labels, _)| labels.clone()).collect::<Vec<_>>() {
            metrics.remove(&labels);
        }
        for (labels, value) in new {
            metrics.entry(owned(&[common, &labels].concat())).or_default().set(i64::from(value));
        }
    }
}

impl<M> Forget for Series<M> {
    fn forget(&self, labels: &Labels<'_>) {
        lock(&self.metrics).retain(|its, _| !has(its, labels));
    }
}

fn owned(labels: &Labels<'_>) -> Owned {
    labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
}

fn has(its: &Owned, labels: &Labels<'_>) -> bool {
    labels.iter().all(|label| its.iter().any(|(name, value)| (*name, value.as_str()) == *label))
}

impl<M: EncodeMetric + TypedMetric> EncodeMetric for Series<M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, metric) in lock(&self.metrics).iter() {
            metric.encode(encoder.encode_family(labels)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        lock(&self.metrics).is_empty()
    }
}
