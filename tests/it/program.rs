//! The program, run as a person runs it: a folder with a config, and the exit code and words that come back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::cluster::binaries::in_repository;
use crate::cluster::process::command;

/// A number that a test goes by, unless the person who wants to look for longer asks for another one.
#[expect(clippy::disallowed_methods, reason = "tests have no config file")]
pub(crate) fn asked(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

/// A folder with a configuration of its own, gone when the test is over.
pub(crate) struct Desk {
    folder: tempfile::TempDir,
    config: PathBuf,
}

/// The result of a run of the program.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the program prints text");
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Asserts on the exit code, and shows everything when it is another one.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Asserts that the output has a text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.out.contains(text), "no {text:?} in stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Asserts that the errors have a text.
    #[track_caller]
    pub(crate) fn complains(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no {text:?} in stderr:\n{}\nstdout:\n{}", self.err, self.out);
        self
    }
}

impl Desk {
    /// Copies the quick start; `config` names one of its config files.
    pub(crate) fn quickstart(config: &str) -> Self {
        let desk = Self::empty(config);
        copy(&in_repository("examples/quickstart"), desk.folder.path());
        desk
    }

    /// Copies an example, without what running it has made.
    pub(crate) fn example(name: &str) -> Self {
        let desk = Self::empty("gatewright.yaml");
        copy(&in_repository(&format!("examples/{name}")), desk.folder.path());
        desk
    }

    /// Makes an empty folder; the config file is still to be written.
    pub(crate) fn empty(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = folder.path().join(config);
        Self { folder, config }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("it is below the folder")).expect("the folder can be made");
        fs::write(&path, text).expect("the file can be written");
        // Keys and tokens are among what is written.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect(path)
    }

    /// Reads all files below a folder, as one text.
    pub(crate) fn read_all(&self, folder: &str) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(self.path(folder)).into_iter().flatten().flatten() {
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            let is_folder = entry.file_type().is_ok_and(|file_type| file_type.is_dir());
            text += &if is_folder { self.read_all(&path) } else { self.read(&path) };
        }
        text
    }

    /// Replaces a text in a file; it must be there.
    pub(crate) fn replace(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "no {from:?} in {path}");
        self.write(path, &text.replacen(from, to, 1));
    }

    /// The program in this folder, as somebody starts it who has no config file.
    pub(crate) fn without_config(&self, arguments: &[&str]) -> Command {
        let mut command = command(Path::new(env!("CARGO_BIN_EXE_gatewright")));
        command.args(arguments).current_dir(self.folder.path()).env("HOME", self.path("home"));
        for variable in ["KUBECONFIG", "GATEWRIGHT_CONFIG", "GATEWRIGHT_STATE_DIR", "XDG_STATE_HOME"] {
            command.env_remove(variable);
        }
        command
    }

    /// The program with this configuration, before it is started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.without_config(arguments);
        command.arg("--config").arg(&self.config).env("HOME", self.folder.path());
        // What a test has written is complete.
        command.env("GATEWRIGHT_SETTLE", "0s");
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(arguments).output().expect("the program starts"))
    }

    /// Runs the program with a kubeconfig where kubectl would find it.
    pub(crate) fn run_with(&self, kubeconfig: &Path, arguments: &[&str]) -> Run {
        let mut command = self.command(arguments);
        Run::of(command.env("KUBECONFIG", kubeconfig).output().expect("the program starts"))
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("the example is there") {
        let entry = entry.expect("the example can be listed");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("it has a type").is_dir() {
            let name = entry.file_name();
            if name == "state" || name == "rendered" {
                continue;
            }
            fs::create_dir_all(&target).expect("a folder can be made");
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}
