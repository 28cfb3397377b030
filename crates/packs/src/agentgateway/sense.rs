//! Rules that the schema of the parameters cannot express: fields that rule each other out.
//!
//! The same rules hold for each document, as on an API server, and for what the layers make together: a class may
//! patch a Deployment where a Gateway asks for a `DaemonSet`.

use std::collections::BTreeSet;

use gatewright_engine::check::Mistake;
use gatewright_engine::merge::origin::{Layer, LayerName, Merged, MergedContent};
use gatewright_engine::pack::Subject;
use gatewright_engine::problem::Problem;
use gatewright_engine::yaml::{Node, Position};

/// A field that cannot stand where it does.
struct Clash<'a> {
    field: &'a Merged,
    message: String,
    hint: Option<&'static str>,
    /// The kind of the workload, if the field clashes with that, which may stand elsewhere.
    kind: Option<&'a Merged>,
}

/// Returns the mistakes of one document.
pub(super) fn mistakes(document: &Node) -> Vec<Mistake> {
    let Some(spec) = document.get("spec") else { return Vec::new() };
    let spec = Merged::of(&Layer::new(LayerName::Gateway, "", spec));
    let mistake = |clash: Clash<'_>| {
        let place = &clash.field.origin.place;
        let position = Position { line: place.line, column: place.column };
        Mistake { position, message: clash.message, hint: clash.hint.map(str::to_owned), fix: None }
    };
    clashes(&spec).into_iter().map(mistake).collect()
}

/// Returns the problems of what the layers make together.
pub(super) fn problems(subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
    let problem = |clash: Clash<'_>| {
        let place = clash.field.origin.place.clone();
        let problem = Problem::document(place, clash.message).about(subject.document.id.clone());
        let kind = clash.kind.map(|kind| format!("spec.workload.kind comes from the layer {}", kind.origin));
        Problem { hint: kind.or_else(|| clash.hint.map(str::to_owned)), ..problem }
    };
    clashes(parameters).into_iter().map(problem).collect()
}

fn clashes(spec: &Merged) -> Vec<Clash<'_>> {
    patches(spec).chain([shutdown(spec), spiffe(spec), catalog(spec)].into_iter().flatten()).collect()
}

/// Patches of what is not made, or of what has no replicas.
fn patches(spec: &Merged) -> impl Iterator<Item = Clash<'_>> {
    const OF_DAEMON_SETS: [(&str, &str, Option<&str>); 2] = [
        (
            "deployment",
            "patches a Deployment, but spec.workload.kind is DaemonSet",
            Some("the field for that is daemonSet"),
        ),
        ("horizontalPodAutoscaler", "needs replicas, but spec.workload.kind is DaemonSet", None),
    ];
    const OF_OTHERS: [(&str, &str, Option<&str>); 1] = [(
        "daemonSet",
        "patches a DaemonSet, but spec.workload.kind is not DaemonSet",
        Some("add workload: {kind: DaemonSet} to the same document"),
    )];
    let kind = spec.at("workload.kind");
    let is_daemon_set = kind.is_some_and(|kind| kind.to_value() == "DaemonSet");
    let rules = if is_daemon_set { OF_DAEMON_SETS.as_slice() } else { &OF_OTHERS };
    rules.iter().filter_map(move |&(name, message, hint)| {
        let field = spec.get(name)?;
        Some(Clash { field, message: format!("spec.{name} {message}"), hint, kind })
    })
}

fn shutdown(spec: &Merged) -> Option<Clash<'_>> {
    let seconds = |path| spec.at(path).and_then(|field: &Merged| Some((field, field.to_value().as_i64()?)));
    let ((field, min), (_, max)) = (seconds("shutdown.min")?, seconds("shutdown.max")?);
    let message = format!("spec.shutdown.min is {min}, but must be at most spec.shutdown.max, {max}");
    (min > max).then_some(Clash { field, message, hint: None, kind: None })
}

fn spiffe(spec: &Merged) -> Option<Clash<'_>> {
    let source = spec.at("spiffe.source")?;
    source.get("csi").and(source.get("hostPath"))?;
    let message = "spec.spiffe.source has csi and hostPath".to_owned();
    Some(Clash { field: source, message, hint: Some("remove one of the two"), kind: None })
}

/// A `ConfigMap` is mounted as one volume, which is called after it.
fn catalog(spec: &Merged) -> Option<Clash<'_>> {
    let MergedContent::List(sources) = &spec.at("modelCatalog.sources")?.content else { return None };
    let mut names = BTreeSet::new();
    let name = |source: &Merged| source.at("configMap.name").map(|name| name.to_value().to_string());
    let is_second = |source: &&Merged| name(source).is_some_and(|name| !names.insert(name));
    let field = sources.iter().find(is_second)?;
    let message = format!("spec.modelCatalog.sources has the ConfigMap {} twice", name(field)?);
    Some(Clash { field, message, hint: None, kind: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatewright_engine::yaml;

    fn check(spec: &str, expected: &[&str]) {
        let document = yaml::parse(&format!("spec: {spec}")).expect(spec).remove(0);
        let messages: Vec<String> = mistakes(&document).into_iter().map(|mistake| mistake.message).collect();
        assert_eq!(messages, expected, "{spec}");
    }

    #[test]
    fn a_patch_fits_the_workload() {
        check("{deployment: {}}", &[]);
        check("{workload: {kind: Deployment}, deployment: {}, horizontalPodAutoscaler: {}}", &[]);
        check("{workload: {kind: DaemonSet}, daemonSet: {}}", &[]);
        check(
            "{workload: {kind: DaemonSet}, deployment: {}}",
            &["spec.deployment patches a Deployment, but spec.workload.kind is DaemonSet"],
        );
        check("{daemonSet: {}}", &["spec.daemonSet patches a DaemonSet, but spec.workload.kind is not DaemonSet"]);
        check(
            "{workload: {kind: DaemonSet}, horizontalPodAutoscaler: {}}",
            &["spec.horizontalPodAutoscaler needs replicas, but spec.workload.kind is DaemonSet"],
        );
    }

    #[test]
    fn a_catalog_has_each_volume_once() {
        let sources = |other: &str| {
            let one = "{configMap: {name: a}}";
            format!("{{modelCatalog: {{sources: [{one}, {{}}, {{}}, {{configMap: {{name: {other}}}}}]}}}}")
        };
        check(&sources("b"), &[]);
        check(&sources("a"), &["spec.modelCatalog.sources has the ConfigMap \"a\" twice"]);
    }

    #[test]
    fn a_shutdown_has_order_and_a_socket_one_source() {
        check("{shutdown: {min: 5, max: 5}, spiffe: {source: {csi: {}}}}", &[]);
        check("{shutdown: {min: 6, max: 5}}", &["spec.shutdown.min is 6, but must be at most spec.shutdown.max, 5"]);
        check("{spiffe: {source: {csi: {}, hostPath: {path: /a}}}}", &["spec.spiffe.source has csi and hostPath"]);
    }
}
