//! Adoption, step by step, as docs/kgateway.md tells it: each file is written, each command run, and what is seen is there.

use serde_json::json;

use super::{scaled, with_parameters};
use crate::cluster::ApiServer;
use crate::ownership::site::Site;
use crate::pages::{Block, assert_seen, section};
use crate::program::Desk;
use crate::support::kgateway::{Addresses, Controller, Release, identities};

const HEADING: &str = "### Adoption, step by step";

/// The address of each Gateway.
const GATEWAYS: [(&str, &str); 2] = [("edge", "192.0.2.10"), ("shop", "192.0.2.11")];

/// Returns the site with which the section begins: kgateway v2.3.2 provisions `edge` and `shop` in `infra`.
pub(crate) fn provisioned() -> (Site, Controller) {
    let (server, guard) = ApiServer::for_one_test();
    server.install_gateway_api();
    server.install_deployers();
    server.kubectl_ok(&["create", "namespace", "infra"]);
    let site = Site { desk: Desk::empty("gatewright.yaml"), name: "infra".to_owned(), server, _guard: Some(guard) };
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
        site.kubectl(&["rollout", "status", &format!("deployment/{name}"), "--timeout=300s"]);
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
    for block in section("docs/kgateway.md", HEADING) {
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
