//! One metric for each label set, and forgetting them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::{Registry, Unit};

/// Upper bounds for the duration of a round: from a quiet one on one cluster to one that waits for a large model.
const ROUND_SECONDS: [f64; 14] = [0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0];

/// A moment, in seconds since 1970.
pub(super) type Seconds = Gauge<f64, AtomicU64>;

/// One metric for each label set.
///
/// The library's own family cannot tell its label sets, which forgetting needs, and writes them in another order each
/// time.
#[derive(Debug)]
pub(super) struct Series<L, M>(Arc<Mutex<BTreeMap<L, M>>>);

/// A value that can be made for a label set that is seen for the first time.
pub(super) trait Fresh {
    fn fresh() -> Self;
}

impl Fresh for Counter {
    fn fresh() -> Self {
        Self::default()
    }
}

impl Fresh for Gauge {
    fn fresh() -> Self {
        Self::default()
    }
}

impl Fresh for Seconds {
    fn fresh() -> Self {
        Self::default()
    }
}

impl Fresh for Histogram {
    fn fresh() -> Self {
        Self::new(ROUND_SECONDS)
    }
}

impl<L, M> Series<L, M> {
    /// The map is whole after each statement, so a panic elsewhere leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<L, M>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<L, M> Series<L, M>
where
    L: Ord + EncodeLabelSet + fmt::Debug + Send + 'static,
    M: Fresh + EncodeMetric + TypedMetric + fmt::Debug + Send + 'static,
{
    /// Makes the metric and registers it.
    pub(super) fn new(registry: &mut Registry, name: &str, help: &str, unit: Option<Unit>) -> Self {
        let shared = Arc::default();
        match unit {
            Some(unit) => registry.register_with_unit(name, help, unit, Self(Arc::clone(&shared))),
            None => registry.register(name, help, Self(Arc::clone(&shared))),
        }
        Self(shared)
    }

    /// Changes one metric, which is made if it is not there.
    pub(super) fn with(&self, labels: L, change: impl FnOnce(&M)) {
        change(self.lock().entry(labels).or_insert_with(M::fresh));
    }

    /// Drops the metrics of all label sets that are gone.
    pub(super) fn forget(&self, gone: impl Fn(&L) -> bool) {
        self.lock().retain(|labels, _| !gone(labels));
    }
}

impl<L: Ord> Series<L, Seconds> {
    /// Sets a moment where none is known.
    pub(super) fn begin(&self, labels: L, value: f64) {
        self.lock().entry(labels).or_insert_with(|| {
            let seconds = Seconds::default();
            seconds.set(value);
            seconds
        });
    }
}

impl<L: Ord> Series<L, Gauge> {
    /// Puts new values in the place of old ones, at once for whoever reads.
    pub(super) fn replace(&self, old: impl Fn(&L) -> bool, new: impl Iterator<Item = (L, u32)>) {
        let mut series = self.lock();
        series.retain(|labels, _| !old(labels));
        for (labels, value) in new {
            series.entry(labels).or_default().set(i64::from(value));
        }
    }
}

impl<L, M> EncodeMetric for Series<L, M>
where
    L: EncodeLabelSet,
    M: EncodeMetric + TypedMetric,
{
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for (labels, metric) in self.lock().iter() {
            metric.encode(encoder.encode_family(labels)?)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        M::TYPE
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}
