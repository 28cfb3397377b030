//! All of gatewright, with a pack in Rust beside those that it comes with:
//! `cargo run --example own-pack -- render examples/own-pack/specs`.
//!
//! Into how many pods a cache is split is computed here; the rest is the folder `pack`. Every command knows it.

use std::process::ExitCode;
use std::sync::Arc;

use gatewright_engine::merge::origin::{Layer, LayerName, Merged};
use gatewright_engine::pack::builtin::{Builtin, Files};
use gatewright_engine::pack::{Pack, PackError, Provision, Subject, ValuesGenerator, document};
use gatewright_engine::problem::Problem;
use gatewright_engine::quantity::Quantity;
use gatewright_engine::schema::Schema;
use gatewright_engine::spec::Resource;
use gatewright_engine::yaml::Node;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const FILES: [(&str, &str); 3] = [
    ("pack.yaml", include_str!("pack/pack.yaml")),
    ("defaults.yaml", include_str!("pack/defaults.yaml")),
    ("statefulset.yaml", include_str!("pack/statefulset.yaml")),
];

fn main() -> ExitCode {
    let own = Builtin { name: "cache", files: Files::from(FILES), build: pack };
    gatewright::main_with(gatewright_packs::all().into_iter().chain([own]).collect())
}

/// Puts the pack together; a folder of the config file may have replaced some of the files.
fn pack(files: &Files<'_>, _settings: &Value) -> Result<Pack, PackError> {
    let schema = Schema::of::<Resource<Parameters>>().map_err(PackError::Schema)?;
    Pack::new(files, schema, Arc::new(Generator { defaults: document(files, "defaults.yaml")? }))
}

/// The `spec` of a `CacheParameters`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Parameters {
    /// The image of a pod.
    image: Option<String>,
    /// The memory of a pod at most.
    shard: Option<String>,
}

struct Generator {
    defaults: Node,
}

impl ValuesGenerator for Generator {
    fn defaults(&self, _subject: &Subject<'_>) -> Merged {
        Merged::of(&Layer::new(LayerName::Builtin, "cache/defaults.yaml", &self.defaults))
    }

    fn values(&self, subject: &Subject<'_>, parameters: &Merged) -> Result<Provision, Vec<Problem>> {
        let Parameters { image, shard } = subject.read(parameters)?;
        let size = subject.document.root.at(["spec", "size"]).map(Node::to_value).unwrap_or_default();
        let bytes = |amount: &Value| u64::try_from(Quantity::of(amount)?.whole()).ok().filter(|bytes| *bytes > 0);
        let (Some(size), Some(shard)) = (bytes(&size), bytes(&json!(shard))) else {
            return Err(vec![subject.problem("its size and its shards must be more than nothing, such as 3Gi")]);
        };
        let pods = size.div_ceil(shard);
        let memory = size.div_ceil(pods);
        let name = &subject.document.id.name;
        Ok(Provision::Values(json!({"name": name, "image": image, "pods": pods, "memory": memory})))
    }
}
