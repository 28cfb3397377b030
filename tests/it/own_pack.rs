//! The whole program with packs of one's own: `examples/own-pack`, which `cargo test` builds like every example.

use std::path::PathBuf;

use crate::cluster::binaries::in_repository;
use crate::cluster::process::command;
use crate::program::Run;

/// Runs the example.
fn run(args: &[&str]) -> Run {
    let test = std::env::current_exe().expect("a test knows where it is");
    let folder = test.ancestors().nth(2).expect("it is in a folder of the profile");
    let program: PathBuf = folder.join("examples/own-pack");
    let output = command(&program).args(args).current_dir(in_repository("")).output();
    Run::of(output.expect("cargo build --examples builds it, as cargo test does where no --test is named"))
}

#[test]
fn a_pack_in_rust_is_rendered_by_the_command_line_that_it_is_built_into() {
    let rendered = run(&["render", "examples/own-pack/specs"]).exits(0);
    assert_eq!(rendered.err, "");
    // Nine in pieces of at most two.
    rendered.says("namespace: shop").says("replicas: 5").says("memory: 1932735284");
}

#[test]
fn packs_that_are_built_in_are_there_beside_it() {
    run(&["render", "examples/quickstart/specs", "examples/own-pack/specs"])
        .exits(0)
        .says("kind: StatefulSet")
        .says("image: registry.example.com/cache:v1")
        .says("kind: ServiceAccount");
}
