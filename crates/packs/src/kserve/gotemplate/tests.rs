use proptest::prelude::*;
use serde_json::json;

use super::*;

fn data() -> Value {
    json!({
        "metadata": {"name": "llama", "namespace": "team", "labels": {"a": "1"}},
        "spec": {
            "model": {"name": "meta/llama", "uri": "hf://meta/llama"},
            "parallelism": {"data": 0, "tensor": 2, "dataLocal": 8},
            "template": {"terminationGracePeriodSeconds": 30, "containers": [{"name": "main"}, {"name": "side"}]},
            "kvCacheOffloading": {"cpu": "1Gi", "evictionPolicy": "lru", "secondary": [{"fileSystem": {}}]},
        },
        "globalConfig": {"enableTLS": false, "systemNamespace": "kserve"},
    })
}

fn fill(text: &str, data: &Value) -> Result<String, Fault> {
    super::fill(text, data, &mut Steps::default())
}

fn check(template: &str, expected: &str) {
    assert_eq!(fill(template, &data()).as_deref(), Ok(expected), "{template}");
}

fn refused(template: &str, reason: &str) {
    let fault = fill(template, &data()).expect_err(template).to_string();
    assert!(fault.contains(reason), "{template}: {fault}");
}

#[test]
fn fields_are_printed_by_their_names_in_go() {
    check("no braces", "no braces");
    check("{{ .ObjectMeta.Name }}/{{.Spec.Model.Name}}", "llama/meta/llama");
    check("{{ .Name }}.{{ .Namespace }} {{ .ObjectMeta.Labels.a }}", "llama.team 1");
    check("{{ .Spec.Model.URI }} {{ .Spec.Parallelism.DataLocal }}", "hf://meta/llama 8");
    check("{{ .Spec.Parallelism.Expert }} {{ .GlobalConfig.EnableTLS }}", "false false");
    check("{{ .Spec.Template.TerminationGracePeriodSeconds }}", "30");
    check("{{ $.Spec.Model.Name }}{{/* a comment }} */}}", "meta/llama");
}

#[test]
fn branches_follow_what_go_takes_for_true() {
    check("{{ if .GlobalConfig.EnableTLS }}a{{else}}b{{- end }}", "b");
    check("{{ if .Spec.Parallelism.Data }}a pointer to zero is there{{ end }}", "a pointer to zero is there");
    check("{{ if .Spec.Prefill }}a{{ else if .Spec.Parallelism.Expert }}b{{ else }}c{{ end }}", "c");
    check("{{ if and .Spec.Prefill .Spec.Prefill.Parallelism.Tensor }}a{{ end }}b", "b");
    check("{{ or .Spec.Parallelism.Pipeline 1 }} {{ or .Spec.Parallelism.Data 1 }}", "1 0");
    check("{{ with .Spec.Model }}{{ .Name }} {{ $.ObjectMeta.Name }}{{ end }}", "meta/llama llama");
    check("{{ range .Spec.Template.Containers }}[{{ .Name }}]{{ else }}none{{ end }}", "[main][side]");
    check("{{ if not (eq .Spec.Model.Name \"x\") }}a{{ end }}", "a");
}

#[test]
fn blanks_are_trimmed_and_line_breaks_are_not() {
    check("a \\\n  {{- if true }} b{{- end }} \\\n", "a \\\n b \\\n");
    check("a {{ true -}}   b", "a trueb");
    check("a\n{{- \"b\" }}", "a\nb");
}

#[test]
fn functions_are_those_of_go_and_of_kserve() {
    check("{{ ChildName .ObjectMeta.Name `-epp` }}", "llama-epp");
    check("{{ .ObjectMeta.Name | printf \"%s-%s\" \"x\" }}", "x-llama");
    check("{{ printf \"%d%% of %q\" 3 \"a\" }} {{ len .ObjectMeta.Name }} {{ lt 1 2 }}", "3% of \"a\" 5 true");
    check("{{ (index .Spec.Template.Containers 1).Name }}", "side");
}

#[test]
fn what_presets_compute_is_computed() {
    check("{{ shutdownTimeout .Spec.Template 15 }} {{ shutdownTimeout nil 15 }}", "10 40");
    check("{{ kvTransferConfig nil }}|{{ kvTransferConfig .Spec.Prefill }}", "|");
    let config = "--kv-transfer-config '{\\\"kv_connector\\\":\\\"OffloadingConnector\\\",\
                  \\\"kv_connector_extra_config\\\":{\\\"cpu_bytes_to_use\\\":1073741824,\
                  \\\"eviction_policy\\\":\\\"lru\\\",\
                  \\\"secondary_tiers\\\":[{\\\"root_dir\\\":\\\"/mnt/kv-cache-0\\\",\\\"type\\\":\\\"fs\\\"}],\
                  \\\"spec_name\\\":\\\"TieringOffloadingSpec\\\"},\\\"kv_role\\\":\\\"kv_both\\\"}'";
    check("{{ kvTransferConfig .Spec.KVCacheOffloading }}", config);
}

#[test]
fn everything_else_is_a_fault_that_names_the_expression() {
    refused("{{ .Spec.Modl.Name }}", "{{ .Spec.Modl.Name }}: there is no field .Modl");
    refused("{{ .Spec.Prefill.Parallelism.Tensor }}", "not set");
    refused("{{ .Spec.Parallelism.Pipeline }}", "not set");
    refused("{{ .Spec.Model }}", "a mapping cannot be printed");
    refused("{{ default 1 .Spec.Replicas }}", "there is no function \"default\"");
    refused("{{ $x := 1 }}", "variables");
    refused("{{ template \"x\" }}", "template cannot be used");
    refused("{{ if true }}", "no end that belongs to it");
    refused("a {{ end }}", "nothing is open");
    refused("{{ if true }}{{ else }}{{ else }}{{ end }}", "only be an end");
    refused("{{ .ObjectMeta.Name", "not closed");
    refused("{{ }}", "nothing to evaluate");
    refused("{{ ChildName .ObjectMeta.Name }}", "cannot be called with these arguments");
    refused("{{ (.ObjectMeta.Name }}", "parenthesis");
    refused("{{ .ObjectMeta.Name) }}", "parenthesis");
    refused(&format!("{{{{ {}1{} }}}}", "(".repeat(99), ")".repeat(99)), "parentheses");
    refused(&"{{ if true }}".repeat(99), "branches");
}

#[test]
fn loops_in_loops_end() {
    let items: Vec<Value> = (0..200).map(Value::from).collect();
    let data = json!({"spec": {"baseRefs": items}});
    let range = "{{ range $.Spec.BaseRefs }}";
    let fault = fill(&format!("{}x{}", range.repeat(4), "{{ end }}".repeat(4)), &data).expect_err("too long");
    assert_eq!(fault.reason, "the text grows too long");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}") {
        drop(fill(&text, &data()));
        drop(fill(&format!("{{{{{text}}}}}"), &data()));
    }

    #[test]
    fn no_row_of_words_makes_it_panic(words in proptest::collection::vec(
        proptest::sample::select(vec![
            "{{", "}}", "{{- ", " -}}", "if", "else", "end", "range", "with", "and", "or", "index", "len", "printf", "(", ")", "|",
            ".Spec", ".", "$", ".Spec.Template.Containers", "`x`", "\"%s\"", "\"", "1", "-1", "nil", " ", "kvTransferConfig",
        ]), 0..24)) {
        drop(fill(&words.join(" "), &data()));
        drop(fill(&words.concat(), &data()));
    }
}

#[test]
fn loops_that_print_nothing_but_text_come_to_an_end() {
    let data = json!({"metadata": {}, "spec": {"template": vec![1; 100_000]}});
    let inner = "{{ range $.Spec.Template }}{{ end }}".replace("}}{{", &format!("}}}}{}{{{{", "x".repeat(10_000)));
    let fault = fill(&inner, &data).expect_err("a gigabyte").to_string();
    assert!(fault.contains("too long"), "{fault}");
    let nested = format!(
        "{0}{0}{{{{ range $.Spec.Template }}}}y{{{{ end }}}}{1}{1}",
        "{{ range $.Spec.Template }}", "{{ end }}"
    );
    let fault = fill(&nested, &data).expect_err("it goes round too often").to_string();
    assert!(fault.contains("too long"), "{fault}");
}

#[test]
fn the_texts_of_a_service_share_their_steps() {
    let data = json!({"metadata": {}, "spec": {"template": vec![1; 100_000]}});
    let mut steps = Steps::default();
    let filled = (0..100).take_while(|_| super::fill("{{ len .Spec.Template }}", &data, &mut steps).is_ok()).count();
    assert!((1..30).contains(&filled), "{filled}");
}
