//! gatewright: the daemon and its command line, around the engine.
//!
//! In reading order: [`config`] says what is wanted where, [`source`] yields snapshots, [`cluster`] is what they are
//! applied to. [`rendering`] is what a sync wants on each of them. [`fleet`] runs one round over all clusters of a sync and
//! [`round`] one on a single cluster: it looks ([`observe`], with [`notes`] from the last round), plans (the engine),
//! writes the inventory ahead ([`ledger`]), carries out ([`apply`]), which leaves behind what is needed to take it back
//! ([`archive`]), and waits ([`mod@wait`]). [`report`] is what came of it. [`daemon`] repeats rounds on a [`schedule`],
//! [`cli`] runs them on request.

pub mod apply;
pub mod approvals;
pub mod archive;
pub mod assemble;
pub mod capabilities;
pub mod cases;
pub mod claims;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod custody;
pub mod daemon;
pub mod duration;
pub mod feed;
pub mod fleet;
pub mod http;
pub mod inert;
pub mod journal;
pub mod ledger;
pub mod metrics;
pub mod notes;
pub mod observe;
pub mod paths;
pub mod plan_file;
pub mod private;
pub mod redact;
pub mod rendering;
pub mod report;
pub mod rights;
pub mod rivals;
pub mod round;
pub mod schedule;
pub mod seal;
pub mod service;
pub mod size;
pub mod source;
pub mod state;
pub mod survey;
pub mod suspension;
pub mod telemetry;
pub mod timekeeping;
pub mod wait;
pub mod webhooks;
pub mod witness;
