//! When sessions are made, and when they are made again.

use std::fs;
use std::sync::{Mutex as StdMutex, PoisonError};

use futures::future::join_all;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::cluster::exec::allow::Exec;

/// A clock that stands still until it is moved.
struct Still(StdMutex<(Timestamp, Duration)>);

impl Still {
    fn advance(&self, by: Duration) {
        let mut time = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *time = (time.0 + by, time.1 + by);
    }
}

impl Clock for Still {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    fn elapsed(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

struct Setup {
    folder: TempDir,
    clock: Arc<Still>,
    sessions: Sessions,
}

/// A cluster whose user has a plugin: a shell script that notes each of its runs.
fn setup(script: &str) -> Setup {
    let setup = with_user(&json!({}));
    let plugin = setup.folder.path().join("plugin");
    fs::write(&plugin, format!("echo run >> \"$0.runs\"\n{script}\n")).expect("a temporary folder can be written");
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": [plugin]});
    write(&setup.folder, &json!({"exec": exec}));
    setup
}

fn with_user(user: &Value) -> Setup {
    let folder = TempDir::new().expect("temporary folders can be made");
    write(&folder, user);
    let clock = Arc::new(Still(StdMutex::new((Timestamp::UNIX_EPOCH, Duration::ZERO))));
    let path = Some(folder.path().join("config"));
    let settings = Settings { path, exec: Exec { allow: vec!["sh".into()], ..Exec::default() }, ..Settings::default() };
    let sessions =
        Sessions::new("eu", settings, StandardLookup::default(), Duration::from_secs(5), Arc::<Still>::clone(&clock));
    Setup { folder, clock, sessions }
}

fn write(folder: &TempDir, user: &Value) {
    let config = json!({
        "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": user}],
    });
    fs::write(folder.path().join("config"), config.to_string()).expect("a temporary folder can be written");
}

fn gives(status: &str) -> String {
    format!(
        r#"echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {status}}}'"#
    )
}

impl Setup {
    fn runs(&self) -> usize {
        fs::read_to_string(self.folder.path().join("plugin.runs")).unwrap_or_default().lines().count()
    }

    async fn token(&self) -> String {
        let session = self.sessions.current().await.unwrap_or_else(|failure| unreachable!("{failure}"));
        let header = session.authorization.as_ref().expect("there is a token");
        header.to_str().expect("tokens are plain").to_owned()
    }
}

#[tokio::test]
async fn a_plugin_runs_once_for_all_who_wait() {
    let setup = setup(&format!("sleep 0.2; {}", gives(r#"{"token": "x"}"#)));
    let all = join_all((0..20).map(|_| setup.token())).await;
    assert!(all.iter().all(|token| token == "Bearer x"));
    setup.clock.advance(Duration::from_secs(1_000_000));
    assert_eq!((setup.token().await.as_str(), setup.runs()), ("Bearer x", 1), "a credential without an end lasts");
}

#[tokio::test]
async fn a_plugin_runs_again_shortly_before_the_end() {
    let setup = setup(&gives(r#"{"token": "x", "expirationTimestamp": "1970-01-01T00:10:00Z"}"#));
    setup.token().await;
    setup.clock.advance(Duration::from_secs(569));
    setup.token().await;
    assert_eq!(setup.runs(), 1);
    setup.clock.advance(Duration::from_secs(1));
    setup.token().await;
    assert_eq!(setup.runs(), 2);
    setup.token().await;
    assert_eq!(setup.runs(), 2, "what has nearly ended is still used for some seconds");
}

#[tokio::test]
async fn a_refused_credential_is_renewed_once() {
    let setup = setup(&gives(r#"{"token": "x"}"#));
    let refused = setup.sessions.current().await.expect("the script gives a token");
    let all = join_all((0..5).map(|_| setup.sessions.renewed(&refused))).await;
    assert!(all.iter().all(|renewed| matches!(renewed, Ok(Some(_)))));
    assert_eq!(setup.runs(), 2);
}

#[tokio::test]
async fn a_plugin_that_fails_is_not_tried_again_by_each_who_waited() {
    let setup = setup("exit 1");
    for result in join_all((0..5).map(|_| setup.sessions.current())).await {
        assert!(matches!(result, Err(Failure::Plugin(_))));
    }
    assert_eq!(setup.runs(), 1);
    setup.clock.advance(FAILURE_AGE);
    assert!(setup.sessions.current().await.is_err());
    assert_eq!(setup.runs(), 2);
}

#[tokio::test]
async fn a_token_file_is_read_again() {
    let setup = with_user(&json!({"tokenFile": "token"}));
    let rotate = |token: &str| fs::write(setup.folder.path().join("token"), token).expect("it can be written");
    rotate("first\n");
    assert_eq!(setup.token().await, "Bearer first");
    rotate("second\n");
    assert_eq!(setup.token().await, "Bearer first");
    setup.clock.advance(Duration::from_mins(1));
    assert_eq!(setup.token().await, "Bearer second");
    rotate("third\n");
    assert!(setup.sessions.checked().await.is_ok());
    assert_eq!(setup.token().await, "Bearer third");
}

#[tokio::test]
async fn a_refused_token_that_stays_the_same_is_not_tried_again() {
    let setup = with_user(&json!({"token": "x"}));
    let refused = setup.sessions.current().await.expect("the kubeconfig is good");
    assert!(matches!(setup.sessions.renewed(&refused).await, Ok(None)));
    write(&setup.folder, &json!({"username": "a", "password": "b"}));
    assert!(matches!(setup.sessions.renewed(&refused).await, Ok(Some(_))));
    assert_eq!(setup.token().await, "Basic YTpi");
}

#[tokio::test]
async fn certificates_that_the_library_does_not_take_are_a_mistake_in_the_configuration() {
    let pem = |kind: &str| BASE64_STANDARD.encode(format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n"));
    let user = json!({"client-certificate-data": pem("CERTIFICATE"), "client-key-data": pem("PRIVATE KEY")});
    let failure = with_user(&user).sessions.current().await.err().expect("it is no key");
    assert!(matches!(&failure, Failure::NoClient { .. }), "{failure}");
    assert!(failure.to_string().contains("private key"), "{failure}");
}
