//! Credentials that a kubeconfig leads to: tokens of plugins, and client certificates.

use super::*;

#[tokio::test]
async fn a_plugin_gives_a_token_and_gives_another_when_it_is_refused() {
    let folder = TempDir::new().expect("temporary folders can be made");
    // The first token is refused; the next is taken, and has no end.
    let token = shared().token("admin");
    let script = format!(
        r#"echo run >> "$0.runs"
           [ "$(wc -l < "$0.runs")" = 1 ] && token=wrong || token={token}
           echo '{{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": "'$token'"}}}}'"#
    );
    let plugin = folder.path().join("plugin");
    fs::write(&plugin, script).expect("a temporary folder can be written");
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": [plugin]});
    let path = edited(&folder, |config| config["users"][0]["user"] = json!({"exec": exec}));
    let refused = cluster(path.clone()).identity().await;
    fails(refused, Reason::Misconfigured, "is not allowed to run");

    let allow = vec!["sh".into()];
    let cluster =
        connect(Settings { path: Some(path), exec: Exec { allow, ..Exec::default() }, ..Settings::default() });
    let all = join_all((0..20).map(|_| cluster.identity())).await;
    assert!(all.iter().all(Result::is_ok), "{all:?}");
    let runs = fs::read_to_string(folder.path().join("plugin.runs")).expect("the plugin writes it");
    assert_eq!(runs.lines().count(), 2);
}

#[tokio::test]
async fn a_client_certificate_is_taken_from_files_and_from_a_plugin() {
    let folder = TempDir::new().expect("temporary folders can be made");
    let path = |name: &str| folder.path().join(name).display().to_string();
    openssl(&folder, &format!("req -x509 {NEW_KEY} -keyout ca.key -out ca.crt -subj /CN=ca -days 2"));
    let signed = "-CA ca.crt -CAkey ca.key -subj /O=system:masters/CN=boss -days 2";
    openssl(&folder, &format!("req -x509 {NEW_KEY} -keyout client.key -out client.crt {signed}"));
    let args = vec![format!("--client-ca-file={}", path("ca.crt"))];
    let server = ApiServer::start_on(&Arc::new(Etcd::start()), Options { args, ..Options::default() });

    let script = r#"pem() { awk '{printf "%s\\n", $0}' "$1"; }
        printf '{"apiVersion": "client.authentication.k8s.io/v1beta1", "kind": "ExecCredential", "status": {'
        printf '"clientCertificateData": "%s", "clientKeyData": "%s"}}' "$(pem "$1/client.crt")" "$(pem "$1/client.key")""#;
    fs::write(folder.path().join("plugin"), script).expect("a temporary folder can be written");
    let args = [path("plugin"), folder.path().display().to_string()];
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "sh", "args": args});
    for user in [json!({"client-certificate": "client.crt", "client-key": "client.key"}), json!({"exec": exec})] {
        let mut config = read_json(&server.kubeconfig("admin"));
        config["users"][0]["user"] = user.clone();
        fs::write(folder.path().join("kubeconfig"), config.to_string()).expect("a temporary folder can be written");
        let exec = Exec { allow: vec!["sh".into()], ..Exec::default() };
        let cluster = connect(Settings { path: Some(folder.path().join("kubeconfig")), exec, ..Settings::default() });
        assert!(cluster.identity().await.is_ok(), "{user}: {:?}", cluster.identity().await);
    }
}
