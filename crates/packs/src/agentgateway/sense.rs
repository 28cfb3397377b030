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

const DAEMON_SET: &str = "DaemonSet";

/// A field that cannot stand where it does.
struct Clash<'a> {
    field: &'a Merged,
    message: String,
    hint: Option<String>,
    /// The field that it clashes with, if that may stand elsewhere.
    with: Option<(&'static str, &'a Merged)>,
}

/// Returns the mistakes of one document.
pub(super) fn mistakes(document: &Node) -> Vec<Mistake> {
    let Some(spec) = document.get("spec") else { return Vec::new() };
    let spec = Merged::of(&Layer::new(LayerName::Gateway, "", spec));
    let mistake = |clash: Clash<'_>| {
        let place = &clash.field.origin.place;
        let position = Position { line: place.line, column: place.column };
        Mistake { position, message: clash.message, hint: clash.hint }
    };
    clashes(&spec).into_iter().map(mistake).collect()
}

/// Returns the problems of what the layers make together.
pub(super) fn problems(subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
    let problem = |clash: Clash<'_>| {
        let place = clash.field.origin.place.clone();
        let problem = Problem::document(place, clash.message).about(subject.document.id.clone());
        let with = clash.with.map(|(name, with)| format!("{name} comes from the layer {}", with.origin));
        match with.or(clash.hint) {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    };
    clashes(parameters).into_iter().map(problem).collect()
}

fn clashes(spec: &Merged) -> Vec<Clash<'_>> {
    let patches = [deployment(spec), daemon_set(spec), autoscaler(spec)];
    patches.into_iter().chain([shutdown(spec), spiffe(spec), catalog(spec)]).flatten().collect()
}

fn workload(spec: &Merged) -> Option<(&'static str, &Merged)> {
    spec.at("workload.kind").map(|kind| ("spec.workload.kind", kind))
}

fn is_daemon_set(spec: &Merged) -> bool {
    workload(spec).is_some_and(|(_, kind)| kind.to_value() == DAEMON_SET)
}

fn deployment(spec: &Merged) -> Option<Clash<'_>> {
    let field = spec.get("deployment").filter(|_| is_daemon_set(spec))?;
    let message = "spec.deployment patches a Deployment, but spec.workload.kind is DaemonSet".to_owned();
    Some(Clash { field, message, hint: Some("the field for that is daemonSet".to_owned()), with: workload(spec) })
}

fn daemon_set(spec: &Merged) -> Option<Clash<'_>> {
    let field = spec.get("daemonSet").filter(|_| !is_daemon_set(spec))?;
    let message = "spec.daemonSet patches a DaemonSet, but spec.workload.kind is not DaemonSet".to_owned();
    let hint = "add workload: {kind: DaemonSet} to the same document".to_owned();
    Some(Clash { field, message, hint: Some(hint), with: workload(spec) })
}

fn autoscaler(spec: &Merged) -> Option<Clash<'_>> {
    let field = spec.get("horizontalPodAutoscaler").filter(|_| is_daemon_set(spec))?;
    let message = "spec.horizontalPodAutoscaler needs replicas, but spec.workload.kind is DaemonSet".to_owned();
    Some(Clash { field, message, hint: None, with: workload(spec) })
}

fn shutdown(spec: &Merged) -> Option<Clash<'_>> {
    let seconds = |path| spec.at(path).and_then(|field: &Merged| Some((field, field.to_value().as_i64()?)));
    let ((field, min), (_, max)) = (seconds("shutdown.min")?, seconds("shutdown.max")?);
    let message = format!("spec.shutdown.min is {min}, but must be at most spec.shutdown.max, {max}");
    (min > max).then_some(Clash { field, message, hint: None, with: None })
}

fn spiffe(spec: &Merged) -> Option<Clash<'_>> {
    let source = spec.at("spiffe.source")?;
    source.get("csi").and(source.get("hostPath"))?;
    let message = "spec.spiffe.source has csi and hostPath".to_owned();
    Some(Clash { field: source, message, hint: Some("remove one of the two".to_owned()), with: None })
}

/// A `ConfigMap` is mounted as one volume, which is called after it.
fn catalog(spec: &Merged) -> Option<Clash<'_>> {
    let MergedContent::List(sources) = &spec.at("modelCatalog.sources")?.content else { return None };
    let mut names = BTreeSet::new();
    let name = |source: &Merged| source.at("configMap.name").map(|name| name.to_value().to_string());
    let is_second = |source: &&Merged| name(source).is_some_and(|name| !names.insert(name));
    let field = sources.iter().find(is_second)?;
    let message = format!("spec.modelCatalog.sources has the ConfigMap {} twice", name(field)?);
    Some(Clash { field, message, hint: None, with: None })
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
