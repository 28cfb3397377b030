//! Progress of a command that waits, on standard error, where nobody sits at a terminal.

use std::net::TcpListener;
use std::process::{Child, Stdio};

use crate::program::{Desk, Run};
use crate::rollout::{BAD, fleet};

fn start(desk: &Desk, arguments: &[&str]) -> Child {
    let mut program = desk.command(arguments);
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

fn end(program: Child) -> Run {
    Run::of(program.wait_with_output().expect("it ends"))
}

#[test]
fn a_round_says_what_each_cluster_is_at() {
    let fleet = fleet("");
    fleet.desk.run(&["sync"]).exits(0);
    fleet.wants(BAD);
    fleet.desk.replace("gatewright.yaml", "timeout: 90s", "timeout: 13s");
    let run = fleet.desk.run(&["sync"]).exits(1);
    let told = format!(
        "gatewright: sync {}: 0 of 4 clusters, waiting for canary (Deployment {}/a: ",
        fleet.sync, fleet.namespace
    );
    run.complains(&told).complains("), dr (waits for its turn), edge (waits for its turn) and 1 more\n");
}

#[test]
fn a_source_that_does_not_answer_is_named_unless_quiet_is_asked_for() {
    // Nobody accepts a connection.
    let silent = TcpListener::bind("127.0.0.1:0").expect("the loopback address has free ports");
    let address = silent.local_addr().expect("a bound socket has an address");
    let desk = Desk::empty("gatewright.yaml");
    desk.write(
        "gatewright.yaml",
        &format!(
            "stateDir: state\nsources: {{specs: {{git: {{url: \"https://{address}/specs.git\", timeout: 12s}}}}}}\n\
             clusters: {{lab: {{directory: {{path: out}}}}}}\nsyncs: {{edge: {{source: specs, clusters: {{names: [lab]}}}}}}\n"
        ),
    );
    let (loud, quiet) = (start(&desk, &["plan"]), start(&desk, &["plan", "--quiet"]));
    end(loud)
        .exits(1)
        .complains("gatewright: fetch: 0 of 1 source, waiting for specs\n")
        .complains("cannot read source");
    let quiet = end(quiet).exits(1).complains("cannot read source");
    assert!(!quiet.err.contains("waiting for"), "{}", quiet.err);
}
