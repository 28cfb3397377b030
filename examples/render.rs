//! The engine as a library: `cargo run --example render [FOLDER]` prints what a folder of specs becomes.
//!
//! ```text
//! ---
//! apiVersion: v1
//! automountServiceAccountToken: false
//! kind: ServiceAccount
//! …
//! ```

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use gatewright_engine::pack::Packs;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{self, Options};
use gatewright_engine::yaml;
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| "examples/quickstart/specs".into());
    run(Path::new(&folder), &mut io::stdout())
}

pub(crate) fn run(folder: &Path, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // The settings of a pack are those of `packs.kgateway` in the config; null takes the defaults.
    let packs = Packs::new(vec![gatewright_packs::pack("kgateway", &Value::Null)?])?;
    let rendering = unit::render(&Tree::read_dir(folder)?, &packs, &Options::default());
    // Problems are data, not an error: what they do not spoil is rendered all the same.
    for problem in &rendering.problems {
        writeln!(io::stderr(), "{problem}")?;
    }
    for object in rendering.units.iter().flat_map(|unit| &unit.objects) {
        write!(out, "---\n{}", yaml::to_string(object.body()))?;
    }
    Ok(())
}
