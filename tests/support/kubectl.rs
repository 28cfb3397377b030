//! The real kubectl, for what a person at a terminal would do.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use super::ApiServer;
use super::binaries::Binaries;
use super::process::command;

impl ApiServer {
    /// Runs kubectl as `admin`, whatever comes of it.
    pub(crate) fn kubectl(&self, args: &[&str]) -> Output {
        self.prepare_kubectl(args).output().expect("kubectl can be run")
    }

    /// Runs kubectl as `admin` and returns its output; panics with its errors if it fails.
    pub(crate) fn kubectl_ok(&self, args: &[&str]) -> String {
        stdout_of(args, self.kubectl(args))
    }

    /// Runs kubectl as `admin` with `input`, for arguments such as `apply -f -`; panics with its errors if it fails.
    pub(crate) fn kubectl_stdin(&self, args: &[&str], input: &str) -> String {
        let mut command = self.prepare_kubectl(args);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("kubectl can be run");
        let mut stdin = child.stdin.take().expect("it was asked for a moment ago");
        // It fails when kubectl gives up before it has read everything, and then kubectl's errors tell more.
        drop(stdin.write_all(input.as_bytes()));
        drop(stdin);
        stdout_of(args, child.wait_with_output().expect("kubectl can be waited for"))
    }

    fn prepare_kubectl(&self, args: &[&str]) -> Command {
        let mut command = command(&Binaries::locate().kubectl);
        // A home of its own: the cache that is kept there goes by address, and ports are used again by other tests.
        command.env("HOME", self.folder()).arg("--kubeconfig").arg(self.folder().join("admin.kubeconfig")).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn stdout_of(args: &[&str], output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kubectl {} failed ({}): {errors}", args.join(" "), output.status);
    String::from_utf8(output.stdout).expect("kubectl prints text")
}
