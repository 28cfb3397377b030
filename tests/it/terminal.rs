//! A terminal as a reader of the pages has it: a shell in a folder, which finds `gatewright` and `kubectl`.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::cluster::binaries::Binaries;
use crate::cluster::process::command;
use crate::program::{Desk, Run};

/// A shell in the folder of a desk, with the kubeconfig that kubectl takes by itself.
pub(crate) struct Terminal<'a> {
    desk: &'a Desk,
    kubeconfig: PathBuf,
    programs: tempfile::TempDir,
}

impl<'a> Terminal<'a> {
    /// Opens one; without a cluster the kubeconfig is a file that does not exist.
    pub(crate) fn new(desk: &'a Desk, kubeconfig: &Path) -> Self {
        let programs = tempfile::tempdir().expect("a temporary folder");
        let gatewright = Path::new(env!("CARGO_BIN_EXE_gatewright"));
        for (name, program) in [("gatewright", gatewright), ("kubectl", &Binaries::locate().kubectl)] {
            symlink(program, programs.path().join(name)).expect("a new folder can be written");
        }
        Self { desk, kubeconfig: kubeconfig.to_owned(), programs }
    }

    /// Writes a file, as an editor would.
    pub(crate) fn write(&self, name: &str, text: &str) {
        self.desk.write(name, text);
    }

    /// Runs a line as it stands on a page.
    pub(crate) fn run(&self, line: &str) -> Run {
        let mut shell = command("bash");
        let path =
            format!("{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", self.programs.path().display());
        shell.args(["-uo", "pipefail", "-c", line]).current_dir(self.desk.path("")).env("PATH", path);
        shell.env("HOME", self.desk.path("")).env("KUBECONFIG", &self.kubeconfig);
        // What a test has written is complete.
        shell.env("GATEWRIGHT_SETTLE", "0s").env_remove("GATEWRIGHT_CONFIG").env_remove("GATEWRIGHT_STATE_DIR");
        Run::of(shell.output().expect("bash starts"))
    }

    /// Runs a line that has to go well.
    #[track_caller]
    pub(crate) fn ok(&self, line: &str) -> Run {
        let run = self.run(line);
        assert_eq!(run.code, 0, "{line}\nstdout:\n{}\nstderr:\n{}", run.out, run.err);
        run
    }
}
