//! Tests of the whole: the program and the library on real API servers, git servers, Envoy and systemd's tools.
//!
//! One binary, so that servers are shared; a module that is not listed here fails `tidy`.

#[path = "../support/cluster.rs"]
mod cluster;

#[path = "../support/support.rs"]
mod support;

#[path = "../support/cases.rs"]
#[expect(dead_code, reason = "what is compared is for the conformance test alone")]
mod cases;

mod accepted;
mod accounts;
mod admission;
mod aliases;
mod audit_log;
mod blame;
mod browser;
mod budget;
mod chart;
mod check_fix;
mod check_forms;
mod check_text;
mod check_watch;
mod choice;
mod cluster_kube;
mod cluster_secrets;
mod cluster_secrets_members;
mod clusters;
mod commands;
mod config;
mod conflicts;
mod crash;
mod daemon;
mod dependencies;
mod deployer;
mod diff;
mod directories;
mod drift;
mod dynamo;
mod envoy;
mod errors;
mod events;
mod explain;
mod faults;
mod first_contact;
mod first_hours;
mod flags;
mod fleet;
mod gates;
mod generate;
mod golden;
mod guards;
mod health;
mod hosts;
mod inference_examples;
mod init;
mod intruders;
mod inventory;
mod kgateway;
mod kinds;
mod kserve;
mod library;
mod links;
mod lost_names;
mod lsp;
mod maintenance;
mod manuals;
mod merging;
mod monitoring;
mod moves;
mod naming;
mod needed;
mod no_change;
mod notifications;
mod overlays;
mod own_pack;
mod ownership;
mod pack_overrides;
mod packs;
mod pages;
mod pickers;
mod plugins;
mod program;
mod properties;
mod quickstart;
mod renames;
mod reports;
mod rights;
mod rollback;
mod rollout;
mod rounds;
mod rules;
mod saved_plans;
mod schemas;
mod secrets;
mod siblings;
mod simulate;
mod source;
mod specs;
mod strategic_merge;
mod systemd;
mod ten;
mod terminal;
mod tidy;
mod trial;
mod tutorial;
mod unclaimed;
mod undo;
mod unreachable;
mod values;
mod views;
mod watching;
mod webhook_forms;
mod withdrawal;
