//! The forms in which webhooks are told, their signatures, and proxies in between.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;

use crate::cluster::process::{Folder, command};
use crate::commands::obeys;
use crate::errors::{desk, folder, gateway};
use crate::program::Desk;
use crate::support::git_server::HttpsServer;
use crate::support::receiver::{Received, Receiver};
use crate::support::tunnel::Tunnel;
use crate::support::write_secret;

/// A desk with one Gateway and these webhooks.
fn with(webhooks: &str) -> Desk {
    let desk = desk("edge", &[("out", folder())]);
    let reports = format!("stateDir: state\nreports: {{webhooks: {{{webhooks}}}}}\n");
    desk.replace("gatewright.yaml", "stateDir: state\n", &reports);
    desk.write("specs/edge.yaml", &gateway("shop", "edge", 8080));
    desk
}

#[test]
fn each_receiver_is_told_in_its_own_form() {
    let receiver = Receiver::start();
    let webhook = |form: &str| format!("{form}: {{url: \"{}\", format: {form}}}", receiver.url(&format!("/{form}")));
    let desk = with(&["json", "cloudevents", "slack", "teams"].map(webhook).join(", "));
    desk.run(&["sync"]).exits(0);
    let all = receiver.received();
    let of = |form: &str| all.iter().find(|it| it.path == format!("/{form}")).expect("it was told");
    let plain = of("json").body();
    obeys("notification-v1alpha1", &plain);

    let event = of("cloudevents");
    assert_eq!(event.header("content-type"), "application/cloudevents+json");
    assert_eq!(event.body()["data"], plain);
    assert_eq!(event.body()["source"], json!(format!("/gatewright/{}", desk.read("state/installation").trim())));

    let slack = of("slack").body();
    assert_eq!((&slack["text"], &slack["blocks"][0]["text"]["text"]), (&plain["text"], &json!("edge: well")));
    let card = &of("teams").body()["attachments"][0]["content"];
    assert_eq!(card["body"][1]["inlines"][0]["text"], plain["text"]);
    for it in &all {
        assert_eq!(it.header("idempotency-key"), plain["id"].as_str().expect("it is a text"), "{}", it.path);
        assert_eq!(it.header("webhook-signature"), "", "nobody has asked for one");
    }
}

/// Computes what OpenSSL says is the signature of what was received.
fn signature(received: &Received, hex_key: &str) -> String {
    let mut command = command("openssl");
    command.args(["dgst", "-sha256", "-mac", "HMAC", "-macopt", &format!("hexkey:{hex_key}"), "-binary"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("openssl is there");
    let (id, time) = (received.header("webhook-id"), received.header("webhook-timestamp"));
    let mut input = child.stdin.take().expect("it was asked for");
    write!(input, "{id}.{time}.{}", received.text).expect("openssl reads");
    drop(input);
    let digest = child.wait_with_output().expect("openssl ends").stdout;
    format!("v1,{}", base64::Engine::encode(&base64::engine::general_purpose::STANDARD, digest))
}

#[test]
fn what_is_sent_can_be_verified() {
    let receiver = Receiver::start();
    let webhook = |form: &str| {
        format!(
            "{form}: {{url: \"{}\", format: {form}, signingKeyFile: {form}.key}}",
            receiver.url(&format!("/{form}"))
        )
    };
    let desk = with(&["json", "slack"].map(webhook).join(", "));
    write_secret(&desk.path("json.key"), "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX\n");
    write_secret(&desk.path("slack.key"), "abcdefghijklmnopqrstuvwx\n");
    desk.run(&["sync"]).exits(0);
    let keys = [
        ("/json", "000102030405060708090a0b0c0d0e0f1011121314151617"),
        ("/slack", "6162636465666768696a6b6c6d6e6f707172737475767778"),
    ];
    let all = receiver.received();
    for (path, key) in keys {
        let told = all.iter().find(|it| it.path == path).expect("it was told");
        assert_eq!(told.header("webhook-id"), told.header("idempotency-key"));
        assert_eq!(told.header("webhook-signature"), signature(told, key), "{path}");
    }
    // A receiver may refuse what is old.
    let told = all.iter().find(|it| it.path == "/json").expect("it was told");
    let made: jiff::Timestamp = told.body()["time"].as_str().expect("it is a text").parse().expect("it is a time");
    let sent: i64 = told.header("webhook-timestamp").parse().expect("it is a number of seconds");
    assert!((0..300).contains(&(sent - made.as_second())), "{sent} {made}");
}

#[test]
fn without_its_key_nothing_is_sent_and_the_key_is_not_told() {
    let receiver = Receiver::start();
    let desk = with(&format!("ops: {{url: \"{}\", signingKeyFile: ops.key, timeout: 1s}}", receiver.url("/")));
    desk.run(&["sync"]).exits(0).complains("which `signingKeyFile` names");
    write_secret(&desk.path("ops.key"), "hunter2");
    let run = desk.run(&["sync"]).exits(0).complains("there is no key of 24 bytes or more");
    assert!(!run.err.contains("hunter2"), "{}", run.err);
    assert!(receiver.received().is_empty());
    write_secret(&desk.path("ops.key"), "hunter2-but-long-enough-to-sign");
    desk.run(&["sync"]).exits(0);
    assert_eq!(receiver.taken().len(), 1);
}

#[test]
fn a_proxy_tunnels_to_a_receiver_that_proves_who_it_is() {
    let (root, proxy) = (Folder::new(), Tunnel::start("200 OK"));
    let server = HttpsServer::start(root.path(), "token", "");
    let (url, authority) = (format!("{}/status-204/", server.url), server.authority.display());
    let desk = with(&format!("ops: {{url: \"{url}\", proxy: \"{}\", caFile: {authority}}}", proxy.url));
    let run = desk.run(&["sync"]).exits(0);
    assert_eq!((run.err.as_str(), server.requests()), ("", vec!["POST /status-204/ 204 anonymous".to_owned()]));
    let host = server.url.trim_start_matches("https://");
    assert_eq!(proxy.asked(), [format!("CONNECT {host} HTTP/1.1")]);
}

#[test]
fn a_proxy_that_refuses_is_told_and_asked_again() {
    let (receiver, proxy) = (Receiver::start(), Tunnel::start("407 Proxy Authentication Required"));
    let url = receiver.url("/");
    let desk = with(&format!("ops: {{url: \"{url}\", proxy: \"{}\", timeout: 2s}}", proxy.url));
    let run = desk.run(&["sync"]).exits(0).complains("a notification to webhook \"ops\" is not delivered yet: ");
    assert!(run.err.contains("proxy"), "{}", run.err);
    assert!(receiver.received().is_empty() && !proxy.asked().is_empty());
    desk.replace("gatewright.yaml", &format!(", proxy: \"{}\"", proxy.url), "");
    desk.run(&["sync"]).exits(0);
    assert_eq!(receiver.taken().len(), 1);
}
