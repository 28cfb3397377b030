use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tower_lsp_server::ls_types::TextDocumentContentChangeEvent;

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

/// The same holds when a document is added between others that stay as they are.
#[test]
fn what_is_known_of_documents_that_stay_moves_with_them() {
    let folder = tempfile::tempdir().expect("there is room");
    let gateway = |name: &str, port: u32| {
        format!(
            "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: {name}, namespace: web}}\n\
             spec:\n  gatewayClassName: kgateway\n  listeners:\n  - {{name: http, port: {port}, protocol: HTTP}}\n"
        )
    };
    let text = |ports: &[(&str, u32)]| ports.iter().map(|(name, port)| gateway(name, *port)).collect::<String>();
    let before = text(&[("a", 70_000), ("b", 80), ("c", 70_001)]);
    fs::write(folder.path().join("all.yaml"), &before).expect("there is room");
    let mut workspace = workspace(folder.path().to_owned(), &setup());
    let uri = workspace.uri("all.yaml").expect("it is a file");
    let lines = |diagnostics: &[Diagnostic]| {
        let mut lines: Vec<u32> = diagnostics.iter().map(|it| it.range.start.line).collect();
        lines.sort_unstable();
        lines
    };
    workspace.open(uri.clone(), 1, before);
    let check = |workspace: &mut Workspace, expected: &[u32], parts: &[usize]| {
        let job = workspace.next().expect("it has changed");
        let of = job.of.clone().expect("it is about one file");
        let mut found = run(&job, Encoding::Utf16).remove("all.yaml").expect("it is about that file");
        found.extend(workspace.known(&of));
        assert_eq!(lines(&found), expected);
        assert_eq!(of.parts.clone().expect("some are checked").into_iter().collect::<Vec<_>>(), parts);
        workspace.note(Some(&of));
        workspace.published.insert("all.yaml".to_owned(), found);
    };
    check(&mut workspace, &[7, 23], &[0, 1, 2]);
    let change = |workspace: &mut Workspace, version, text: String| {
        let change = TextDocumentContentChangeEvent { range: None, range_length: None, text };
        workspace.change(&uri, version, &[change]);
    };
    change(&mut workspace, 2, text(&[("a", 70_000), ("new", 80), ("b", 80), ("c", 70_001)]));
    check(&mut workspace, &[7, 31], &[1]);
    change(&mut workspace, 3, text(&[("a", 80), ("new", 80), ("b", 80), ("c", 70_001)]));
    check(&mut workspace, &[31], &[0]);
    change(&mut workspace, 4, text(&[("b", 80), ("c", 70_001)]));
    check(&mut workspace, &[15], &[]);
    change(&mut workspace, 5, text(&[("b", 80)]));
    check(&mut workspace, &[], &[]);
    // That what has not changed is there twice now is told when all is checked.
    change(&mut workspace, 6, text(&[("b", 70_002), ("b", 80)]));
    check(&mut workspace, &[7], &[0]);
}

/// One file of very many is checked with what it has to do with, and with nothing else.
#[test]
fn a_change_takes_no_longer_in_a_large_folder() {
    let folder = tempfile::tempdir().expect("there is room");
    let gateway = |number: usize| {
        format!(
            "{{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {{name: g{number}, namespace: web}}, \
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
