//! The language server, as an editor talks to it: a process, and messages on its standard input and output.

mod client;

use serde_json::{Value, json};

use crate::program::Desk;
use client::Client;

const FILE: &str = "specs/shop/storefront.yaml";

/// Returns the findings of `check` in a file, as positions, codes and messages.
fn checked(desk: &Desk, file: &str) -> Vec<(u64, u64, Value, String)> {
    let run = desk.run(&["check", "specs", "--format", "json"]);
    let found: Value = serde_json::from_str(&run.out).expect("it is JSON");
    let of_file = found["findings"].as_array().expect("it is a list").iter().filter(|it| it["place"]["file"] == file);
    let finding = |it: &Value| {
        let number = |key: &str| it["place"][key].as_u64().unwrap_or_default().max(1) - 1;
        let message = it["message"].as_str().unwrap_or_default().to_owned();
        (number("line"), number("column"), it["rule"].clone(), message)
    };
    of_file.map(finding).collect()
}

#[track_caller]
fn agree(diagnostics: &Value, findings: &[(u64, u64, Value, String)]) {
    let diagnostics = diagnostics.as_array().expect("it is a list");
    assert_eq!(diagnostics.len(), findings.len(), "{diagnostics:#?} {findings:?}");
    for (line, column, rule, message) in findings {
        let is_same = |it: &&Value| {
            it["range"]["start"] == json!({"line": line, "character": column})
                && it.get("code").unwrap_or(&Value::Null) == rule
                && it["message"].as_str().is_some_and(|text| text.contains(message))
        };
        assert!(diagnostics.iter().any(|it| is_same(&it)), "no {line}:{column} {message} in {diagnostics:#?}");
    }
}

#[test]
fn diagnostics_are_what_check_finds_with_what_is_not_saved() {
    let desk = Desk::quickstart("gatewright.yaml");
    let mut client = Client::start(&desk, &json!({}));
    let good = desk.read(FILE);
    let bad =
        good.replace("port: 8080", "port: 80800").replace("hostname: shop.example.com", "hostnam: shop.example.com");
    client.open(FILE, &bad);
    let shown = client.diagnostics(FILE, |it| !it.is_empty());
    desk.write(FILE, &bad);
    let findings = checked(&desk, FILE);
    assert!(findings.len() > 1, "{findings:?}");
    agree(&shown, &findings);
    assert!(
        shown.as_array().expect("it is a list").iter().all(|it| it["severity"] == 1 && it["source"] == "gatewright")
    );

    let odd = good.replace("cert-manager.io/cluster-issuer", "example.com/other");
    client.change(FILE, &odd);
    let shown = client.diagnostics(FILE, |it| it.iter().any(|it| it["severity"] == 2));
    desk.write(FILE, &odd);
    agree(&shown, &checked(&desk, FILE));
    assert_eq!(shown[0]["code"], "GW010");
    let page = shown[0]["codeDescription"]["href"].as_str().expect("a rule has a page");
    assert!(page.ends_with("/docs/rules/GW010.md"), "{page}");

    client.change(FILE, &good);
    client.diagnostics(FILE, <[Value]>::is_empty);
    assert_eq!(client.end(), Some(0));
}

/// What is wrong with a file that nobody has changed is told as well, and follows what it depends on.
#[test]
fn all_of_the_folder_is_checked() {
    let desk = Desk::quickstart("gatewright.yaml");
    let mut client = Client::start(&desk, &json!({}));
    let (class, storefront) = (desk.read("specs/class.yaml"), desk.read(FILE));
    let gateway = storefront.split("\n---\n").next().expect("it is the first document");
    client.open("specs/class.yaml", &format!("{class}\n---\n{gateway}"));
    let shown = client.diagnostics(FILE, |it| !it.is_empty());
    assert!(shown[0]["message"].as_str().is_some_and(|it| it.contains("the same object stands at")), "{shown:#}");
    client.close("specs/class.yaml");
    client.diagnostics(FILE, <[Value]>::is_empty);
    desk.write("specs/shop/more.yaml", "kind: Gateway\n");
    client.notify(
        "workspace/didChangeWatchedFiles",
        json!({"changes": [{"uri": client.uri("specs/shop/more.yaml"), "type": 1}]}),
    );
    client.diagnostics("specs/shop/more.yaml", |it| !it.is_empty());

    let config = desk.read("gatewright.yaml");
    client.open("gatewright.yaml", &config.replace("source: quickstart", "source: quikstart"));
    let shown = client.diagnostics("gatewright.yaml", |it| !it.is_empty());
    assert!(shown[0]["message"].as_str().is_some_and(|it| it.contains("quikstart")), "{shown:#}");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn positions_count_as_the_editor_counts() {
    let desk = Desk::quickstart("gatewright.yaml");
    let text = "kind: Gateway\napiVersion: gateway.networking.k8s.io/v1\nmetadata: {name: a, labels: {e: \"😀\"}, x😀: b}\n\
        spec: {gatewayClassName: public, listeners: [{name: a, port: 80, protocol: HTTP}]}\n";
    let line = text.lines().nth(2).expect("it has three lines");
    let byte = line.find("\"😀\"").expect("it is there");
    for (encodings, character) in [(json!([]), byte), (json!(["utf-8", "utf-16"]), byte), (json!(["utf-16"]), byte)] {
        let is_utf8 = encodings[0] == "utf-8";
        let mut client = Client::start(&desk, &json!({"general": {"positionEncodings": encodings}}));
        assert_eq!(client.capabilities["positionEncoding"], if is_utf8 { "utf-8" } else { "utf-16" });
        client.open(FILE, text);
        let shown = client.diagnostics(FILE, |it| it.iter().any(|it| it["range"]["start"]["line"] == 2));
        let found = shown.as_array().expect("it is a list").iter().find(|it| it["range"]["start"]["line"] == 2);
        let range = &found.expect("the predicate says so")["range"];
        // A name in quotes with an emoji: two bytes for the quotes, and four bytes or two units for the emoji.
        let width = if is_utf8 { 6 } else { 4 };
        assert_eq!(range["start"]["character"], character, "{shown:#}");
        assert_eq!(range["end"]["character"], character + width, "{shown:#}");
        assert_eq!(client.end(), Some(0));
    }
}

#[test]
fn a_half_written_document_has_completions_and_few_findings() {
    let desk = Desk::quickstart("gatewright.yaml");
    let mut client = Client::start(&desk, &json!({}));
    client.open(FILE, "");
    client.diagnostics(FILE, |it| !it.is_empty());
    let labels = |client: &mut Client, text: &str| -> Vec<String> {
        let at = text.find('|').expect("a test marks the place");
        client.change(FILE, &text.replacen('|', "", 1));
        let items = client.ask_at("textDocument/completion", FILE, &text[..at]);
        items.as_array().into_iter().flatten().filter_map(|it| it["label"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(labels(&mut client, "|"), ["apiVersion", "kind", "metadata", "spec"]);
    assert!(labels(&mut client, "kind: Gat|").contains(&"GatewayClass".to_owned()));
    assert_eq!(
        labels(&mut client, "kind: GatewayClass\napiVersion: |"),
        ["gateway.networking.k8s.io/v1", "gateway.networking.k8s.io/v1beta1"]
    );
    let head = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata:\n  name: a\nspec:\n";
    let top = labels(&mut client, "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nm|");
    assert_eq!(top, ["metadata", "spec"]);
    let fields = labels(&mut client, &format!("{head}  |"));
    assert!(fields.contains(&"gatewayClassName".to_owned()) && !fields.contains(&"status".to_owned()), "{fields:?}");
    let listener = format!("{head}  gatewayClassName: public\n  listeners:\n  - name: http\n    ");
    let fields = labels(&mut client, &format!("{listener}po|"));
    assert!(fields.contains(&"port".to_owned()) && !fields.contains(&"name".to_owned()), "{fields:?}");
    assert_eq!(labels(&mut client, &format!("{listener}tls: {{mode: |")), ["Passthrough", "Terminate"]);
    assert!(labels(&mut client, &format!("{head}  gatewayClassName: |")).contains(&"public".to_owned()));
    let shown = client.diagnostics(FILE, |it| it.iter().any(|it| it["severity"] == 1));
    assert!(shown.as_array().is_some_and(|it| it.len() < 4), "{shown:#}");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn a_field_is_explained_and_a_name_leads_to_its_document() {
    let desk = Desk::quickstart("gatewright.yaml");
    let mut client = Client::start(&desk, &json!({}));
    let text = desk.read(FILE);
    client.open(FILE, &text.replace("    - name: http\n", "    - name: http\n      protocl: HTTP\n"));
    let shown = client.diagnostics(FILE, |it| !it.is_empty());
    let before = |text: &str, words: &str| text[..text.find(words).expect("it is there") + words.len()].to_owned();
    let text = client.text(FILE);
    let said = |client: &mut Client, words: &str| {
        let hover = client.ask_at("textDocument/hover", FILE, &before(&text, words));
        hover["contents"]["value"].as_str().unwrap_or_default().to_owned()
    };
    let port = said(&mut client, "port: 80");
    assert!(
        port.starts_with("**spec.listeners[0].port**: integer, required") && port.contains("At most `65535`"),
        "{port}"
    );
    let replicas = said(&mut client, "\n      repli");
    assert!(replicas.contains("spec.kube.deployment.replicas**: integer"), "{replicas}");

    let leads =
        |client: &mut Client, words: &str| client.ask_at("textDocument/definition", FILE, &before(&text, words));
    let class = leads(&mut client, "gatewayClassName: pub");
    assert_eq!(class[0]["uri"], client.uri("specs/class.yaml"), "{class:#}");
    assert_eq!(class[0]["range"]["start"], json!({"line": 7, "character": 8}), "{class:#}");
    let parameters = leads(&mut client, "kind: GatewayParameters\n      name: store");
    assert_eq!(parameters[0]["uri"], client.uri(FILE), "{parameters:#}");

    let actions = client.ask(
        "textDocument/codeAction",
        json!({
            "textDocument": {"uri": client.uri(FILE)}, "range": shown[0]["range"], "context": {"diagnostics": shown},
        }),
    );
    let edits = &actions[0]["edit"]["changes"][client.uri(FILE)];
    assert_eq!(edits[0]["newText"], "protocol", "{actions:#}");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn the_end_is_told_by_the_exit_code() {
    let desk = Desk::quickstart("gatewright.yaml");
    let mut client = Client::start(&desk, &json!({}));
    client.notify("$/cancelRequest", json!({"id": 99}));
    let unknown = client.answer("textDocument/none", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown:#}");
    client.open(FILE, "%&*!|>: [{\u{0}");
    client.diagnostics(FILE, |it| !it.is_empty());
    client.notify("exit", Value::Null);
    assert_eq!(client.wait(), Some(1), "it was not asked to shut down");
}
