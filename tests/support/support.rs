//! What tests of several areas need, beside the test cluster.

pub(crate) mod git_server;
pub(crate) mod receiver;

pub(crate) use crate::cluster::{binaries, process};
