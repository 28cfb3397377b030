//! Warnings about what is allowed, and yet hardly what somebody meant.

use std::collections::BTreeSet;

use gatewright_engine::merge::origin::Merged;
use gatewright_engine::pack::Subject;
use gatewright_engine::problem::Problem;

use super::container::{OTEL, OWN_VARIABLES};
use super::istio::SDS_PORT;
use super::ports::RESERVED;
use super::settings::Settings;
use super::{certificates, omits_security_context};
use crate::gateway::lint::{host_in_repository, listener_port, second_variable, variables, zero};

/// Returns a warning for everything of that sort.
///
/// A warning about parameters names no Gateway, so that one line in those of a class is one warning and not a thousand.
pub(super) fn lint(settings: &Settings, subject: &Subject<'_>, parameters: &Merged) -> Vec<Problem> {
    let mut warnings: Vec<Problem> = reserved_ports(settings, subject).collect();
    warnings.extend(host_in_repository(parameters, "kube.envoyContainer.image"));
    warnings.extend(zeros(parameters));
    warnings.extend(replaced_variables(parameters));
    warnings.extend(without_effect(settings, subject));
    warnings.extend(unmerged(subject));
    if settings.listener_certificates.mount {
        warnings.extend(certificates::secrets(subject).1);
    }
    warnings
}

/// A listener on a port that the proxy itself takes: it opens nothing.
fn reserved_ports<'a>(settings: &Settings, subject: &'a Subject<'_>) -> impl Iterator<Item = Problem> + 'a {
    let listeners = subject.gateway.spec.listeners.iter().enumerate();
    let sds = Some(SDS_PORT).filter(|_| settings.istio.auto_mtls);
    listeners.filter_map(move |(index, listener)| {
        let (what, hint) = match listener.port {
            port if RESERVED.contains(&port) => {
                ("one of the proxy's own", "nothing is opened for this listener; give it another port")
            }
            port if Some(port) == sds => {
                ("that of the container sds", "only one of the two gets it; give it another port")
            }
            _ => return None,
        };
        Some(listener_port(subject, index, what, hint))
    })
}

/// Fields of which kgateway takes a zero for nothing at all.
fn zeros(parameters: &Merged) -> impl Iterator<Item = Problem> + '_ {
    const FIELDS: [(&str, &str, &str); 2] = [
        (
            "kube.podTemplate.gracefulShutdown.sleepTimeSeconds",
            "a sleepTimeSeconds of 0 counts as 10, as in kgateway",
            "for no pause at all set gracefulShutdown.enabled: false",
        ),
        (
            "kube.podTemplate.terminationGracePeriodSeconds",
            "a terminationGracePeriodSeconds of 0 is left out, as in kgateway, and the cluster's default of 30 holds",
            "write 1 for the shortest time that there is",
        ),
    ];
    FIELDS.into_iter().filter_map(|(path, message, hint)| zero(parameters, path, message, hint))
}

/// Variables that stand twice in one layer, or in the place of one of ours. Another layer's is meant to be replaced.
fn replaced_variables(parameters: &Merged) -> Vec<Problem> {
    let (mut seen, mut warnings) = (BTreeSet::new(), Vec::new());
    for (item, name) in variables(parameters, "kube.envoyContainer.env") {
        if OWN_VARIABLES.contains(&name) {
            let message = format!("the variable {name:?} stands in the place of the proxy's own");
            let hint = "the control plane knows a proxy by its variables; give this one another name";
            warnings.push(Problem::warning(item.origin.place.clone(), message).hint(hint));
        } else if name != OTEL && !seen.insert((name, item.origin.layer)) {
            warnings.push(second_variable(item, name));
        }
    }
    warnings
}

/// Fields that are read and then lead to nothing.
fn without_effect(settings: &Settings, subject: &Subject<'_>) -> Vec<Problem> {
    let mut warnings = Vec::new();
    let mut warning = |path: &str, message: &str, hint: &str| {
        for layer in subject.layers {
            if let Some(node) = layer.node.at(path.split('.')) {
                let message = format!("spec.{path} {message}");
                warnings.push(Problem::warning(layer.place_of(node), message).hint(hint));
            }
        }
    };
    let sidecars = "add the containers in spec.kube.deploymentOverlay.spec.template.spec.containers";
    warning("kube.istio.customSidecars", "is never rendered; it is deprecated", sidecars);
    if !settings.istio.auto_mtls {
        let hint = "set packs.kgateway.istio.autoMtls: true in the config file to have the container";
        for path in ["kube.sdsContainer", "kube.istio.istioProxyContainer"] {
            warning(path, "has no effect without Istio", hint);
        }
    }
    warnings
}

/// Fields that kgateway takes only from the lowest layer that has the mapping around them.
fn unmerged(subject: &Subject<'_>) -> Vec<Problem> {
    const OF_PROXY: &str = "kube.envoyContainer.securityContext";
    const FIELDS: [(&str, &[&str]); 4] = [
        (OF_PROXY, &["appArmorProfile"]),
        ("kube.sdsContainer.securityContext", &["appArmorProfile"]),
        ("kube.istio.istioProxyContainer.securityContext", &["appArmorProfile"]),
        ("kube.podTemplate.securityContext", &["appArmorProfile", "supplementalGroupsPolicy", "seLinuxChangePolicy"]),
    ];
    let mut warnings = Vec::new();
    for (path, fields) in FIELDS {
        // The proxy has a context by default, all others have one when a layer says so.
        let mut is_there = path == OF_PROXY && !subject.layers.iter().any(omits_security_context);
        for layer in subject.layers {
            let Some(context) = layer.node.at(path.split('.')) else { continue };
            let lost = fields.iter().filter_map(|field| Some((field, context.get(field)?)));
            warnings.extend(lost.filter(|_| is_there).map(|(field, node)| {
                let message = format!("spec.{path}.{field} is not taken: a layer below has a securityContext");
                let hint = "kgateway does not merge this field; set it in spec.kube.deploymentOverlay";
                Problem::warning(layer.place_of(node), message).hint(hint)
            }));
            is_there = true;
        }
    }
    warnings
}
