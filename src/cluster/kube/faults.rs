//! Answers that a healthy API server does not give, from one that does what the test says.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gatewright_engine::error::Chain;
use gatewright_engine::object::{Gvk, Object, ObjectId};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::KubeCluster;
use crate::basics::clock::SystemClock;
use crate::basics::duration::Period;
use crate::cluster::kubeconfig::{Settings, StandardLookup};
use crate::cluster::permit::{self, Withdrawn};
use crate::cluster::{Cluster as _, Mode, Precondition, Reason, Search};

const KINDS: &str = r#"{"kind": "APIGroupDiscoveryList", "items": [{"versions": [{"version": "v1", "resources": [
    {"resource": "services", "responseKind": {"kind": "Service"}, "scope": "Namespaced"}
]}]}]}"#;
const SYSTEM: &str = r#"{"metadata": {"uid": "u"}}"#;
const BUSY: &str = "HTTP/1.1 429 Too Many\r\nRetry-After: 0\r\nContent-Type: text/plain\r\n\r\nplease wait\n";
const CUT: &str = "";

fn answer(code: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {code} X\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn status(code: u16, message: &str) -> String {
    answer(code, &json!({"kind": "Status", "code": code, "message": message}).to_string())
}

/// Gives one of the answers to each request, and returns what was asked. An empty one hangs up.
async fn serve(answers: Vec<String>) -> (KubeCluster, JoinHandle<Vec<String>>, TempDir) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("the loopback address has free ports");
    let server = format!("http://{}", listener.local_addr().expect("it is bound"));
    let serving = tokio::spawn(async move {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.expect("the listener is open");
            asked.push(read_request(&mut stream).await);
            stream.write_all(answer.as_bytes()).await.expect("the client waits for it");
        }
        asked
    });
    let folder = TempDir::new().expect("temporary folders can be made");
    let config = json!({
        "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": server}}],
        "users": [{"name": "a", "user": {"token": "t", "as": "boss"}}],
    });
    let path = folder.path().join("config");
    fs::write(&path, config.to_string()).expect("a temporary folder can be written");
    let settings = Settings { path: Some(path), timeout: Period(Duration::from_secs(10)), ..Settings::default() };
    let cluster = KubeCluster::new("eu", settings, StandardLookup::default(), Arc::new(SystemClock::new()));
    (cluster, serving, folder)
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let read = stream.read_buf(&mut request).await.expect("the client writes it");
        let text = String::from_utf8_lossy(&request);
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        let whole = text.split_once("\r\n\r\n").is_some_and(|(_, body)| body.len() >= length.unwrap_or(0));
        if read == 0 || whole {
            return text.into_owned();
        }
    }
}

/// Asks for the identity, and expects every answer to be fetched.
async fn check(answers: &[String], expected: Result<&str, (Reason, &str)>) {
    let (cluster, serving, _folder) = serve(answers.to_vec()).await;
    match (cluster.identity().await, expected) {
        (Ok(identity), Ok(expected)) => assert_eq!(identity, expected),
        (Err(error), Err((reason, says))) => {
            let text = Chain(&error).to_string();
            assert_eq!(error.reason, reason, "{text}");
            assert!(text.contains(says), "{text:?} does not say {says:?}");
        }
        (found, _) => assert!(found.is_err() && expected.is_err(), "{found:?} instead of {expected:?}"),
    }
    let asked = tokio::time::timeout(Duration::from_secs(5), serving).await;
    assert!(asked.is_ok(), "of {} answers not all were fetched: {answers:?}", answers.len());
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    check(&[BUSY.into(), CUT.into(), answer(200, SYSTEM)], Ok("u")).await;
    check(&[BUSY.into(), BUSY.into(), BUSY.into()], Err((Reason::Overloaded, "please wait"))).await;
    let later = BUSY.replace("After: 0", "After: 3600");
    check(&[later], Err((Reason::Overloaded, "please wait"))).await;
}

#[tokio::test]
async fn who_loses_the_right_between_two_tries_sends_no_other() {
    let (cluster, serving, _folder) = serve(vec![BUSY.into()]).await;
    let asked = AtomicUsize::new(0);
    let once = move || match asked.fetch_add(1, Ordering::Relaxed) {
        0 => Ok(()),
        _ => Err(Withdrawn { why: "lost".to_owned(), hint: "another one goes on".to_owned() }),
    };
    let error = permit::under(Arc::new(once), cluster.identity()).await.expect_err("the server was busy");
    assert_eq!((error.reason, error.hint.as_deref()), (Reason::Other, Some("another one goes on")));
    assert!(Chain(&error).to_string().ends_with("lost"), "{}", Chain(&error));
    assert_eq!(serving.await.expect("it has answered").len(), 1);
}

#[tokio::test]
async fn what_does_not_pass_is_asked_once() {
    let hook = "Internal error occurred: failed calling webhook \"a\"";
    check(&[status(500, hook)], Err((Reason::Other, hook))).await;
    check(&[status(400, "no")], Err((Reason::Invalid, "no"))).await;
    check(&[status(401, "Unauthorized")], Err((Reason::Unauthorized, "Unauthorized"))).await;
    check(&[status(418, "")], Err((Reason::Other, "the server answered 418"))).await;
}

#[tokio::test]
async fn what_is_no_api_server_is_unreachable() {
    let not_kubernetes = |says| Err((Reason::Unreachable, says));
    let page = answer(200, "<html>log in</html>").replace("application/json", "text/html");
    check(&[page], not_kubernetes("sends something else than JSON")).await;
    check(&[answer(200, &SYSTEM[..10])], not_kubernetes("sends something else than JSON")).await;
    check(&[answer(200, "{}")], not_kubernetes("has no uid")).await;
    let login = "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n".to_owned();
    check(&[login], not_kubernetes("answers 302 Found")).await;
    let denied = answer(403, "<html>blocked</html>").replace("application/json", "text/html");
    check(&[denied], not_kubernetes("answers 403 Forbidden")).await;
    check(
        &[answer(404, r#"{"message": "no route"}"#)],
        not_kubernetes(r#"answers 404 Not Found: {"message": "no route"}"#),
    )
    .await;
    check(&["SSH-2.0-OpenSSH\r\n".to_owned()], not_kubernetes("no connection to http://127.0.0.1:")).await;
    let broken = answer(200, SYSTEM).replace("Content-Length: ", "Content-Length: 9");
    check(&[broken.clone(), broken.clone(), broken], not_kubernetes("no connection to http://127.0.0.1:")).await;
}

#[tokio::test]
async fn a_request_says_who_it_is_from() {
    let (cluster, serving, _folder) = serve(vec![answer(200, SYSTEM)]).await;
    assert!(cluster.identity().await.is_ok());
    let asked = serving.await.expect("it was fetched").remove(0);
    for says in [
        "GET /api/v1/namespaces/kube-system ",
        "authorization: Bearer t",
        "impersonate-user: boss",
        "user-agent: gatewright/",
    ] {
        assert!(asked.contains(says), "{asked}");
    }
}

#[tokio::test]
async fn a_list_that_lost_its_place_begins_again() {
    let page = |names: &[&str], next: &str| {
        let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        answer(200, &json!({"metadata": {"continue": next}, "items": items}).to_string())
    };
    let answers =
        vec![answer(200, KINDS), page(&["a"], "n/1"), status(410, "gone"), page(&["a", "b"], "n2"), page(&["c"], "")];
    let (cluster, serving, _folder) = serve(answers).await;
    let listed = cluster.list(&Gvk::new("v1", "Service"), ("gatewright.dev/sync", "x.1")).await.expect("it ends");
    assert_eq!(listed.iter().map(|live| live.object.id().name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    let asked = serving.await.expect("all were fetched");
    let line = |index: usize| asked[index].lines().next().unwrap_or_default().to_owned();
    assert_eq!(line(1), "GET /api/v1/services?&labelSelector=gatewright.dev%2Fsync%3Dx.1&limit=500 HTTP/1.1");
    assert!(line(2).contains("&continue=n%2F1"), "{}", line(2));
    assert_eq!(line(3), line(1));
}

#[tokio::test]
async fn an_apply_whose_answer_was_lost_ends_in_a_conflict() {
    // It was carried out, the answer was cut off, and the second time the object is there.
    let (cluster, serving, _folder) = serve(vec![answer(200, KINDS), CUT.into(), status(409, "exists")]).await;
    let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "b"}});
    let object = Object::new(body).expect("it has all that it needs");
    let error = cluster.apply(&object, &Precondition::Absent, Mode::Real).await.expect_err("nobody knows whose it is");
    assert_eq!(error.reason, Reason::Conflict);
    let asked = serving.await.expect("all were fetched");
    let line =
        "PATCH /api/v1/namespaces/b/services/a?&force=true&fieldManager=gatewright&fieldValidation=Strict HTTP/1.1";
    assert!(asked[1].starts_with(line), "{}", asked[1]);
    assert!(asked[1].contains("content-type: application/apply-patch+yaml"), "{}", asked[1]);
    assert!(asked[1].contains("\"resourceVersion\":\"1\""), "{}", asked[1]);
}

#[tokio::test]
async fn a_group_that_does_not_answer_is_not_a_missing_kind() {
    let kinds = [Gvk::new("v1", "Service")].into();
    let (cluster, _serving, _folder) = serve(vec![status(403, "no"), status(404, "no")]).await;
    assert_eq!(cluster.kinds(&kinds).await.err().map(|error| error.reason), Some(Reason::Forbidden));
    assert_eq!(cluster.kinds(&kinds).await.map(|found| found.served.len()).ok(), Some(0));
}

#[tokio::test]
async fn a_404_that_names_nothing_says_nothing_about_an_object() {
    let (cluster, _serving, _folder) = serve(vec![status(404, "no"), answer(200, KINDS), status(404, "no")]).await;
    assert_eq!(cluster.read_record("r").await.err().map(|error| error.reason), Some(Reason::NotFound));
    let id = ObjectId::new("", "Service", "b", "a");
    let error = cluster.get(&Gvk::new("v1", "Service"), &id).await.expect_err("the address is gone, not the object");
    assert_eq!(error.reason, Reason::NotFound);
}

#[tokio::test]
async fn an_empty_condition_is_not_sent() {
    // The server would take it for no condition at all.
    let (cluster, _serving, _folder) = serve(vec![answer(200, KINDS)]).await;
    let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "b"}});
    let object = Object::new(body).expect("it has all that it needs");
    let only_if = Precondition::Unchanged { uid: "u".to_owned(), resource_version: String::new() };
    let error = cluster.apply(&object, &only_if, Mode::Real).await.expect_err("nobody knows the version");
    assert_eq!(error.reason, Reason::Invalid);
    assert!(cluster.delete(&object.gvk(), object.id(), "", "1").await.is_err());
    assert!(cluster.write_record("r", &[].into(), Some("")).await.is_err());
}

#[tokio::test]
async fn names_that_are_no_names_are_not_sent() {
    let (cluster, _serving, _folder) = serve(vec![answer(200, KINDS)]).await;
    let id = ObjectId::new("", "Service", "b", "a?dryRun=All");
    let error = cluster.get(&Gvk::new("v1", "Service"), &id).await.expect_err("it is no name");
    assert_eq!(error.reason, Reason::Invalid);
}

/// Lists the Secrets of clusters from a server that gives these answers.
async fn secrets(answers: Vec<String>) -> (Result<usize, Reason>, Vec<String>) {
    let (cluster, serving, _folder) = serve(answers).await;
    let search = Search { namespace: "fleet", labels: "a=b", fields: "type=c" };
    let found = cluster.secrets(search).await.map(|found| found.len()).map_err(|error| error.reason);
    (found, serving.await.expect("it ends with the last answer"))
}

#[tokio::test]
async fn a_list_of_secrets_is_whole_or_none() {
    let page = |name: &str, next: &str| {
        let metadata = json!({"name": name, "namespace": "fleet"});
        answer(200, &json!({"metadata": {"continue": next}, "items": [{"metadata": metadata}]}).to_string())
    };
    let (found, asked) = secrets(vec![page("a", "more"), page("b", "")]).await;
    assert_eq!(found, Ok(2));
    let first = "GET /api/v1/namespaces/fleet/secrets?&fieldSelector=type%3Dc&labelSelector=a%3Db&limit=500 ";
    assert!(asked[0].starts_with(first), "{}", asked[0]);
    assert!(asked[1].contains("continue=more"), "{}", asked[1]);
    // Of a list that ends in the middle nothing counts.
    let (found, _) = secrets(vec![page("a", "more"), status(403, "no more")]).await;
    assert_eq!(found, Err(Reason::Forbidden));
    let (found, _) = secrets(vec![page("a", "more"), answer(200, "{\"items\": [{\"metadata\"")]).await;
    assert!(found.is_err());
    // Neither is one without items, or an object that is none.
    for body in ["{}", r#"{"items": null}"#, r#"{"items": [{}]}"#, r#"{"items": [{"metadata": {"name": "a"}}]}"#] {
        assert!(secrets(vec![answer(200, body)]).await.0.is_err(), "{body}");
    }
    // A list that has changed so much that its place is lost is begun again.
    let (found, _) = secrets(vec![page("a", "more"), status(410, "too old"), page("a", "")]).await;
    assert_eq!(found, Ok(1));
}
