//! The pack of KServe's `LLMInferenceService`: the objects that its controller would make of one.

mod cache;
mod combine;
mod configs;
mod devices;
mod gotemplate;
mod lora;
mod merge;
mod names;
pub mod parameters;
mod picker;
mod pods;
mod presets;
mod quantity;
mod route;
mod scaling;
mod scheduler;
mod service;
pub mod settings;
mod storage;
mod tls;
mod tracing;
mod values;
mod workload;

#[cfg(test)]
mod scratch;
