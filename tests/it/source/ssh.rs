//! Git over ssh, with keys on both sides.

use std::fs;
use std::path::PathBuf;

use gatewright::source::{Reason, Source as _};
use serde_json::{Value, json};

use super::{failure, files, snapshot, source, told};
use crate::support::git_server::{Repository, SshServer, run};
use crate::support::process::Folder;
use crate::support::write_secret;

/// A repository with one spec, a server, and a file of known hosts.
struct Setting {
    folder: Folder,
    repository: Repository,
    server: SshServer,
    known_hosts: PathBuf,
}

impl Setting {
    fn new(passphrase: &str) -> Self {
        let folder = Folder::new();
        let repository = Repository::new(folder.path(), "infra");
        repository.write("a.yaml", "a: 1\n");
        repository.push();
        let server = SshServer::start(folder.path(), passphrase);
        let known_hosts = folder.path().join("known_hosts");
        fs::write(&known_hosts, server.known_hosts_line()).expect("the folder can be written");
        Self { folder, repository, server, known_hosts }
    }

    fn settings(&self) -> Value {
        json!({
            "url": format!("{}{}", self.server.url, self.repository.bare.display()),
            "auth": {"sshKeyFile": self.server.user_key, "knownHostsFile": self.known_hosts},
        })
    }

    fn know(&self, text: &str) {
        fs::write(&self.known_hosts, text).expect("the folder can be written");
    }
}

#[tokio::test]
async fn a_key_lets_in_where_the_host_is_known() {
    let setting = Setting::new("");
    let source = source(setting.folder.path(), setting.settings());
    let first = snapshot(&source).await;
    assert_eq!(files(&first), [("a.yaml", "a: 1\n")]);
    assert_eq!(source.poll(Some(&first.revision)).await.expect("the server is up"), None);
    setting.repository.write("a.yaml", "a: 2\n");
    setting.repository.push();
    let second = source.poll(Some(&first.revision)).await.expect("the server is up").expect("there is a new commit");
    assert_eq!(files(&second), [("a.yaml", "a: 2\n")]);
}

#[tokio::test]
async fn a_key_with_a_passphrase_needs_it() {
    let setting = Setting::new("open sesame");
    let passphrase = setting.folder.path().join("passphrase");
    let mut settings = setting.settings();
    settings["auth"]["sshKeyPassphraseFile"] = json!(passphrase);
    let source = source(setting.folder.path(), settings);
    write_secret(&passphrase, "close sesame\n");
    let error = failure(&source).await;
    assert_eq!(error.reason, Reason::AuthFailed, "{}", told(&error));
    assert!(!format!("{} {error:?}", told(&error)).contains("close sesame"));
    write_secret(&passphrase, "open sesame\n");
    assert_eq!(files(&snapshot(&source).await), [("a.yaml", "a: 1\n")]);
}

#[tokio::test]
async fn a_key_that_the_server_does_not_know_is_refused() {
    let setting = Setting::new("");
    let other = SshServer::start(&setting.folder.path().join("other"), "");
    let mut settings = setting.settings();
    settings["auth"]["sshKeyFile"] = json!(other.user_key);
    let error = failure(&source(setting.folder.path(), settings)).await;
    assert_eq!(error.reason, Reason::AuthFailed, "{}", told(&error));
    assert!(told(&error).contains("the public half of"), "{}", told(&error));
}

#[tokio::test]
async fn an_unknown_host_is_refused_with_its_fingerprint_and_the_way_to_know_it() {
    let setting = Setting::new("");
    let source = source(setting.folder.path(), setting.settings());
    setting.know("");
    let error = failure(&source).await;
    assert_eq!(error.reason, Reason::Untrusted);
    let (port, file) = (setting.server.port, setting.known_hosts.display());
    let text = told(&error);
    assert!(text.contains(&format!("[127.0.0.1]:{port} is not known")) && text.contains(" SHA256:"), "{text}");
    let command = format!("ssh-keyscan -p {port} 127.0.0.1 >> {file}");
    assert!(text.contains(&format!("`{command}`")), "{text}");
    run("sh", ["-c", &command]);
    assert_eq!(files(&snapshot(&source).await), [("a.yaml", "a: 1\n")]);
}

#[tokio::test]
async fn a_host_whose_key_changed_is_refused_with_both_fingerprints() {
    let setting = Setting::new("");
    let other = SshServer::start(&setting.folder.path().join("other"), "");
    let source = source(setting.folder.path(), setting.settings());
    setting.know(&format!("# old\n[127.0.0.1]:{} {}\n", setting.server.port, other.host_key));
    let error = failure(&source).await;
    assert_eq!(error.reason, Reason::Untrusted);
    let text = told(&error);
    assert_eq!(text.matches("ssh-ed25519 SHA256:").count(), 2, "{text}");
    assert!(text.contains("the known one, on line 2") && text.contains("delete line 2"), "{text}");
}

#[tokio::test]
async fn a_repository_that_is_not_there_is_missing() {
    let setting = Setting::new("");
    let mut settings = setting.settings();
    settings["url"] = json!(format!("{}/nowhere.git", setting.server.url));
    let error = failure(&source(setting.folder.path(), settings)).await;
    assert_eq!(error.reason, Reason::NotFound, "{}", told(&error));
}
