//! Adoption, step by step, as docs/kgateway.md tells it: each file is written, each command run, and what is seen is there.

use std::fs;

use serde_json::json;

use super::{scaled, with_parameters};
use crate::cluster::ApiServer;
use crate::cluster::binaries::in_repository;
use crate::ownership::site::Site;
use crate::program::{Desk, Run};
use crate::support::kgateway::{Addresses, Controller, Release, identities};

const HEADING: &str = "### Adoption, step by step";

/// The address of each Gateway.
const GATEWAYS: [(&str, &str); 2] = [("edge", "192.0.2.10"), ("shop", "192.0.2.11")];

/// A fenced block of a page: a file with its text, or commands with what is seen of each.
enum Block {
    File(String, String),
    Commands(Vec<(String, Vec<String>)>),
}

/// Reads the fences of the section.
fn blocks() -> Vec<Block> {
    let page = fs::read_to_string(in_repository("docs/kgateway.md")).expect("the page is there");
    let section = page.split_once(HEADING).expect("the page has the section").1;
    let mut lines = section.split("\n## ").next().unwrap_or_default().lines();
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        let Some((indent, kind)) = line.split_once("```") else { continue };
        let plain = lines.by_ref().map(|line| line.strip_prefix(indent).unwrap_or(line));
        let body: Vec<&str> = plain.take_while(|line| *line != "```").collect();
        blocks.push(match (kind, body[0].strip_prefix("# ")) {
            ("yaml", Some(name)) => Block::File(name.to_owned(), body[1..].join("\n")),
            _ => Block::Commands(commands(&body)),
        });
    }
    blocks
}

fn commands(lines: &[&str]) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    for line in lines {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push((command.to_owned(), Vec::new())),
            None => commands.last_mut().expect("a command comes first").1.push((*line).to_owned()),
        }
    }
    commands
}

/// Says that a run showed these lines, in this order; `…` stands for what is left out.
fn assert_seen(command: &str, run: &Run, expected: &[String]) {
    let all = format!("{}{}", run.out, run.err);
    let mut lines = all.lines().map(str::trim);
    for line in expected.iter().map(|line| line.trim()).filter(|line| *line != "…") {
        let is_it = |seen: &str| seen == line || line.strip_suffix('…').is_some_and(|start| seen.starts_with(start));
        assert!(lines.any(is_it), "{command} does not show {line:?}:\n{all}");
    }
}

/// Returns the site with which the section begins.
fn provisioned() -> (Site, Controller) {
    let server: &'static ApiServer = Box::leak(Box::new(ApiServer::with_controllers()));
    server.install_gateway_api();
    server.install_deployers();
    server.kubectl_ok(&["create", "namespace", "infra"]);
    let site = Site { desk: Desk::empty("gatewright.yaml"), name: "infra".to_owned(), server };
    for (name, parameters) in [("edge", scaled()), ("shop", json!({"kube": {}}))] {
        let [own, gateway] = with_parameters(&site, name, &parameters);
        for (file, object) in [(format!("{name}-parameters"), own), (name.to_owned(), gateway)] {
            site.create(&object);
            site.spec(&file, &object.to_string());
        }
    }
    let controller = Controller::start(server, Release::kgateway("v2.3.2"), &["infra"]);
    controller.settle();
    for (name, address) in GATEWAYS {
        server.give_ingress("infra", name, &[address]);
        site.kubectl(&["rollout", "status", &format!("deployment/{name}"), "--timeout=60s"]);
    }
    controller.settle();
    (site, controller)
}

#[test]
fn adoption_goes_step_by_step_as_the_page_tells_it() {
    let (site, controller) = provisioned();
    let watches = GATEWAYS.map(|(name, address)| (address, Addresses::watch(site.server, "infra", name)));
    let objects = || identities(site.server, "infra");
    let before = objects();
    let mut newest = String::new();
    for block in blocks() {
        let commands = match block {
            Block::File(name, text) => {
                site.desk.write(&name, &text);
                continue;
            }
            Block::Commands(commands) => commands,
        };
        for (command, seen) in commands {
            let words = command.split_whitespace().map(|word| if word == "RUN" { newest.as_str() } else { word });
            let words: Vec<&str> = words.collect();
            assert_eq!(words[0], "gatewright", "{command}");
            let run = site.run(&words[1..]);
            assert_seen(&command, &run, &seen);
            if let Some(name) = run.out.lines().rev().find_map(|line| line.strip_prefix("run ")) {
                newest = name.to_owned();
            }
            controller.settle();
            assert_eq!(objects(), before, "{command}");
        }
    }
    assert_eq!(controller.deletions(), []);
    for (address, watch) in watches {
        assert_eq!(watch.seen(), [[address.to_owned()]]);
    }
    let shop = site.get("gateway/shop");
    assert_eq!(shop["spec"]["infrastructure"]["parametersRef"]["name"], "shop", "it went back");
}
