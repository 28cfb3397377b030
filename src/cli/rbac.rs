//! `gatewright rbac`.

use std::collections::BTreeSet;

use gatewright_engine::yaml;
use serde_json::{Value, json};

use super::choice::{Choice, Part};
use super::session::{Selection, Session};
use super::{Context, Failure, complain, emit, worst};
use crate::cluster::SYSTEM_NAMESPACE;
use crate::desired::rights::{Extent, RBAC, Request, documents};

/// Print the rights that a sync needs, as roles and bindings for `kubectl apply -f -`.
///
/// They are those for what the source says now: run it again when Gateways come in other namespaces, or of other kinds,
/// and keep the old roles until what they were for is gone. No cluster is asked; the names of custom resources in rules are
/// derived from their kinds. The namespaces of objects are not among what is printed, so that `kubectl delete` of it
/// deletes none; they are named on standard error, and must be there first. --read-only leaves out everything that
/// changes something; a plan cannot dry-run then what objects would become, and refuses those that exist.
///
/// Of a sync that acts as an account (`syncs.NAME.impersonate`) that account gets what is about objects, and the user the
/// right to act as it, and what is done for ourselves.
///
/// Exit codes: 0 printed, 1 the source cannot be read, 64 usage or configuration.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The sync.
    #[arg(value_name = "SYNC")]
    sync: String,
    #[command(flatten)]
    clusters: Choice,
    /// Only the rights to look.
    #[arg(long)]
    read_only: bool,
    /// The user that gets them, as the API server knows it.
    #[arg(long, value_name = "NAME", default_value = "gatewright", conflicts_with_all = ["group", "service_account"])]
    user: String,
    /// A group instead.
    #[arg(long, value_name = "NAME", conflicts_with = "service_account")]
    group: Option<String>,
    /// A service account instead.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = parse_account)]
    service_account: Option<(String, String)>,
}

fn parse_account(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("a service account is written as NAMESPACE/NAME".to_owned()),
    }
}

/// Returns the namespace that a role is for; ours is printed before it.
fn place(document: &Value) -> Option<&str> {
    let namespace = document.pointer("/metadata/namespace")?.as_str();
    namespace.filter(|namespace| document["kind"] == "Role" && *namespace != SYSTEM_NAMESPACE)
}

/// Runs the command.
pub(super) fn run(context: &Context, args: &Args) -> Result<u8, Failure> {
    let session = Session::open(context)?;
    let selection = Selection { sync: Some(args.sync.clone()), part: Part::of(args.clusters.clone()) };
    let ready = session.prepare(&selection, &session.any_installation()?)?;
    let subject = match (&args.group, &args.service_account) {
        (Some(group), _) => json!({"apiGroup": RBAC, "kind": "Group", "name": group}),
        (None, Some((namespace, name))) => {
            json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
        }
        (None, None) => json!({"apiGroup": RBAC, "kind": "User", "name": args.user}),
    };
    for prepared in &ready.rounds {
        let extent = Extent::of(&prepared.order.settings, args.read_only);
        let account = prepared.order.settings.impersonate.as_ref();
        let request = Request { sync: &args.sync, subject: &subject, extent, account };
        let mut renderings = Vec::new();
        for want in prepared.wanted.values() {
            renderings.push(session.block_on(want.rendering()).map_err(|error| Failure::of(&error))?);
        }
        let documents = documents(&request, renderings.iter().map(|rendering| &***rendering));
        for document in &documents {
            emit(&format!("---\n{}", yaml::to_string(document)));
        }
        let names: BTreeSet<&str> = documents.iter().filter_map(|document| place(document)).collect();
        if !names.is_empty() {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            complain(&format!(
                "gatewright: a role needs its namespace: make those first that are missing of {names}\n"
            ));
        }
    }
    Ok(worst(ready.codes))
}
