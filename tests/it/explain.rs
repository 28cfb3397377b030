//! The origin of fields: what `explain` says is true, for every field of every case, and in the words of the commands.

use std::fs;

use gatewright::desired::cases::Case;
use gatewright_engine::check::check;
use gatewright_engine::diff::differences;
use gatewright_engine::explain::{self, Effect, Explanation, Inputs, Said};
use gatewright_engine::mask::Masker;
use gatewright_engine::object::{Object, ObjectId};
use gatewright_engine::problem::Place;
use gatewright_engine::schema::Schema;
use gatewright_engine::tree::{Entry, Tree};
use gatewright_engine::unit::{self, Source, Unit};
use gatewright_engine::yaml;
use serde_json::{Value, json};

use crate::cluster::binaries::in_repository;
use crate::golden::cases;
use crate::program::Desk;

const DEPLOYMENT: &str = "Deployment/shop/storefront";

/// Cases in which something takes no other value: a patch tests what it finds, or is for one kind of workload.
const COUPLED: [&str; 2] = ["a_document_in_a_config_map_is_patched", "an_agentgateway_on_every_node"];

fn load(case: &Case) -> Source {
    Source::load(&case.tree, &case.packs, case.options.target_namespace.as_deref())
}

fn explain(case: &Case, source: &Source, unit: &Unit) -> Vec<Explanation> {
    let inputs = Inputs { source, packs: &case.packs, options: &case.options, config: None };
    explain::objects(&inputs, &unit.id).expect("it is rendered")
}

/// Returns the Gateways that something is rendered for.
fn gateways(case: &Case) -> impl Iterator<Item = &Unit> {
    case.rendering.units.iter().filter(|unit| unit.id.kind == "Gateway" && rendered(unit).next().is_some())
}

/// Returns the objects that are rendered for a Gateway; its specs are as they were written.
fn rendered(unit: &Unit) -> impl Iterator<Item = &Object> {
    unit.generated.iter().map(|generated| &generated.object).chain(&unit.objects)
}

/// Counts the fields of a value that have no parts.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>().max(1),
        Value::Object(fields) => fields.values().map(count).sum::<usize>().max(1),
        _ => 1,
    }
}

fn object<'a>(units: &'a [Unit], id: &ObjectId) -> Option<&'a Object> {
    units.iter().flat_map(rendered).find(|object| object.id() == id)
}

#[test]
fn every_field_of_every_case_has_an_explanation() {
    for case in cases() {
        let source = load(case);
        for unit in gateways(case) {
            let explanations = explain(case, &source, unit);
            let ids: Vec<&ObjectId> = explanations.iter().map(|explanation| &explanation.object).collect();
            assert!(rendered(unit).all(|object| ids.contains(&object.id())), "{}: {}", case.name, unit.id);
            for explanation in &explanations {
                let object = object(&case.rendering.units, &explanation.object).expect("it is rendered");
                assert_eq!(explanation.leaves.len(), count(object.body()), "{}: {}", case.name, object.id());
                for leaf in &explanation.leaves {
                    let has_causes = !leaf.causes.is_empty();
                    assert_ne!(has_causes, leaf.fixed.is_some(), "{}: {}: {}", case.name, object.id(), leaf.path);
                    assert!(leaf.causes.is_sorted_by_key(|cause| cause.effect), "{}: {}", case.name, leaf.path);
                }
                let is_free = explanation.untried.is_empty() || COUPLED.contains(&case.name.as_str());
                assert!(is_free, "{}: {:?}", case.name, explanation.untried);
            }
        }
    }
}

#[test]
fn explaining_twice_gives_the_same_bytes() {
    for case in cases().iter().step_by(8) {
        let Some(unit) = gateways(case).next() else { continue };
        let bytes = || serde_json::to_string(&explain(case, &load(case), unit)).expect("it is plain data");
        assert_eq!(bytes(), bytes(), "{}", case.name);
    }
}

/// Writes another value into a file in the place of one; `None` where it is not written plainly.
fn edited(tree: &Tree, place: &Place, value: &Value) -> Option<Tree> {
    let (from, to) = match value {
        Value::String(text) => (text.clone(), format!("{}x", text.trim_end_matches('x'))),
        Value::Number(number) => (number.to_string(), (number.as_i64()? + 1).to_string()),
        Value::Bool(value) => (value.to_string(), (!value).to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let edit = |text: &str| {
        let line = usize::try_from(place.line.checked_sub(1)?).ok()?;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let at = start + usize::try_from(place.column.checked_sub(1)?).ok()?;
        let rest = text.get(at..)?.strip_prefix(from.as_str())?;
        (!from.is_empty() && rest.starts_with([',', '}', ']', '\n', ' '])).then(|| format!("{}{to}{rest}", &text[..at]))
    };
    let mut is_edited = false;
    let files: Vec<(String, String)> = tree
        .files()
        .filter_map(|(path, entry)| match entry {
            Entry::Text(text) if path == &*place.file => {
                let text = edit(text)?;
                is_edited = true;
                Some((path.to_owned(), text))
            }
            Entry::Text(text) => Some((path.to_owned(), text.to_string())),
            Entry::Unreadable(_) | Entry::NotEntered(_) => None,
        })
        .collect();
    is_edited.then(|| Tree::from_iter(files))
}

/// Edits the file where a parameter stands and compares what is different then with what was said about it.
fn edit_proves(case: &Case, unit: &Unit, explanations: &[Explanation], input: &Said) -> bool {
    let Some(place) = &input.place else { return false };
    let Some(tree) = edited(&case.tree, place, &input.value) else { return false };
    let rendering = unit::render(&tree, &case.packs, &case.options);
    if !rendering.units.iter().any(|other| other.id == unit.id) {
        return false;
    }
    for explanation in explanations {
        let before = object(&case.rendering.units, &explanation.object).expect("it is rendered");
        let after = object(&rendering.units, &explanation.object).map(Object::body);
        let changed = differences(before.body(), after.unwrap_or(&Value::Null), "", &Masker::default());
        let changed: Vec<&str> = changed.iter().filter(|it| it.before.is_some()).map(|it| it.path.as_str()).collect();
        let is_changed = |path: &str| {
            changed.iter().any(|at| path.strip_prefix(at).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)))
        };
        for leaf in &explanation.leaves {
            let effect = leaf.causes.iter().find(|cause| cause.said == *input).map(|cause| cause.effect);
            let about = format!("{}: {place}: {}: {}", case.name, explanation.object, leaf.path);
            match effect {
                // It may govern from another value on.
                Some(Effect::Governs) => {}
                Some(Effect::Sets) => assert!(is_changed(&leaf.path), "{about} is said to be set there"),
                None => assert!(!is_changed(&leaf.path), "{about} is not said to come from there"),
            }
        }
    }
    true
}

#[test]
fn an_edit_changes_the_fields_that_name_it_and_no_others() {
    let names =
        ["class_and_gateway_parameters_merge", "a_service_as_the_cloud_wants_it", "the_quickstart", "placement"];
    let mut proven = 0;
    for case in cases().iter().filter(|case| names.contains(&case.name.as_str())) {
        let specs = load(case);
        for unit in gateways(case) {
            let explanations = explain(case, &specs, unit);
            let mut seen = Vec::new();
            for cause in explanations.iter().flat_map(|it| &it.leaves).flat_map(|leaf| &leaf.causes) {
                if !seen.contains(&&cause.said) && !["metadata.name", "metadata.namespace"].contains(&&*cause.said.path)
                {
                    seen.push(&cause.said);
                    proven += usize::from(edit_proves(case, unit, &explanations, &cause.said));
                }
            }
        }
    }
    assert!(proven > 100, "only {proven} edits could be made");
}

#[test]
fn a_field_names_its_line_and_what_lower_layers_had_said() {
    let desk = Desk::quickstart("gatewright.yaml");
    let expected = "\
Deployment shop/storefront, rendered for Gateway shop/storefront (specs/shop/storefront.yaml:2) by template kgateway/deployment.yaml
spec.replicas: 4
  kube.deployment.replicas: 4 (gateway, specs/shop/storefront.yaml:42)
    over 2 (class, specs/class.yaml:29)
";
    let run = desk.run(&["explain", DEPLOYMENT, "spec.replicas", "-f", "specs"]).exits(0);
    assert_eq!(run.out, expected);
    for name in ["deploy/shop/storefront", "deployments/shop/storefront"] {
        assert_eq!(desk.run(&["explain", name, "spec.replicas", "--path", "specs"]).exits(0).out, expected, "{name}");
    }
    // The whole source counts: of the files alone neither is enough.
    let parts = ["explain", DEPLOYMENT, "spec.replicas", "-f", "specs/class.yaml", "-f", "specs/shop"];
    assert_eq!(desk.run(&parts).exits(0).out, expected);

    let run = desk.run(&["explain", "Gateway/shop/storefront", "kube.deployment", "-f", "specs"]).exits(0);
    run.says(
        "kube.deployment.replicas: 4 (gateway, specs/shop/storefront.yaml:42)\n  over 2 (class, specs/class.yaml:29)\n",
    );
}

#[test]
fn a_sync_names_source_and_settings() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.replace(
        "gatewright.yaml",
        "    createNamespaces: true\n",
        "    createNamespaces: true\n    commonLabels: {owner: us}\n",
    );
    desk.write("more.yaml", "packs: {kgateway: {managedBy: us}}\n");
    let text =
        desk.read("gatewright.yaml") + "packs:\n  kgateway:\n    parameters: {kube: {deployment: {replicas: 9}}}\n";
    desk.write("gatewright.yaml", &text);
    let line = |words: &str| 1 + text.lines().position(|line| line.contains(words)).expect("it was written");
    let file = desk.path("gatewright.yaml").display().to_string();
    let run = desk.run(&["explain", DEPLOYMENT, "spec.replicas", "--sync", "quickstart"]).exits(0);
    run.says("(gateway, shop/storefront.yaml:42)\n    over 2 (class, class.yaml:29)\n")
        .says(&format!("    over 9 (settings, {file}:{})\n", line("replicas: 9")));
    let run = desk.run(&["explain", DEPLOYMENT, "metadata.labels.owner", "--sync", "quickstart"]).exits(0);
    run.says(&format!("  syncs.quickstart.commonLabels.owner: \"us\" (settings, {file}:{})\n", line("owner: us")));
}

#[test]
fn a_cluster_has_overlays_of_its_own() {
    let desk = Desk::quickstart("gatewright.yaml");
    let overlay = "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {name: here}\nspec:\n  \
                   clusters: {names: [rendered]}\n  parameters: {kube: {deployment: {replicas: 7}}}\n";
    desk.write("specs/overlay.yaml", overlay);
    let explain = |more: &[&str]| desk.run(&[&["explain", DEPLOYMENT, "spec.replicas"], more].concat());
    explain(&["-f", "specs"]).exits(0).says("spec.replicas: 4\n");
    let line = "spec.replicas: 7\n  kube.deployment.replicas: 7 (overlay, specs/overlay.yaml:6)\n    over 4 (gateway, ";
    explain(&["-f", "specs", "--cluster", "rendered"]).exits(0).says(line);
    explain(&["--sync", "quickstart", "--cluster", "rendered"]).exits(0).says("(overlay, overlay.yaml:6)\n");
    let run = explain(&["--sync", "quickstart", "--cluster", "rendred"]).exits(64);
    run.complains("there is no cluster \"rendred\"\n  did you mean \"rendered\"?");
}

#[test]
fn explanations_as_json_obey_their_schema() {
    let desk = Desk::quickstart("gatewright.yaml");
    let text = fs::read_to_string(in_repository("docs/schema/explanation-v1alpha1.json")).expect("the schema is there");
    let schema = Schema::new(&serde_json::from_str(&text).expect("the schema is JSON")).expect("it is a schema");
    for object in [DEPLOYMENT, "ConfigMap/shop/storefront", "Gateway/shop/storefront"] {
        let run = desk.run(&["explain", object, "-f", "specs", "--format", "json"]).exits(0);
        let roots = yaml::parse(&run.out).expect("JSON is YAML");
        let mistakes: Vec<String> = check(&roots[0], &schema).into_iter().map(|mistake| mistake.message).collect();
        assert_eq!(mistakes, [""; 0], "{object}");
        assert_eq!(roots[0].to_value()["schema"], "gatewright.dev/explanation/v1alpha1");
    }
    let run = desk.run(&["explain", DEPLOYMENT, "spec.replicas", "-f", "specs", "--format", "json"]).exits(0);
    let value: Value = serde_json::from_str(&run.out).expect("the program prints JSON");
    let cause = &value["leaves"][0]["causes"][0];
    assert_eq!((&cause["layer"], &cause["lower"][0]["value"]), (&json!("gateway"), &json!(2)));
}

#[test]
fn a_mistyped_object_has_a_suggestion_and_a_list() {
    let desk = Desk::quickstart("gatewright.yaml");
    let run = desk.run(&["explain", "Deployment/shop/storefrnt", "-f", "specs"]).exits(64);
    assert_eq!(
        run.err,
        "gatewright: \"Deployment/shop/storefrnt\" is not rendered from these specs\n  \
         did you mean \"Deployment/shop/storefront\"?\n  \
         Gateway/infra/edge becomes ServiceAccount/infra/edge, ConfigMap/infra/edge, Service/infra/edge, Deployment/infra/edge\n  \
         Gateway/infra/internal becomes ServiceAccount/infra/internal, ConfigMap/infra/internal, Service/infra/internal, Deployment/infra/internal\n  \
         Gateway/shop/storefront becomes ServiceAccount/shop/storefront, ConfigMap/shop/storefront, Service/shop/storefront, Deployment/shop/storefront\n"
    );
    // Somebody who forgets the namespace gets it.
    let run = desk.run(&["explain", "Deployment/storefront", "-f", "specs"]).exits(64);
    run.complains("\"Deployment/default/storefront\" is not rendered from these specs\n  did you mean \"Deployment/shop/storefront\"?\n");
    let run = desk.run(&["explain", "storefront", "-f", "specs"]).exits(64);
    run.complains("an object is written as KIND/NAMESPACE/NAME, such as Gateway/infra/edge");
}

#[test]
fn a_mistyped_field_has_a_suggestion() {
    let desk = Desk::quickstart("gatewright.yaml");
    let complaint = |field: &str| desk.run(&["explain", DEPLOYMENT, field, "-f", "specs"]).exits(64).err;
    assert_eq!(
        complaint("spec.template.spec.containers.imgae"),
        "gatewright: Deployment shop/storefront has no field \"spec.template.spec.containers.imgae\"\n  \
         did you mean \"spec.template.spec.containers.image\"?\n"
    );
    assert_eq!(
        complaint("image"),
        "gatewright: Deployment shop/storefront has no field \"image\"\n  \
         did you mean \"spec.template.spec.containers[kgateway-proxy].image\"?\n"
    );
    assert_eq!(
        complaint("spec.something"),
        "gatewright: Deployment shop/storefront has no field \"spec.something\"\n  \
         there are: spec.replicas, spec.selector, spec.template\n"
    );
}

#[test]
fn a_gateway_that_cannot_be_rendered_says_why() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.replace("specs/shop/storefront.yaml", "gatewayClassName: public", "gatewayClassName: pulbic");
    let run = desk.run(&["explain", "Gateway/shop/storefront", "-f", "specs"]).exits(1);
    assert_eq!(
        run.err,
        "specs/shop/storefront.yaml:9: Gateway shop/storefront: there is no GatewayClass \"pulbic\" in the source \
         (did you mean \"public\"?) [GW001]\ngatewright: Gateway shop/storefront cannot be rendered\n"
    );
    let run = desk.run(&["explain", DEPLOYMENT, "-f", "specs"]).exits(64);
    run.complains("  the specs have 1 error: `gatewright check` says which\n");
}

#[test]
fn presets_can_be_used_as_files_of_ones_own() {
    let desk = Desk::quickstart("gatewright.yaml");
    let run = desk.run(&["defaults", "kserve", "--preset", "scheduler"]).exits(0);
    let run = run.says("  name: kserve-config-llm-scheduler\n  namespace: kserve\n").says("            command:\n");
    assert_eq!(desk.run(&["defaults", "kserve", "--preset", "kserve-config-llm-scheduler"]).exits(0).out, run.out);
    desk.run(&["defaults", "kserve", "--preset", "scheduller"]).exits(64).complains("known presets: decode-template, ");
    desk.run(&["defaults", "kgateway", "--preset", "scheduler"]).exits(64).complains("it has none");
}

#[test]
fn defaults_can_be_used_as_a_file_of_ones_own() {
    let desk = Desk::quickstart("gatewright.yaml");
    desk.replace("gatewright.yaml", "stateDir", "packs: {kgateway: {image: {registry: mirror.example}}}\nstateDir");
    let file = desk.path("gatewright.yaml").display().to_string();
    let run = desk.run(&["defaults", "kgateway"]).exits(0).says("registry: mirror.example\n");
    let run = run.says(&format!("# kube.envoyContainer.image.registry is set in {file}:"));
    desk.write("specs/defaults.yaml", &run.out.replace("  name: kgateway\n", "  name: kgateway\n  namespace: shop\n"));
    desk.replace("specs/shop/storefront.yaml", "      name: storefront\n---", "      name: kgateway\n---");
    desk.run(&["check", "specs"]).exits(0).says("12 objects from 3 Gateways\n");
    desk.run(&["explain", "Gateway/shop/storefront", "kube.stats.enabled", "-f", "specs"])
        .exits(0)
        .says("kube.stats.enabled: true (gateway, specs/defaults.yaml:");

    let waypoint = desk.run(&["defaults", "kgateway", "--class", "waypoint"]).exits(0).says("type: ClusterIP\n");
    assert_eq!(desk.run(&["defaults", "kgateway", "--class", "kgateway-waypoint"]).exits(0).out, waypoint.out);
    let run = desk.run(&["defaults", "kgateway", "--class", "waypiont"]).exits(64);
    assert_eq!(
        run.err,
        "gatewright: pack \"kgateway\" has no class \"waypiont\"\n  known classes: kgateway, kgateway-waypoint\n"
    );
    let run = desk.run(&["defaults", "envoy"]).exits(64);
    run.complains("gatewright: there is no pack \"envoy\"\n  known packs: kgateway");
}

#[test]
fn values_are_what_templates_get() {
    let desk = Desk::quickstart("gatewright.yaml");
    let run = desk.run(&["render", "--values", "specs"]).exits(0);
    let heads: Vec<&str> = run.out.lines().filter(|line| line.starts_with("# ")).collect();
    assert_eq!(
        heads,
        [
            "# Gateway infra/edge (specs/infra/gateways.yaml:3)",
            "# Gateway infra/internal (specs/infra/gateways.yaml:20)",
            "# Gateway shop/storefront (specs/shop/storefront.yaml:2)",
        ]
    );
    let values = yaml::parse_values(&run.out).expect("the output is YAML");
    let replicas: Vec<&Value> = values.iter().map(|values| &values["deployment"]["replicas"]).collect();
    assert_eq!(replicas, [2, 2, 4]);
    assert_eq!(desk.run(&["render", "specs", "--values"]).out, run.out, "same specs, same bytes");

    desk.replace("specs/shop/storefront.yaml", "port: 8443", "prot: 8443");
    let broken = desk.run(&["render", "--values", "specs"]).exits(1).complains("specs/shop/storefront.yaml:17: ");
    assert_eq!(yaml::parse_values(&broken.out).expect("the rest is there").len(), 2);
}
