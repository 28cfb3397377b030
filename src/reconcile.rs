//! Rounds: what is wanted against what is there, on one cluster and on all clusters of a sync.
//!
//! [`fleet`] runs one round of a sync over all its clusters, `round` does it on one of them: it looks ([`observe`], with
//! `cache` from the last round), plans (the engine), writes the inventory ahead, carries out (`apply`) and waits
//! (`wait`). `drift` compares with a cluster that somebody else looks after, and writes nothing. `aliases` finds
//! clusters that answer by two names, `gone` those that are not configured any more, [`renamed`] those that have another
//! name now, [`depends`] says which syncs come before others, [`rollout`] says whose turn it is where one cluster gets
//! something before the others, `references` and `capacity` what a cluster lacks for it, [`places`] how many rounds hold objects at once, `gates` asks others whether a change is
//! good, `render_history` keeps what was rendered for a rollback, and `release`
//! hands what was adopted back to a deployer. What they hand to each other stands in [`model`]: an order for a fleet, and
//! for each cluster the settings of its round, which do not change, and the facts, which do.
//!
//! May use `webhooks` and all that stands below it in `ARCHITECTURE.md`.

mod addressed;
pub(crate) mod aliases;
pub(crate) mod apply;
pub mod breaker;
pub(crate) mod cache;
mod capacity;
pub mod depends;
pub(crate) mod drift;
pub(crate) mod events;
pub mod fleet;
mod gates;
pub(crate) mod gone;
pub(crate) mod health_snapshot;
mod located;
mod metadata;
pub mod model;
pub mod observe;
pub mod phase;
pub mod places;
mod references;
pub mod release;
pub mod renamed;
mod render_history;
pub(crate) mod requests;
pub mod rollout;
pub(crate) mod round;
pub(crate) mod wait;
