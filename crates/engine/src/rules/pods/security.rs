//! The Pod Security Standards of Kubernetes: what the levels baseline and restricted forbid, as of Kubernetes 1.35.
//!
//! An API server that enforces a level for a namespace lets the workload in and refuses its pods, so that nobody sees it
//! but who looks for them.

use serde_json::Value;

use super::policies::PodSecurity;
use super::{Pod, items, name};
use crate::rules::table::POD_SECURITY;

/// Capabilities that baseline lets a container add.
const BASELINE_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The one that restricted lets a container add.
const RESTRICTED_CAPABILITIES: [&str; 1] = ["NET_BIND_SERVICE"];

/// Kernel parameters that concern the pod alone.
const SYSCTLS: [&str; 12] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
];

/// Types of a process for `SELinux`.
const SELINUX_TYPES: [&str; 5] = ["", "container_engine_t", "container_init_t", "container_kvm_t", "container_t"];

/// Volumes that restricted allows.
const RESTRICTED_VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

const HOST: [&str; 3] = ["hostIPC", "hostNetwork", "hostPID"];
const CONFINED: [&str; 2] = ["Localhost", "RuntimeDefault"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const HOOKS: [&str; 2] = ["postStart", "preStop"];
const HANDLERS: [&str; 2] = ["httpGet", "tcpSocket"];

/// The security context of a pod or of one of its containers, with the path to it.
struct Scope<'a> {
    path: Vec<String>,
    /// In words.
    of: String,
    context: &'a Value,
}

pub(super) fn check(pod: &mut Pod<'_>, level: PodSecurity) {
    let spec = pod.spec;
    for field in HOST.into_iter().filter(|field| spec[*field] == true) {
        deny(pod, &[field], format!("{field} is true"), "leave it out");
    }
    let whole = Scope { path: Vec::new(), of: String::new(), context: &spec["securityContext"] };
    let of_container = |(list, container): (&'static str, &'_ Value)| (list, name(container).to_owned());
    let names: Vec<(&str, String)> = pod.containers().map(of_container).collect();
    let contexts = pod.containers().map(|(_, container)| &container["securityContext"]);
    let containers: Vec<Scope<'_>> = names
        .iter()
        .zip(contexts)
        .map(|((list, own), context)| Scope {
            path: vec![(*list).to_owned(), own.clone()],
            of: format!("of the container {own:?}"),
            context,
        })
        .collect();
    for sysctl in items(&whole.context["sysctls"]).map(name).filter(|sysctl| !SYSCTLS.contains(sysctl)) {
        let message = format!("sysctls sets {sysctl:?}, which is not for pods alone");
        deny(pod, &["securityContext", "sysctls"], message, "leave it out");
    }
    for scope in containers.iter().chain([&whole]) {
        baseline(pod, scope);
    }
    for (list, container) in pod.containers() {
        hosts(pod, list, container);
    }
    volumes(pod, level);
    if level == PodSecurity::Restricted {
        restricted(pod, &whole, &containers);
    }
}

fn deny(pod: &mut Pod<'_>, path: &[&str], message: String, hint: &str) {
    pod.add_firm(POD_SECURITY, path, (message, hint.to_owned()));
}

impl Scope<'_> {
    fn deny(&self, pod: &mut Pod<'_>, field: &str, message: &str, hint: &str) {
        let path: Vec<&str> = self.path.iter().map(String::as_str).chain(["securityContext", field]).collect();
        let of = if self.of.is_empty() { "of the pod" } else { &self.of };
        deny(pod, &path, format!("{field} {of} {message}"), hint);
    }
}

/// Denies values in a security context that both levels forbid.
fn baseline(pod: &mut Pod<'_>, scope: &Scope<'_>) {
    let context = scope.context;
    if context["privileged"] == true {
        scope.deny(pod, "privileged", "is true", "leave it out");
    }
    if context["windowsOptions"]["hostProcess"] == true {
        scope.deny(pod, "windowsOptions", "has hostProcess", "leave it out");
    }
    for capability in texts(&context["capabilities"]["add"]).filter(|it| !BASELINE_CAPABILITIES.contains(it)) {
        scope.deny(pod, "capabilities", &format!("adds {capability:?}"), "leave it out");
    }
    let linux = &context["seLinuxOptions"];
    let says = |field: &str| linux[field].as_str().is_some_and(|text| !text.is_empty());
    if !SELINUX_TYPES.contains(&linux["type"].as_str().unwrap_or_default()) || says("user") || says("role") {
        let hint = "leave user and role out, and as type write container_t";
        scope.deny(pod, "seLinuxOptions", "has a user, a role or a type of its own", hint);
    }
    if context["procMount"].as_str().is_some_and(|mount| mount != "Default") {
        scope.deny(pod, "procMount", "is not Default", "leave it out");
    }
    for field in ["appArmorProfile", "seccompProfile"] {
        if context[field]["type"].as_str().is_some_and(|profile| !CONFINED.contains(&profile)) {
            scope.deny(pod, field, "confines nothing", "write type: RuntimeDefault");
        }
    }
}

/// Ports of the host, and requests that its kubelet would send elsewhere.
fn hosts(pod: &mut Pod<'_>, list: &'static str, container: &Value) {
    let own = name(container);
    for port in items(&container["ports"]).filter(|port| port["hostPort"].as_i64().is_some_and(|port| port != 0)) {
        let message = format!("the container {own:?} has the hostPort {}", port["hostPort"]);
        deny(pod, &[list, own, "ports"], message, "leave it out");
    }
    let probes = PROBES.into_iter().map(|field| (field, &container[field]));
    let hooks = HOOKS.into_iter().map(|field| (field, &container["lifecycle"][field]));
    for (field, value) in probes.chain(hooks) {
        let says = |handler: &&str| value[*handler]["host"].as_str().is_some_and(|host| !host.is_empty());
        if HANDLERS.iter().any(says) {
            let message = format!("{field} of the container {own:?} names a host");
            deny(pod, &[list, own, field], message, "leave the host out: it is the pod itself");
        }
    }
}

fn volumes(pod: &mut Pod<'_>, level: PodSecurity) {
    for volume in items(&pod.spec["volumes"]) {
        let own = name(volume);
        let is_allowed = match level {
            PodSecurity::Baseline => volume["hostPath"].is_null(),
            PodSecurity::Restricted => RESTRICTED_VOLUMES.iter().any(|source| !volume[*source].is_null()),
        };
        if !is_allowed {
            let kinds = volume.as_object().into_iter().flatten().map(|(field, _)| field.as_str());
            let kind = kinds.filter(|field| *field != "name").collect::<Vec<_>>().join(", ");
            let hint = "use a claim, an emptyDir or a volume of a driver";
            deny(pod, &["volumes", own], format!("the volume {own:?} is of the kind {kind}"), hint);
        }
    }
}

/// Denies values that restricted forbids, and asks for those that it needs.
fn restricted(pod: &mut Pod<'_>, whole: &Scope<'_>, containers: &[Scope<'_>]) {
    let is_windows = pod.spec["os"]["name"] == "windows";
    let is_confined = |context: &Value| context["seccompProfile"]["type"].is_string();
    if whole.context["runAsNonRoot"] == false {
        whole.deny(pod, "runAsNonRoot", "is false", "write runAsNonRoot: true");
    }
    if whole.context["runAsUser"] == 0 {
        whole.deny(pod, "runAsUser", "is 0, which is root", "write another one, or leave it out");
    }
    for scope in containers {
        let context = scope.context;
        if context["runAsUser"] == 0 {
            scope.deny(pod, "runAsUser", "is 0, which is root", "write another one, or leave it out");
        }
        let says = &context["runAsNonRoot"];
        let is_left_out = says.is_null() && whole.context["runAsNonRoot"].is_null();
        if *says == false || is_left_out {
            scope.deny(pod, "runAsNonRoot", "is not true", "write runAsNonRoot: true, here or for the pod");
        }
        if is_windows {
            continue;
        }
        if context["allowPrivilegeEscalation"] != false {
            scope.deny(pod, "allowPrivilegeEscalation", "is not false", "write allowPrivilegeEscalation: false");
        }
        if !texts(&context["capabilities"]["drop"]).any(|capability| capability == "ALL") {
            scope.deny(pod, "capabilities", "does not drop ALL", "write drop: [ALL]");
        }
        let added = texts(&context["capabilities"]["add"]).filter(|it| BASELINE_CAPABILITIES.contains(it));
        for capability in added.filter(|it| !RESTRICTED_CAPABILITIES.contains(it)) {
            scope.deny(pod, "capabilities", &format!("adds {capability:?}"), "leave it out");
        }
        if !is_confined(context) && !is_confined(whole.context) {
            let hint = "write seccompProfile: {type: RuntimeDefault}, here or for the pod";
            scope.deny(pod, "seccompProfile", "is not set", hint);
        }
    }
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    items(list).filter_map(Value::as_str)
}
