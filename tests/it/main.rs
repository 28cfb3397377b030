//! Tests of the whole: the program and the library on real API servers, git servers, Envoy and systemd's tools.
//!
//! One binary, so that servers are shared; a module that is not listed here fails `tidy`.

#[path = "../support/cluster.rs"]
mod cluster;

#[path = "../support/support.rs"]
mod support;

mod cluster_kube;
mod commands;
mod config;
mod crash;
mod daemon;
mod envoy;
mod errors;
mod explain;
mod golden;
mod ownership;
mod program;
mod properties;
mod quickstart;
mod rounds;
mod source;
mod systemd;
mod tidy;
mod tutorial;
