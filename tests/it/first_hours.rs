//! The first hours of three people with gatewright, each a script of documented commands.
//!
//! What they type stands here as they type it, in a shell; what they know is README and `docs`.

mod forty_clusters;
mod models;
mod nightly;

use serde_json::Value;

use crate::program::Run;

/// Returns the only document that a command has printed.
fn json_of(run: &Run) -> Value {
    serde_json::from_str(&run.out).expect("it is one document of JSON")
}
