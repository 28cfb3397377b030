//! Inventories: what a sync owns on a cluster, and whether that list is still the one that was written.
//!
//! [`store`] reads and writes them, `audit` detects tampering, `hmac` signs their entries, [`maintenance`] shows,
//! repairs and claims them and finds orphans.
//!
//! May use `schedule` and all that stands below it in `ARCHITECTURE.md`.

pub(crate) mod audit;
pub(crate) mod hmac;
pub mod maintenance;
pub mod store;
