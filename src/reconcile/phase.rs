//! The phases of a round on a cluster, for whoever waits for it.

use std::fmt;
use std::sync::Arc;

use gatewright_engine::object::ObjectId;
use gatewright_engine::text::count;

use crate::reconcile::model::Unhealthy;

/// A phase that may take long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// This many changes are sent.
    Applying(usize),
    /// An object is waited for that is not healthy, and as many others.
    Waiting {
        /// The first of them, by name.
        object: ObjectId,
        /// The reason: what is wrong with it.
        why: String,
        /// The number of the others.
        others: usize,
    },
    /// Gates are asked whether they agree.
    Gates,
    /// Other clusters come first.
    Turn,
    /// The round is over.
    Over,
}

impl Phase {
    /// Returns the phase in which objects are waited for, if any is.
    pub(super) fn of(unhealthy: &Unhealthy) -> Option<Self> {
        let (object, why) = unhealthy.first_key_value()?;
        Some(Self::Waiting { object: object.clone(), why: why.clone(), others: unhealthy.len() - 1 })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applying(number) => write!(f, "applies {}", count(*number, "change")),
            Self::Waiting { object, why, others: 0 } => write!(f, "{object}: {why}"),
            Self::Waiting { object, why, others } => write!(f, "{object}: {why}; and {others} more"),
            Self::Gates => f.write_str("asks its gates"),
            Self::Turn => f.write_str("waits for its turn"),
            Self::Over => f.write_str("is through"),
        }
    }
}

/// Told of each phase that a round begins on a cluster, by the name of the cluster.
pub type Listener = dyn Fn(&str, Phase) + Send + Sync;

/// Tells of the phases on one cluster, if anybody listens.
#[derive(Clone, Default)]
pub struct Teller(Option<(Arc<Listener>, String)>);

impl Teller {
    /// Returns one for a cluster.
    pub(super) fn new(listener: Option<&Arc<Listener>>, cluster: &str) -> Self {
        Self(listener.map(|listener| (Arc::clone(listener), cluster.to_owned())))
    }

    /// Tells that a phase begins.
    pub(super) fn tell(&self, phase: Phase) {
        if let Some((listener, cluster)) = &self.0 {
            listener(cluster, phase);
        }
    }
}
