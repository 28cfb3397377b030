//! Rules of this repository that neither the compiler nor clippy holds, held by reading its files.
//!
//! The invariants are those of `ARCHITECTURE.md`.
//! Reading text is crude, but nothing here has to be clever: a rule is a few words and where they may stand, and a rule
//! that is in the way should be changed here, in the open.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// A text file of the repository.
struct File {
    /// Its path from the root of the repository, with slashes.
    path: String,
    text: String,
}

/// Words that may stand only in some files.
struct Rule {
    words: &'static [&'static str],
    /// The beginnings of the paths where the words may stand.
    home: &'static [&'static str],
}

const MOST_LINES: usize = 500;

/// Packages that would give engine or packs a runtime, a network or a cluster.
const EFFECTS: [&str; 7] = ["axum", "git2", "hyper", "kube", "notify", "reqwest", "tokio"];

/// Words of effects, which engine and packs do without, even in their tests.
const ENGINE: [Rule; 5] = [
    Rule { words: &["fs::"], home: &["crates/engine/src/tree"] },
    Rule { words: &["env::", "process::", "io::stderr", "io::stdin", "io::stdout"], home: &[] },
    // A parser that recurses gets a stack that is large enough.
    Rule { words: &["thread::"], home: &["crates/engine/src/admission/definition.rs"] },
    Rule { words: &["Instant::", "SystemTime"], home: &[] },
    Rule { words: &["TcpListener", "TcpStream", "ToSocketAddrs", "UdpSocket", "UnixStream"], home: &[] },
];

/// Names that only packs know, in lower case. Read are comments and tests too: what is explained by one product is not general.
const PRODUCTS: [&str; 10] =
    ["agentgateway", "dynamo", "envoy", "inference", "istio", "kgateway", "kserve", "leaderworkerset", "llm", "nvidia"];

/// Files of the engine that may name one after all.
const NAMED: [&str; 2] = [
    // Devices are called after their vendors on a cluster, whatever product asks for them.
    "crates/engine/src/devices.rs",
    "crates/engine/src/plan/guard/confirm.rs",
];

/// Words for what the daemon does in one place only; tests may do it where they are.
const DAEMON: [Rule; 6] = [
    Rule {
        words: &["env::var", "env::set_var", "env::home_dir", "env::current_dir", "env::temp_dir"],
        home: &["src/config"],
    },
    // Clippy finds the `Instant` of the standard library; tokio's, for deadlines, waits with paused tests.
    Rule { words: &["SystemTime::now", "Timestamp::now", "Zoned::now"], home: &["src/basics/clock.rs"] },
    Rule { words: &["Command::new", "process::Command"], home: &["src/cluster/exec", "src/source/git/worker.rs"] },
    Rule { words: &["kube::"], home: &["src/cluster/kube.rs", "src/cluster/kube/", "src/cluster/kubeconfig", EXEC] },
    // What a kubeconfig says about a plugin is a type of that package; a client would be another thing.
    Rule { words: &["kube::Client", "kube::client", "kube::Api", "kube::api"], home: &["src/cluster/kube"] },
    Rule {
        words: &["hyper_rustls::", "hyper_util::", "rustls::"],
        home: &["src/webhooks/connect.rs", "src/shared/connect.rs"],
    },
];

const EXEC: &str = "src/cluster/exec";

/// Hosts that packages come from: which one is used is for the machine's configuration to say. Written in two parts,
/// because this file is read too.
const HOSTS: [&str; 7] = [
    concat!("crates", ".io"),
    concat!("deb.debian", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("registry.npmjs", ".org"),
    concat!("static.rust-lang", ".org"),
];

/// Folders of the machine that somebody happened to work on.
const FOLDERS: [&str; 3] = [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/")];

const UNFINISHED: [&str; 3] = [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];

const NOTE: &str = concat!("TO", "DO");

/// Returns every text file of the repository, whether it came from git or from an archive.
fn files() -> &'static [File] {
    static FILES: OnceLock<Vec<File>> = OnceLock::new();
    FILES.get_or_init(|| {
        let mut files = Vec::new();
        walk(Path::new(env!("CARGO_MANIFEST_DIR")), "", &mut files);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    })
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<File>) {
    for entry in fs::read_dir(folder).expect("the repository can be read") {
        let entry = entry.expect("the repository can be read");
        let name = entry.file_name().into_string().expect("names in the repository are text");
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().expect("the repository can be read");
        if kind.is_dir() && !is_skipped(&entry.path(), &name) {
            walk(&entry.path(), &format!("{path}/"), files);
        } else if kind.is_file() && name != ".git" {
            // What is no text holds no words. In a worktree `.git` is a file that names a folder of the machine.
            files.extend(fs::read_to_string(entry.path()).map(|text| File { path, text }));
        }
    }
}

/// Tells whether a folder holds what programs wrote: caches, and all hidden folders but CI's.
fn is_skipped(folder: &Path, name: &str) -> bool {
    let is_cache = ["target", "__pycache__"].contains(&name) || folder.join("CACHEDIR.TAG").exists();
    is_cache || (name.starts_with('.') && name != ".ci")
}

fn file(path: &str) -> &'static File {
    files().iter().find(|file| file.path == path).expect("the file is part of the repository")
}

fn sources(prefix: &str) -> impl Iterator<Item = &'static File> {
    files().iter().filter(move |file| file.path.starts_with(prefix) && file.is_rust())
}

impl File {
    fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == "rs")
    }

    /// The file that has to declare this one as a module, and the name of that module.
    fn parent(&self) -> Option<(&'static Self, &str)> {
        let (folder, name) = self.path.rsplit_once('/')?;
        let name = name.strip_suffix(".rs")?;
        let parents = [format!("{folder}.rs"), format!("{folder}/lib.rs"), format!("{folder}/main.rs")];
        let parent = parents.iter().find_map(|parent| files().iter().find(|file| file.path == *parent))?;
        Some((parent, name))
    }

    /// Tells whether all of this file is compiled for tests only.
    fn is_test(&self) -> bool {
        self.parent().is_some_and(|(parent, name)| parent.text.contains(&format!("#[cfg(test)]\nmod {name};")))
    }

    /// The lines with their numbers, up to the tests if those are to be left out.
    fn code(&self, with_tests: bool) -> impl Iterator<Item = (usize, &str)> {
        let end = match (with_tests, self.is_test()) {
            (true, _) => self.text.len(),
            (false, true) => 0,
            (false, false) => self.text.find("#[cfg(test)]\nmod tests").unwrap_or(self.text.len()),
        };
        let lines = self.text[..end].lines().enumerate().map(|(index, line)| (index + 1, line));
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// Says where words stand that must not.
    fn breaches<'a>(&'a self, rule: &'a Rule, with_tests: bool) -> impl Iterator<Item = String> + 'a {
        let is_home = rule.home.iter().any(|home| self.path.starts_with(home));
        let lines = self.code(with_tests).filter(move |_| !is_home);
        lines.flat_map(move |(number, line)| {
            let words = rule.words.iter().filter(|word| has_word(line, word));
            words.map(move |word| format!("{}:{number}: {word}", self.path))
        })
    }
}

/// Tells whether a line has a word that is not the end of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    // Our own module has the name of the package.
    let line = line.replace("cluster::kube::", "cluster::");
    let is_inside = |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| !is_inside(&line[..at]))
}

fn assert_none(what: &str, breaches: impl IntoIterator<Item = String>) {
    let breaches: Vec<String> = breaches.into_iter().collect();
    assert!(breaches.is_empty(), "{what}:\n{}", breaches.join("\n"));
}

#[test]
fn engine_and_packs_have_no_effects() {
    for package in ["crates/engine", "crates/packs", "crates/yaml"] {
        let manifest = &file(&format!("{package}/Cargo.toml")).text;
        let names = manifest.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        let found = names.filter(|name| EFFECTS.contains(name)).map(str::to_owned);
        assert_none("the core needs a package with effects (invariant 1)", found);
        let folder = format!("{package}/src/");
        let found = sources(&folder).flat_map(|file| ENGINE.iter().flat_map(|rule| file.breaches(rule, true)));
        assert_none("the core looks at the world (invariant 1)", found);
    }
}

#[test]
fn no_product_has_a_name_in_the_engine() {
    let is_exempt = |file: &&File| !NAMED.iter().any(|named| file.path.starts_with(named));
    let found = sources("crates/engine/").filter(is_exempt).flat_map(|file| {
        let names = |line: &str| PRODUCTS.iter().any(|name| line.to_lowercase().contains(name));
        let lines = file.text.lines().enumerate().filter(move |(_, line)| names(line));
        lines.map(|(index, line)| format!("{}:{}: {line}", file.path, index + 1))
    });
    assert_none("what is about one product belongs to its pack", found);
}

#[test]
fn effects_of_the_daemon_have_one_place_each() {
    let found = sources("src/").flat_map(|file| DAEMON.iter().flat_map(|rule| file.breaches(rule, false)));
    assert_none("this belongs elsewhere (invariants 5 and 6)", found);
}

/// The folders of `src`, from the top to the ground: those of the first picture of `ARCHITECTURE.md`.
fn folders() -> Vec<&'static str> {
    let picture = file("ARCHITECTURE.md").text.split("```").nth(1).expect("it has a picture");
    picture.lines().filter_map(|line| line.trim().split_once("/ ")).map(|(name, _)| name).collect()
}

#[test]
fn a_folder_uses_only_those_below_it() {
    let folders = folders();
    let height = |name: &str| folders.iter().position(|folder| *folder == name);
    let found = sources("src/").flat_map(|file| {
        let own = file.path["src/".len()..].split(['/', '.']).next().unwrap_or_default();
        let is_root = ["lib", "main"].contains(&own);
        assert!(is_root || height(own).is_some(), "{}: {own} is not in the picture of ARCHITECTURE.md", file.path);
        let up = move |name: &str| !is_root && name != own && height(name) <= height(own);
        file.code(true).flat_map(move |(number, line)| {
            let imports = line.match_indices("crate::").map(|(at, word)| &line[at + word.len()..]);
            let names =
                imports.map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default());
            names.filter(move |name| up(name)).map(move |name| format!("{}:{number}: {own} uses {name}", file.path))
        })
    });
    assert_none("imports that run up, or around the picture (invariant 9)", found);
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    let rust = || files().iter().filter(|file| file.is_rust());
    let long = rust().filter(|file| file.text.lines().count() > MOST_LINES).map(|file| file.path.clone());
    assert_none("files of more than 500 lines (invariant 8)", long);
    let silent = rust().filter(|file| !file.is_test() && !file.text.starts_with("//! ")).map(|file| file.path.clone());
    assert_none("files that do not open with what they are for", silent);
}

#[test]
fn no_file_is_forgotten() {
    let is_root = |file: &&File| ["/lib.rs", "/main.rs"].iter().any(|name| file.path.ends_with(name));
    let is_declared = |file: &&File| {
        let declares = |(parent, name): (&File, &str)| has_word(&parent.text, &format!("mod {name};"));
        is_root(file) || file.parent().is_some_and(declares)
    };
    let folders = ["src/", "crates/engine/src/", "crates/packs/src/", "crates/yaml/src/", "tests/it/"];
    let orphans = folders.into_iter().flat_map(sources).filter(|file| !is_declared(file));
    assert_none("files that are no module", orphans.map(|file| file.path.clone()));
}

#[test]
fn nothing_is_left_unfinished() {
    let rust = files().iter().filter(|file| file.is_rust());
    let unfinished = rust.flat_map(|file| {
        let lines = file.text.lines().enumerate().filter(|(_, line)| UNFINISHED.iter().any(|word| line.contains(word)));
        lines.map(|(index, line)| format!("{}:{}: {line}", file.path, index + 1))
    });
    assert_none("unfinished code", unfinished);
    let notes = files().iter().flat_map(|file| {
        let lines = file.text.lines().enumerate().filter(|(_, line)| {
            let mut notes = line.match_indices(NOTE).map(|(at, _)| &line[at + NOTE.len()..]);
            notes.any(|rest| !rest.starts_with("(#"))
        });
        lines.map(|(index, line)| format!("{}:{}: {line}", file.path, index + 1))
    });
    assert_none("notes without the number of an issue, as in (#12)", notes);
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    // The lock file names where packages come from by itself.
    let texts = files().iter().filter(|file| file.path != "Cargo.lock");
    let found = texts.flat_map(|file| {
        let lines = file.text.lines().enumerate().filter(|(_, line)| {
            HOSTS.iter().any(|host| line.contains(host)) || FOLDERS.iter().any(|folder| starts_path(line, folder))
        });
        lines.map(|(index, line)| format!("{}:{}: {line}", file.path, index + 1))
    });
    assert_none("paths and hosts of one machine", found);
}

/// Tells whether a line has a path that begins with a folder.
fn starts_path(line: &str, folder: &str) -> bool {
    let is_inside = |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || "._-})~/$*".contains(c));
    line.match_indices(folder).any(|(at, _)| !is_inside(&line[..at]))
}
