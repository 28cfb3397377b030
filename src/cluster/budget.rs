//! The budget of memory of one cluster: how many bytes of its answers this process holds at once.
//!
//! An API server that is broken, or that somebody else has written, may send a list without an end or one object that is
//! larger than this host's memory. What is counted are the bytes of answers, from the first one that arrives: those that are
//! being read, and of lists all pages, which a round keeps until it is over. What is over the budget ends the round of that
//! cluster, with an error, and takes nothing from any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::basics::size::Size;

tokio::task_local! {
    /// The bytes of the lists of the round that is under way.
    static ROUND: Arc<AtomicU64>;
}

/// The bytes that a page counts for at least: one that is empty and names another one after it costs something, too.
const LEAST: u64 = 4096;

/// Counts all lists that some work reads together, because it holds them together.
pub(crate) async fn together<T>(work: impl Future<Output = T>) -> T {
    ROUND.scope(Arc::default(), work).await
}

/// The budget of a cluster.
#[derive(Debug)]
pub(crate) struct Budget {
    /// The most bytes.
    limit: Size,
    /// The setting that says so.
    setting: String,
    /// The bytes of answers that are being read.
    reading: AtomicU64,
}

/// There is no memory for more of the answers of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its answers take {bytes} bytes or more, and {limit} is the limit of {setting}")]
pub(crate) struct OverBudget {
    /// The bytes so far.
    pub bytes: u64,
    /// The most.
    pub limit: Size,
    /// The setting that says so.
    pub setting: String,
}

impl Budget {
    /// Allows so much; `setting` says where that stands.
    pub(crate) fn new(limit: Size, setting: String) -> Self {
        Self { limit, setting, reading: AtomicU64::new(0) }
    }

    fn check(&self, bytes: u64) -> Result<(), OverBudget> {
        let over = || OverBudget { bytes, limit: self.limit, setting: self.setting.clone() };
        if bytes > self.limit.0 { Err(over()) } else { Ok(()) }
    }
}

/// The bytes of an answer that is being read, for as long as it is there.
#[derive(Debug)]
pub(crate) struct Reading {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Reading {
    /// Begins with nothing.
    pub(crate) fn of(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Counts what has arrived.
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), OverBudget> {
        let bytes = bytes as u64;
        self.bytes += bytes;
        self.budget.check(self.budget.reading.fetch_add(bytes, Ordering::Relaxed) + bytes)
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.budget.reading.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The bytes of a list, beside those of the other lists of the same round.
#[derive(Debug)]
pub(crate) struct Listing {
    budget: Arc<Budget>,
    all: Arc<AtomicU64>,
    bytes: u64,
}

impl Listing {
    /// Begins a list. Outside of a round it counts alone.
    pub(crate) fn of(budget: &Arc<Budget>) -> Self {
        let all = ROUND.try_with(Arc::clone).unwrap_or_default();
        Self { budget: Arc::clone(budget), all, bytes: 0 }
    }

    /// Counts a page that is kept.
    pub(crate) fn add(&mut self, page: usize) -> Result<(), OverBudget> {
        let bytes = (page as u64).max(LEAST);
        self.bytes += bytes;
        self.budget.check(self.all.fetch_add(bytes, Ordering::Relaxed) + bytes)
    }

    /// Begins again: the pages so far are dropped.
    pub(crate) fn again(&mut self) {
        self.all.fetch_sub(std::mem::take(&mut self.bytes), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(limit: u64) -> Arc<Budget> {
        Arc::new(Budget::new(Size(limit), "clusters.eu.kubeconfig.maxBytes".to_owned()))
    }

    #[test]
    fn what_is_read_at_once_counts_as_long_as_it_is_there() {
        let budget = budget(100);
        let (mut one, mut other) = (Reading::of(&budget), Reading::of(&budget));
        assert!(one.add(60).is_ok() && other.add(40).is_ok());
        let over = other.add(1).expect_err("it is one too many");
        assert_eq!(
            over.to_string(),
            "its answers take 101 bytes or more, and 100 is the limit of clusters.eu.kubeconfig.maxBytes"
        );
        drop(one);
        assert!(other.add(59).is_ok());
    }

    #[tokio::test]
    async fn lists_of_a_round_count_together() {
        let budget = budget(10 * LEAST);
        let list = async || {
            let mut listing = Listing::of(&budget);
            (0..4).try_for_each(|_| listing.add(1)).map(|()| listing)
        };
        assert!(list().await.is_ok() && list().await.is_ok() && list().await.is_ok(), "each counts alone");
        let in_a_round = together(async {
            let mut first = list().await.expect("there is room");
            let second = list().await.is_ok();
            first.again();
            (second, list().await.is_ok(), list().await.is_ok())
        });
        assert_eq!(in_a_round.await, (true, true, false));
    }
}
