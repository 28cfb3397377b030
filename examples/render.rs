//! The engine as a library: `cargo run --example render [FOLDER]` prints what a folder of specs becomes.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;

use gatewright_engine::pack::{Pack, Packs};
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options};
use gatewright_engine::yaml;
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("examples/quickstart/specs"), PathBuf::from);
    // The settings of a pack are those of `packs.kgateway` in the config; null takes the defaults.
    let packs = Packs::new(vec![Pack::builtin("kgateway", &Value::Null)?])?;
    let rendering = unit::render(&Tree::read_dir(&folder)?, &packs, &Options::default());
    // Problems are data, not an error: what they do not spoil is rendered all the same.
    for problem in &rendering.problems {
        writeln!(io::stderr(), "{problem}")?;
    }
    for object in rendering.units.iter().flat_map(|unit| &unit.objects) {
        write!(io::stdout(), "---\n{}", yaml::to_string(object.body()))?;
    }
    Ok(())
}
