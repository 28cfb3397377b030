//! The process: the service manager, signals, logs, metrics and the local HTTP server.
//!
//! May use `state` and `basics`.

pub(crate) mod http;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod service;
pub(crate) mod telemetry;
