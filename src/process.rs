//! The process: the service manager, signals, logs, metrics and the local HTTP server.
//!
//! May use `state` and `basics`.

pub mod http;
pub mod metrics;
pub mod service;
pub mod telemetry;
