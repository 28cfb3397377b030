//! `check --watch`: it checks again whenever specs change, whatever happens to their folder.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use crate::cluster::process::command;
use crate::program::Desk;

/// A sound Gateway and its class.
const SOUND: &str = "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: edge}\n\
    spec: {controllerName: kgateway.dev/kgateway}\n---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n\
    metadata: {name: a, namespace: shop}\nspec:\n  gatewayClassName: edge\n  listeners:\n  - {name: http, port: 80, protocol: HTTP}\n";

/// The command at work; it ends with the test.
pub(crate) struct Watch {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watch {
    pub(crate) fn start(desk: &Desk, arguments: &[&str]) -> Self {
        let wanted = desk.command(arguments);
        // Whoever of the three is killed, the next one goes, too.
        let dies = ["setpriv", "--pdeathsig", "KILL", "--"];
        let mut command = command(dies[0]);
        command.args(&dies[1..]).args(["timeout", "120"]).args(dies).arg(wanted.get_program()).args(wanted.get_args());
        command.current_dir(desk.path("")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("setpriv can be run");
        let out = child.stdout.take().expect("it has a pipe");
        Self { child, lines: BufReader::new(out).lines() }
    }

    /// Waits for a line with all of these; the limit of the command is that of the wait.
    #[track_caller]
    pub(crate) fn until(&mut self, said: &[&str]) {
        let mut before = Vec::new();
        for line in self.lines.by_ref() {
            let line = line.expect("it is text");
            assert!(!line.contains('\u{1b}'), "nothing is cleared that is no terminal: {line}");
            if said.iter().all(|text| line.contains(text)) {
                return;
            }
            before.push(line);
        }
        assert!(before.is_empty() && said.is_empty(), "{said:?} was never said after {before:#?}");
    }

    /// Sends the command a signal, and waits for its end.
    #[track_caller]
    pub(crate) fn ends_by(mut self, signal: &str) {
        // `timeout` passes it on, and says so by 124 if it had to end the command itself, later.
        let script = format!("kill -{signal} {}", self.child.id());
        assert!(command("sh").args(["-c", &script]).status().is_ok_and(|status| status.success()), "it runs");
        self.lines.by_ref().for_each(drop);
        let code = self.child.wait().expect("it is our child").code();
        assert_ne!(code, Some(124), "{signal} did not end it");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
    }
}

#[test]
fn a_change_is_checked_whatever_happens_to_the_folder() {
    let desk = Desk::empty("gatewright.yaml");
    desk.write("gatewright.yaml", "stateDir: ./state\n");
    desk.write("specs/edge.yaml", SOUND);
    let mut watch = Watch::start(&desk, &["check", "specs", "--watch"]);
    watch.until(&[": run 1: 0 errors; waiting for changes"]);
    desk.write("specs/edge.yaml", &SOUND.replace("listeners:", "listners:"));
    watch.until(&[": run ", ": 1 error;"]);
    // As editors save: another file takes its name.
    desk.write("specs/.edge.yaml.swp", SOUND);
    fs::rename(desk.path("specs/.edge.yaml.swp"), desk.path("specs/edge.yaml")).expect("a test may");
    watch.until(&[": run ", ": 0 errors;"]);
    desk.write("specs/edge.yaml", &SOUND[..SOUND.len() - 20]);
    watch.until(&[": run ", ": 1 error;"]);
    desk.write("specs/edge.yaml", SOUND);
    watch.until(&[": run ", ": 0 errors;"]);
    fs::remove_dir_all(desk.path("specs")).expect("a test may");
    watch.until(&[": run ", ": nothing could be checked;"]);
    desk.write("specs/edge.yaml", &SOUND.replace("Gateway\n", "Gatewya\n"));
    watch.until(&[": run ", ": 1 error;"]);
}
