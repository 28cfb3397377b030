//! The cost of bringing the same objects to the same API server: gatewright beside its peers.
//!
//! `cargo bench --bench side_by_side` measures everything and prints a Markdown table; `-- --help` tells how to measure
//! less. Each peer begins with an empty API server of its own, and carries out all steps on it.
//! `docs/performance.md` says how to read the figures; `peers/README.md` says what the peers are.
//!
//! `cargo test` runs this too, without the argument: five Gateways, two peers, and a look whether every step did what it
//! is for.

#[path = "../../tests/support/cluster.rs"]
#[expect(dead_code, unused_imports, reason = "what only tests need")]
mod cluster;

mod cost;
mod fleet;
mod peers;
mod several;
mod site;
mod table;

use std::path::PathBuf;

use clap::Parser;

use peers::{Peer, Programs, Step};
use site::Site;
use table::Row;

/// Measures what gatewright and its peers cost on a real API server.
#[derive(Debug, Parser)]
struct Args {
    /// The number of Gateways of four objects each; several sizes with commas.
    #[arg(long, value_delimiter = ',', default_value = "250,1000")]
    gateways: Vec<usize>,
    /// The programs that are measured, with commas.
    #[arg(long, value_delimiter = ',', value_enum, default_values = ["gatewright", "kubectl", "helm", "flux", "sender"])]
    peers: Vec<Peer>,
    /// The steps that are carried out, in their order, with commas; each needs the ones before it.
    #[arg(long, value_delimiter = ',', value_enum, default_values = ["first", "same", "report", "estimate", "drift", "prune"])]
    steps: Vec<Step>,
    /// So many API servers at once instead, and gatewright alone, in the steps of a fleet.
    #[arg(long)]
    servers: Option<usize>,
    /// Another gatewright than the one that belongs to this bench.
    #[arg(long, value_name = "PATH", default_value = env!("CARGO_BIN_EXE_gatewright"))]
    gatewright: PathBuf,
    /// The flag that cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        return check();
    }
    let args = Args::parse();
    if let Some(servers) = args.servers {
        let programs = Programs::build(&[], args.gatewright.clone());
        for gateways in args.gateways {
            say(&several::measure(servers, gateways, &args.gatewright, &programs));
        }
        return;
    }
    let programs = Programs::build(&args.peers, args.gatewright);
    let mut rows = Vec::new();
    for gateways in args.gateways {
        for peer in &args.peers {
            rows.extend(measure(*peer, gateways, &args.steps, &programs));
        }
    }
    say(&table::write(&rows));
}

/// Carries out the steps of a peer on an API server of its own.
fn measure(peer: Peer, gateways: usize, steps: &[Step], programs: &Programs) -> Vec<Row> {
    let mut site = Site::new(gateways);
    let can = steps.iter().filter(|step| peer.can(**step));
    let mut rows = Vec::new();
    for step in can {
        site.prepare(*step);
        let cost = site.measure(peer, *step, programs);
        site.assert_as_wanted();
        complain(&format!("{gateways} gateways, {peer:?}, {step:?}: {cost:?}"));
        rows.push(Row { gateways, peer, step: *step, cost });
    }
    rows
}

/// Runs as a test, unless tests of other names are asked for.
fn check() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if !words.is_empty() && !words.iter().any(|word| "side_by_side".contains(word.as_str())) {
        return;
    }
    let peers = [Peer::Gatewright, Peer::Kubectl];
    let programs = Programs::build(&peers, env!("CARGO_BIN_EXE_gatewright").into());
    let rows: Vec<Row> = peers.iter().flat_map(|peer| measure(*peer, 5, &Step::ALL, &programs)).collect();
    assert_eq!(rows.len(), 6 + 3, "kubectl cannot prune, and does not report");
    for row in rows.iter().filter(|row| row.step == Step::First) {
        assert_eq!(row.cost.requests.get("APPLY"), Some(&20), "{row:?}");
        assert!(row.cost.peak > 0 && row.cost.cpu > 0.0 && row.cost.wall > 0.0, "{row:?}");
    }
    say(&table::write(&rows));
    say(&several::measure(2, 5, env!("CARGO_BIN_EXE_gatewright").as_ref(), &programs));
}

#[expect(clippy::print_stdout, reason = "the figures are for the person who runs this")]
fn say(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "progress is for the person who waits")]
fn complain(text: &str) {
    eprintln!("{text}");
}
