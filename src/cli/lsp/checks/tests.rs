use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::cli::lsp::setup::Setup;
use crate::cli::lsp::workspace::Workspace;
use crate::config::packs::{build, folders};

/// What only everything shows: objects that stand in, or are rendered from, two places.
const OF_ALL: [&str; 3] = ["the same object stands at", "is rendered twice", "collide"];

fn setup() -> Arc<Setup> {
    let folders = folders(&gatewright_packs::all().into(), []).expect("there are none");
    Arc::new(Setup::new(None, Arc::new(build(None, &folders).expect("they load"))))
}

fn workspace(root: PathBuf, setup: &Arc<Setup>) -> Workspace {
    let mut workspace = Workspace::of(Vec::new());
    (workspace.root, workspace.setup) = (Some(root), Some(Arc::clone(setup)));
    workspace.load();
    workspace
}

/// Opens a file, and returns what is checked at once.
fn job(workspace: &mut Workspace, path: &str) -> Option<Job> {
    let (uri, text) = (workspace.uri(path)?, workspace.text(path)?);
    workspace.open(uri, 1, text.to_string());
    workspace.next()
}

/// Of each file of each case, what is found at once is what is found with everything.
#[test]
fn what_is_found_at_once_is_what_is_found_in_the_end() {
    let (setup, mut number, mut wrong) = (setup(), 0, Vec::new());
    let cases = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")).expect("they are there");
    for root in cases.map(|case| case.expect("it can be listed").path().join("in")).filter(|root| root.is_dir()) {
        let mut workspace = workspace(root, &setup);
        let Some(all) = workspace.all() else { continue };
        let found = run(&all, Encoding::Utf16);
        for (path, _) in all.tree.files() {
            let Some(job) = job(&mut workspace, path) else { continue };
            let texts = |found: &Found| -> BTreeSet<String> {
                let of_file = found.get(path).into_iter().flatten();
                let texts = of_file.map(|it| format!("{}: {}", it.range.start.line, it.message));
                texts.filter(|text| OF_ALL.iter().all(|words| !text.contains(words))).collect()
            };
            let (soon, late) = (texts(&run(&job, Encoding::Utf16)), texts(&found));
            number += 1;
            wrong
                .extend(soon.symmetric_difference(&late).map(|text| format!("{path} of {:?}: {text}", workspace.root)));
        }
    }
    assert!(number > 100, "there are only {number} files");
    assert_eq!(wrong, [""; 0], "of {number} files");
}

/// One file of very many is checked with what it has to do with, and with nothing else.
#[test]
fn a_change_takes_no_longer_in_a_large_folder() {
    let folder = tempfile::tempdir().expect("there is room");
    let gateway = |number: usize| {
        format!(
            "{{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {{name: g{number}, namespace: n}}, \
             spec: {{gatewayClassName: public, listeners: [{{name: http, port: 80, protocol: HTTP}}]}}}}\n"
        )
    };
    for number in 0..500 {
        fs::write(folder.path().join(format!("{number}.yaml")), gateway(number)).expect("there is room");
    }
    let class = "{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: public}, \
        spec: {controllerName: kgateway.dev/kgateway}}\n";
    fs::write(folder.path().join("class.yaml"), class).expect("there is room");
    let mut workspace = workspace(folder.path().to_owned(), &setup());
    let small = job(&mut workspace, "7.yaml").expect("it is checked at once");
    assert_eq!(small.tree.files().map(|(path, _)| path).collect::<Vec<_>>(), ["7.yaml", "class.yaml"]);
    assert!(job(&mut workspace, "class.yaml").is_none(), "all Gateways name it");
}
