//! Plan and apply by the library alone, to a cluster in memory: `cargo run --example plan_and_apply` prints
//!
//! ```text
//! two Gateways:
//! + create ServiceAccount infra/edge
//! + create ConfigMap infra/edge
//! + create Service infra/edge
//! + create Deployment infra/edge
//! + create ServiceAccount infra/shop
//! + create ConfigMap infra/shop
//! + create Service infra/shop
//! + create Deployment infra/shop
//! plan: 8 to create, 0 unchanged
//!
//! the same again:
//! plan: no changes, 8 unchanged
//!
//! one of them misspelled:
//! ! ConfigMap infra/shop: held by guard withdrawal until that is approved
//! …
//! held by guard withdrawal: …
//!     correct the source; if all of this is to be deleted, approve it
//!     token: 3mmh-kf3d-yn4k
//! plan: no changes, 4 unchanged, 4 refused
//!
//! one of them gone:
//! - prune Deployment infra/shop
//! - prune Service infra/shop
//! - prune ConfigMap infra/shop
//! - prune ServiceAccount infra/shop
//! plan: 4 to prune, 4 unchanged
//!
//! left: 4 objects, 4 in the inventory
//! ```

use std::error::Error;
use std::io::{self, Write};

use gatewright_engine::inventory::Inventory;
use gatewright_engine::marks::Marker;
use gatewright_engine::memory::Cluster;
use gatewright_engine::pack::Packs;
use gatewright_engine::plan::policies::Policies;
use gatewright_engine::plan::{Plan, plan};
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, render};
use serde_json::Value;

const EDGE: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec: {gatewayClassName: kgateway, listeners: [{name: http, port: 8080, protocol: HTTP}]}
";

const SHOP: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shop, namespace: infra}
spec: {gatewayClassName: kgateway, listeners: [{name: http, port: 8080, protocol: HTTP}]}
";

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout())
}

pub(crate) fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let packs = Packs::new(vec![gatewright_packs::pack("kgateway", &Value::Null)?])?;
    // The installation is a random text, made once: by it our objects are told from those of another installation.
    let policies = Policies::new(Marker::new("0123456789abcdef", "edge"));
    let planned = |files: &[(&str, &str)], cluster: &Cluster, owned: &Inventory| -> Plan {
        let rendering = render(&Tree::from_iter(files.iter().copied()), &packs, &Options::default());
        plan(&rendering.marked(&policies.marker), &cluster.observed(), owned, &policies)
    };

    let mut cluster = Cluster::new("cluster-1");
    let both = [("edge.yaml", EDGE), ("shop.yaml", SHOP)];
    let first = planned(&both, &cluster, &Inventory::default());
    writeln!(out, "two Gateways:\n{first}\n")?;
    let owned = cluster.apply(&first)?;
    writeln!(out, "the same again:\n{}\n", planned(&both, &cluster, &owned))?;

    // A slip is no withdrawal: what may have been meant as a spec that is gone holds its deletion.
    let typo = SHOP.replace("kind: Gateway", "kind: Gatewya");
    let slip = [("edge.yaml", EDGE), ("shop.yaml", typo.as_str())];
    writeln!(out, "one of them misspelled:\n{}\n", planned(&slip, &cluster, &owned))?;

    let last = planned(&both[..1], &cluster, &owned);
    writeln!(out, "one of them gone:\n{last}\n")?;
    let owned = cluster.apply(&last)?;
    writeln!(out, "left: {} objects, {} in the inventory", cluster.objects().len(), owned.entries.len())?;
    Ok(())
}
