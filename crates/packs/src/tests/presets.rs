//! Fields of what is made of presets name the preset, whether it stands in the source or is built in.

use gatewright_engine::explain::{Inputs, object};
use gatewright_engine::object::ObjectId;
use gatewright_engine::tree::Tree;
use gatewright_engine::unit::{Options, Source};

const SERVICE: &str = "\
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata: {name: qwen, namespace: models}
spec:
  model: {uri: 'pvc://weights'}
  replicas: 2
";

const PRESET: &str = "\
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceServiceConfig
metadata: {name: kserve-config-llm-template, namespace: kserve}
spec:
  template:
    containers:
      - name: main
        image: registry.example/vllm:v1
";

/// Explains a field of the Deployment of the service, without the headline.
fn explained(files: &[(&str, &str)], path: &str) -> Vec<String> {
    let packs = super::only("kserve");
    let (source, options) = (Source::load(&files.iter().copied().collect::<Tree>(), &packs, None), Options::default());
    let inputs = Inputs { source: &source, packs: &packs, options: &options, config: None };
    let service = ObjectId::new("serving.kserve.io", "LLMInferenceService", "models", "qwen");
    let deployment = ObjectId::new("apps", "Deployment", "models", "qwen-kserve");
    let text = object(&inputs, &service, &deployment, path).expect(path).to_string();
    text.lines().skip(1).map(str::to_owned).collect()
}

/// Returns the line of a file of the pack in which something is said.
fn line_of(file: &str, text: &str) -> usize {
    let files = crate::embedded("kserve");
    let found = files[file].lines().position(|line| line.contains(text));
    found.expect(text) + 1
}

const IMAGE: &str = "spec.template.spec.containers[main].image";

#[test]
fn a_built_in_preset_is_named_with_its_line() {
    let found = explained(&[("a.yaml", SERVICE)], IMAGE);
    let line = line_of("presets/template.yaml", "image:");
    let origin = format!("(built-in, kserve/presets/template.yaml:{line})");
    assert!(found[1].contains("spec.template.containers[main].image: ") && found[1].ends_with(&origin), "{found:#?}");
    let found = explained(&[("a.yaml", SERVICE)], "spec.replicas");
    assert_eq!(found[1], "  spec.replicas: 2 (LLMInferenceService models/qwen, a.yaml:6)");
}

#[test]
fn a_preset_of_the_source_is_named_with_its_line() {
    let files = [("a.yaml", SERVICE), ("presets/vllm.yaml", PRESET)];
    let found = explained(&files, IMAGE);
    let origin = "(LLMInferenceServiceConfig kserve/kserve-config-llm-template, presets/vllm.yaml:8)";
    let said = format!("  spec.template.containers[main].image: \"registry.example/vllm:v1\" {origin}");
    assert_eq!(found[1], said);
    // It says nothing of the probes, so that these are those of the preset under it.
    let found = explained(&files, "spec.template.spec.containers[main].readinessProbe.periodSeconds");
    assert!(found[1].contains("(built-in, kserve/presets/template.yaml:"), "{found:#?}");
}

#[test]
fn a_preset_that_nobody_uses_is_not_asked() {
    let other = PRESET.replace("llm-template", "llm-decode-template");
    let found = explained(&[("a.yaml", SERVICE), ("b.yaml", &other)], "spec.template");
    assert!(!found.iter().any(|line| line.contains("b.yaml")), "{found:#?}");
}
