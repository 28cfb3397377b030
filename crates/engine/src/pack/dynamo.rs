//! The pack of NVIDIA Dynamo: graphs of components that serve a model together.
//!
//! By default a graph is passed on to Dynamo's operator, which runs in the cluster. Where there is none, a graph is
//! expanded: what the operator would make is worked out here and applied like everything else. That is a pure function
//! of graph, settings and what the cluster serves; what only a controller can do (profiling, loading of adapters,
//! restarts one after the other, checkpoints) is not there, and says so.

mod backend;
mod command;
mod expand;
mod fill;
mod model;
mod network;
mod nodes;
mod picker;
mod pod;
mod read;
pub mod settings;
mod workload;

#[cfg(test)]
mod tests;

/// The file of an endpoint picker's configuration.
const PICKER_KEY: &str = "epp-config-dynamo.yaml";

const FILES: [(&str, &str); 12] = [
    ("types.yaml", include_str!("../../../../templates/dynamo/types.yaml")),
    ("backends/sglang.yaml", include_str!("../../../../templates/dynamo/backends/sglang.yaml")),
    ("backends/trtllm.yaml", include_str!("../../../../templates/dynamo/backends/trtllm.yaml")),
    ("backends/vllm.yaml", include_str!("../../../../templates/dynamo/backends/vllm.yaml")),
    ("rbac.yaml", include_str!("../../../../templates/dynamo/rbac.yaml")),
    ("claims.yaml", include_str!("../../../../templates/dynamo/claims.yaml")),
    ("configmaps.yaml", include_str!("../../../../templates/dynamo/configmaps.yaml")),
    ("services.yaml", include_str!("../../../../templates/dynamo/services.yaml")),
    ("picker.yaml", include_str!("../../../../templates/dynamo/picker.yaml")),
    ("workloads.yaml", include_str!("../../../../templates/dynamo/workloads.yaml")),
    ("cliques.yaml", include_str!("../../../../templates/dynamo/cliques.yaml")),
    ("entrances.yaml", include_str!("../../../../templates/dynamo/entrances.yaml")),
];
