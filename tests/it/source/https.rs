//! Git over https, with a token.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use gatewright::source::{Reason, Source as _};
use serde_json::{Value, json};

use super::{FETCH, LIST, failure, files, snapshot, source, told};
use crate::support::git_server::{HttpsServer, Repository};
use crate::support::process::{Folder, free_port};
use crate::support::write_secret;

const TOKEN: &str = "s3cr3t-t0ken";

/// A repository with one spec, served to who has the token, and a file with the token.
struct Setting {
    folder: Folder,
    repository: Repository,
    server: HttpsServer,
    token_file: PathBuf,
}

impl Setting {
    fn new() -> Self {
        let folder = Folder::new();
        let repository = Repository::new(folder.path(), "infra");
        repository.write("gateways/a.yaml", "a: 1\n");
        repository.push();
        let server = HttpsServer::start(folder.path(), TOKEN, "https://localhost:1");
        let token_file = folder.path().join("my-token");
        write_secret(&token_file, &format!("{TOKEN}\n"));
        Self { folder, repository, server, token_file }
    }

    /// The number of times that the server was asked for a list, and for a commit.
    fn asked(&self) -> (usize, usize) {
        (self.server.count("GET"), self.server.count("POST"))
    }

    /// The settings of a source that may read the repository at a path of the server.
    fn settings(&self, path: &str) -> Value {
        json!({
            "url": format!("{}/{path}", self.server.url),
            "ref": {"branch": "main"},
            "auth": {"tokenFile": self.token_file, "caFile": self.server.authority},
        })
    }
}

#[tokio::test]
async fn a_poll_lists_first_and_fetches_only_what_changed() {
    let setting = Setting::new();
    let source = source(setting.folder.path(), setting.settings("infra.git"));
    let first = snapshot(&source).await;
    assert_eq!(files(&first), [("gateways/a.yaml", "a: 1\n")]);
    assert_eq!(first.revision, format!("main@sha1:{}", setting.repository.git(&["rev-parse", "HEAD"])));
    assert_eq!(setting.asked(), (LIST, FETCH), "{:?}", setting.server.requests());

    let second = source.poll(Some(&first.revision)).await.expect("nothing has changed");
    assert_eq!(second, None);
    assert_eq!(setting.asked(), (2 * LIST, FETCH), "{:?}", setting.server.requests());

    setting.repository.write("gateways/b.yaml", "b: 2\n");
    setting.repository.push();
    let third = source.poll(Some(&first.revision)).await.expect("the server is up").expect("there is a new commit");
    assert_eq!(files(&third), [("gateways/a.yaml", "a: 1\n"), ("gateways/b.yaml", "b: 2\n")]);
    assert_eq!(setting.asked(), (3 * LIST, 2 * FETCH), "{:?}", setting.server.requests());

    // The mirror has it already, as after a restart.
    assert_eq!(snapshot(&source).await, third);
    assert_eq!(setting.asked(), (4 * LIST, 2 * FETCH), "{:?}", setting.server.requests());
}

#[tokio::test]
async fn a_wrong_token_is_shown_once_and_never_told() {
    let setting = Setting::new();
    fs::write(&setting.token_file, "hunter2hunter2").expect("the folder can be written");
    let source = source(setting.folder.path(), setting.settings("infra.git"));
    let error = failure(&source).await;
    assert_eq!(error.reason, Reason::AuthFailed);
    assert_eq!(setting.server.count("401 token"), 1, "{:?}", setting.server.requests());
    let text = format!("{} {error:?}", told(&error));
    assert!(text.contains("my-token is valid") && !text.contains("hunter2"), "{text}");

    // A token that was put right counts at the next poll.
    fs::write(&setting.token_file, TOKEN).expect("the folder can be written");
    snapshot(&source).await;
    setting.server.set_token("another");
    assert_eq!(failure(&source).await.reason, Reason::AuthFailed);
}

#[tokio::test]
async fn a_server_that_wants_a_token_is_no_use_without_one() {
    let setting = Setting::new();
    let mut settings = setting.settings("infra.git");
    settings["auth"] = json!({"caFile": setting.server.authority});
    let error = failure(&source(setting.folder.path(), settings)).await;
    assert_eq!(error.reason, Reason::AuthFailed);
    assert!(told(&error).contains("`auth.tokenFile`"), "{}", told(&error));
}

#[tokio::test]
async fn a_token_file_that_is_missing_is_an_error_and_nothing_is_asked() {
    let setting = Setting::new();
    fs::remove_file(&setting.token_file).expect("the file is there");
    let error = failure(&source(setting.folder.path(), setting.settings("infra.git"))).await;
    assert_eq!(error.reason, Reason::Invalid);
    assert!(told(&error).contains("which `auth.tokenFile` names: No such file"), "{}", told(&error));
    assert_eq!(setting.server.requests(), [""; 0]);
}

#[tokio::test]
async fn a_server_of_an_unknown_authority_is_not_trusted() {
    let setting = Setting::new();
    let mut settings = setting.settings("infra.git");
    settings["auth"] = json!({"tokenFile": setting.token_file});
    let error = failure(&source(setting.folder.path(), settings)).await;
    assert_eq!(error.reason, Reason::Untrusted);
    assert!(told(&error).contains("`auth.caFile`"), "{}", told(&error));
    assert_eq!(setting.server.requests(), [""; 0], "nothing was sent to it");
}

#[tokio::test]
async fn a_server_whose_certificate_has_another_name_is_not_trusted() {
    let setting = Setting::new();
    let mut settings = setting.settings("infra.git");
    settings["url"] = json!(format!("{}/infra.git", setting.server.url.replace("127.0.0.1", "localhost")));
    let error = failure(&source(setting.folder.path(), settings)).await;
    assert_eq!(error.reason, Reason::Untrusted, "{}", told(&error));
    assert!(told(&error).contains("for which names it is"), "{}", told(&error));
}

#[tokio::test]
async fn a_file_without_certificates_is_named() {
    let setting = Setting::new();
    let mut settings = setting.settings("infra.git");
    settings["auth"]["caFile"] = json!(setting.token_file);
    let error = failure(&source(setting.folder.path(), settings)).await;
    assert_eq!(error.reason, Reason::Invalid);
    assert!(told(&error).contains("which `auth.caFile` names: it holds no certificates"), "{}", told(&error));
}

#[tokio::test]
async fn what_a_server_answers_decides_what_kind_of_failure_it_is() {
    let setting = Setting::new();
    for (path, reason, hint) in [
        ("status-403/infra.git", Reason::AuthFailed, "my-token"),
        ("status-404/infra.git", Reason::NotFound, "Check `url`"),
        ("other.git", Reason::NotFound, "Check `url`"),
        ("status-429/infra.git", Reason::Unreachable, "fewer requests"),
        ("status-503/infra.git", Reason::Unreachable, ""),
        ("login/infra.git", Reason::Invalid, "clone from"),
    ] {
        let error = failure(&source(setting.folder.path(), setting.settings(path))).await;
        assert_eq!(error.reason, reason, "{path}: {}", told(&error));
        assert!(told(&error).contains(hint) && !told(&error).contains(TOKEN), "{path}: {}", told(&error));
    }
}

#[tokio::test]
async fn an_answer_that_stops_in_the_middle_is_a_failure_of_the_network() {
    let setting = Setting::new();
    setting.repository.write("large.yaml", &format!("a: {:?}\n", (0..1000).collect::<Vec<_>>()));
    setting.repository.push();
    let cut = failure(&source(setting.folder.path(), setting.settings("cut/infra.git"))).await;
    assert_eq!(cut.reason, Reason::Unreachable, "{}", told(&cut));
    let mut settings = setting.settings("stall/infra.git");
    settings["timeout"] = json!("2s");
    let stalled = failure(&source(setting.folder.path(), settings)).await;
    assert_eq!(stalled.reason, Reason::Unreachable);
    assert!(told(&stalled).contains("there was no answer within 2s"), "{}", told(&stalled));
}

#[tokio::test]
async fn a_redirect_to_another_server_is_not_followed_with_a_token() {
    let folder = Folder::new();
    let repository = Repository::new(folder.path(), "infra");
    repository.write("a.yaml", "a: 1\n");
    repository.push();
    let other = HttpsServer::start(&folder.path().join("other"), TOKEN, "");
    let server = HttpsServer::start(folder.path(), TOKEN, &other.url);
    let token_file = folder.path().join("my-token");
    write_secret(&token_file, TOKEN);
    // Both authorities are trusted, so that nothing else stands in the way.
    let both = [&server.authority, &other.authority].map(|file| fs::read_to_string(file).expect("a certificate"));
    let authorities = folder.path().join("authorities");
    fs::write(&authorities, both.concat()).expect("the folder can be written");
    let settings = json!({
        "url": format!("{}/moved/infra.git", server.url),
        "auth": {"tokenFile": token_file, "caFile": authorities},
    });
    let error = failure(&source(folder.path(), settings)).await;
    assert_eq!(error.reason, Reason::Untrusted);
    assert!(told(&error).contains(&format!("redirects to {}/infra.git", other.url)), "{}", told(&error));
    assert_eq!(other.count(" token"), 0, "{:?}", other.requests());
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed_by_anybody() {
    let folder = Folder::new();
    let repository = Repository::new(folder.path(), "infra");
    repository.write("a.yaml", "a: 1\n");
    repository.push();
    let other = HttpsServer::start(&folder.path().join("other"), TOKEN, "");
    // The same machine by another name.
    let elsewhere = other.url.replace("127.0.0.1", "localhost");
    let server = HttpsServer::start(folder.path(), TOKEN, &elsewhere);
    let both = [&server.authority, &other.authority].map(|file| fs::read_to_string(file).expect("a certificate"));
    let (authorities, token_file) = (folder.path().join("authorities"), folder.path().join("my-token"));
    fs::write(&authorities, both.concat()).expect("the folder can be written");
    write_secret(&token_file, TOKEN);
    let url = format!("{}/moved/infra.git", server.url);
    for (name, auth) in [
        ("anonymous", json!({"caFile": authorities})),
        ("with a token", json!({"caFile": authorities, "tokenFile": token_file})),
    ] {
        let folder = folder.path().join(name);
        fs::create_dir(&folder).expect("the folder can be written");
        let error = failure(&source(&folder, json!({"url": url, "auth": auth}))).await;
        assert_eq!(error.reason, Reason::Untrusted, "{name}: {}", told(&error));
        assert!(told(&error).contains("cannot redirect from '127.0.0.1' to 'localhost'"), "{}", told(&error));
        assert_eq!(other.requests(), [""; 0], "{name}");
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_unreachable() {
    let folder = Folder::new();
    let settings = json!({"url": format!("https://127.0.0.1:{}/infra.git", free_port())});
    let error = failure(&source(folder.path(), settings)).await;
    assert_eq!(error.reason, Reason::Unreachable);
    assert!(told(&error).contains("cannot read https://127.0.0.1:"), "{}", told(&error));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_in_time() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback address has free ports");
    let address = listener.local_addr().expect("a bound socket has an address");
    let accepting = thread::spawn(move || listener.accept());
    let settings = json!({"url": format!("https://{address}/infra.git"), "timeout": "1s"});
    let source = source(folder.path(), settings);
    let error = tokio::time::timeout(Duration::from_secs(5), failure(&source)).await.expect("it gives up in time");
    assert_eq!(error.reason, Reason::Unreachable);
    assert!(told(&error).contains("there was no answer within 1s"), "{}", told(&error));
    // This closes the connection, and so ends the thread that is still waiting for an answer.
    drop(accepting.join());
}
