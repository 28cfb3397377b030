//! Real git servers: https with a token, and ssh with keys.
//!
//! Both serve the bare repositories of a folder, and end with the tests.
//! Repositories are made with the `git` program and not with the library under test.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::binaries::in_repository;
use super::process::{Process, command, free_port};

const START_LIMIT: Duration = Duration::from_secs(20);

/// A bare repository, and a clone of it to commit in.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The bare one.
    pub(crate) bare: PathBuf,
    work: PathBuf,
}

impl Repository {
    /// Makes `NAME.git` in a folder, empty and with `main` as its default branch.
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let (bare, work) = (folder.join(format!("{name}.git")), folder.join(format!("{name}.work")));
        run("git", ["init", "-q", "--bare", "-b", "main", &text(&bare)]);
        run("git", ["init", "-q", "-b", "main", &text(&work)]);
        let repository = Self { bare, work };
        repository.git(&["remote", "add", "origin", &text(&repository.bare)]);
        repository
    }

    /// Writes a file of the clone.
    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.work.join(path);
        fs::create_dir_all(path.parent().expect("a file stands in a folder")).expect("the clone can be written");
        fs::write(path, content).expect("the clone can be written");
    }

    /// Returns the folder of the clone.
    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    /// Commits everything in the clone, pushes the present branch, and returns the commit.
    pub(crate) fn push(&self) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "a change"]);
        self.git(&["push", "-q", "--force", "origin", "HEAD"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Runs git in the clone, and returns what it prints.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let work = text(&self.work);
        let me =
            ["-C", &work, "-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgSign=false"];
        run("git", me.iter().chain(args))
    }

    /// Changes the configuration of the bare repository.
    pub(crate) fn configure(&self, key: &str, value: &str) {
        run("git", ["-C", &text(&self.bare), "config", key, value]);
    }
}

/// A server that speaks https and asks for a token.
#[derive(Debug)]
pub(crate) struct HttpsServer {
    /// The address of the repositories' folder, without a slash at its end.
    pub(crate) url: String,
    /// The certificate of the authority that vouches for the server.
    pub(crate) authority: PathBuf,
    token: PathBuf,
    log: PathBuf,
    _process: Process,
}

impl HttpsServer {
    /// Serves the repositories of a folder to who brings the token; the path `moved` redirects to another address.
    pub(crate) fn start(root: &Path, token: &str, moved_to: &str) -> Self {
        let folder = root.join("https");
        fs::create_dir_all(&folder).expect("the folder can be written");
        let port = free_port();
        let authority = make_certificates(&folder, port);
        let (token_file, log) = (folder.join("token"), folder.join("requests"));
        fs::write(&token_file, token).expect("the folder can be written");
        let args = [
            text(&in_repository("tests/support/git_https.py")),
            format!("--port={port}"),
            format!("--root={}", root.display()),
            format!("--certificate={}/server.pem", folder.display()),
            format!("--key={}/server.key", folder.display()),
            format!("--token-file={}", token_file.display()),
            format!("--log={}", log.display()),
            format!("--moved-to={moved_to}"),
        ];
        let mut process = Process::start(Path::new("python3"), &args, &folder);
        process.wait_until("an open port", START_LIMIT, || is_open(port));
        Self { url: format!("https://127.0.0.1:{port}"), authority, token: token_file, log, _process: process }
    }

    /// Changes the token that the server asks for.
    pub(crate) fn set_token(&self, token: &str) {
        fs::write(&self.token, token).expect("the folder can be written");
    }

    /// Returns the requests so far: method, path, status, and whether they brought a token.
    pub(crate) fn requests(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Counts the requests so far that contain a text.
    pub(crate) fn count(&self, part: &str) -> usize {
        self.requests().iter().filter(|request| request.contains(part)).count()
    }
}

/// An ssh server, and a key that it lets in.
#[derive(Debug)]
pub(crate) struct SshServer {
    /// The address of this machine, without a slash at its end.
    pub(crate) url: String,
    /// The port.
    pub(crate) port: u16,
    /// The private key of a user that is let in.
    pub(crate) user_key: PathBuf,
    /// The public key of the server: the algorithm and the key in base64.
    pub(crate) host_key: String,
    _process: Process,
}

impl SshServer {
    /// Serves this machine to the user who runs the tests; the user's key may have a passphrase.
    pub(crate) fn start(root: &Path, passphrase: &str) -> Self {
        let folder = root.join("ssh");
        fs::create_dir_all(&folder).expect("the folder can be written");
        let (host, user_key) = (folder.join("host"), folder.join("user"));
        for (file, passphrase) in [(&host, ""), (&user_key, passphrase)] {
            run("ssh-keygen", ["-q", "-t", "ed25519", "-N", passphrase, "-C", "test", "-f", &text(file)]);
        }
        // An sshd that is started by root insists on this folder; other users need none.
        drop(fs::create_dir_all("/run/sshd"));
        let (port, config) = (free_port(), folder.join("config"));
        let lines = [
            format!("Port {port}"),
            "ListenAddress 127.0.0.1".to_owned(),
            format!("HostKey {}", host.display()),
            format!("AuthorizedKeysFile {}.pub", user_key.display()),
            "PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin prohibit-password".to_owned(),
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\n".to_owned(),
        ];
        fs::write(&config, lines.join("\n")).expect("the folder can be written");
        let args = ["-D", "-e", "-f", &text(&config)].map(str::to_owned);
        let mut process = Process::start(Path::new("/usr/sbin/sshd"), &args, &folder);
        process.wait_until("an open port", START_LIMIT, || is_open(port));
        let url = format!("ssh://{}@127.0.0.1:{port}", run("id", ["-un"]));
        let host_key = fs::read_to_string(host.with_extension("pub")).expect("ssh-keygen writes the public key too");
        let host_key = host_key.rsplit_once(' ').expect("the comment comes last").0.to_owned();
        Self { url, port, user_key, host_key, _process: process }
    }

    /// Returns the line of a file of known hosts that stands for this server.
    pub(crate) fn known_hosts_line(&self) -> String {
        format!("[127.0.0.1]:{} {}\n", self.port, self.host_key)
    }
}

/// Makes a server's certificate, which comes from an authority by way of another one, and returns the authority's.
///
/// The server sends the one between along, as those of companies do.
fn make_certificates(folder: &Path, port: u16) -> PathBuf {
    let path = |name: &str| text(&folder.join(name));
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
    let make = |name: &str, extensions: &[&str], issuer: &[&str]| {
        // The port keeps the authorities of different tests apart.
        let (subject, key, certificate) = (format!("/CN={name} {port}"), format!("{name}.key"), format!("{name}.crt"));
        let own = ["-subj", &subject, "-keyout", &path(&key), "-out", &path(&certificate)];
        let extensions = extensions.iter().flat_map(|extension| ["-addext", extension]);
        run("openssl", new.split(' ').chain(own).chain(extensions).chain(issuer.iter().copied()));
    };
    make("root", &["keyUsage=keyCertSign"], &[]);
    make("between", &["keyUsage=keyCertSign"], &["-CA", &path("root.crt"), "-CAkey", &path("root.key")]);
    make(
        "server",
        &["subjectAltName=IP:127.0.0.1,DNS:git.example.com", "basicConstraints=critical,CA:FALSE"],
        &["-CA", &path("between.crt"), "-CAkey", &path("between.key")],
    );
    let read = |name: &str| fs::read_to_string(path(name)).expect("openssl has written it");
    fs::write(path("server.pem"), read("server.crt") + &read("between.crt")).expect("the folder can be written");
    folder.join("root.crt")
}

fn is_open(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn text(path: &Path) -> String {
    path.to_str().expect("temporary folders have plain names").to_owned()
}

/// Runs a program to its end, away from the configuration of whoever runs the tests, and returns what it prints.
pub(crate) fn run<S: AsRef<std::ffi::OsStr>>(program: &str, args: impl IntoIterator<Item = S>) -> String {
    let mut command = command(program);
    command.args(args).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().expect("the tests of git sources need git, openssl, openssh and python3");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
