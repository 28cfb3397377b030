//! The form of objects that are worth patching: the fields that strategic merging treats in all its ways.

/// The content of a field.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Text,
    Number,
    /// Free keys with texts.
    Texts,
    Struct(&'static [(&'static str, Self)]),
    /// Texts that a patch adds to.
    Set,
    /// Texts that a patch replaces.
    Atomic,
    /// Mappings that a patch replaces.
    AtomicMappings(&'static [(&'static str, Self)]),
    /// Mappings that are told apart by this field, with the values that it may have.
    Keyed(&'static str, Ids, &'static [(&'static str, Self)]),
}

/// The values that items are told apart by.
#[derive(Clone, Copy)]
pub(super) enum Ids {
    Texts(&'static [&'static str]),
    Numbers(&'static [u64]),
}

use Shape::{Atomic, AtomicMappings, Keyed, Number, Set, Struct, Text, Texts};

const NAMES: Ids = Ids::Texts(&["a", "b", "c", "d", "e", "f", "g"]);

const OWNER: &[(&str, Shape)] = &[("kind", Text), ("name", Text), ("controller", Text)];

const METADATA: &[(&str, Shape)] = &[
    ("name", Text),
    ("labels", Texts),
    ("annotations", Texts),
    ("finalizers", Set),
    ("ownerReferences", Keyed("uid", NAMES, OWNER)),
];

const SELECTOR: &[(&str, Shape)] = &[
    ("matchLabels", Texts),
    ("matchExpressions", AtomicMappings(&[("key", Text), ("operator", Text), ("values", Atomic)])),
];

const ENV: &[(&str, Shape)] =
    &[("value", Text), ("valueFrom", Struct(&[("fieldRef", Struct(&[("fieldPath", Text), ("apiVersion", Text)]))]))];

const PORT: &[(&str, Shape)] = &[("name", Text), ("protocol", Text), ("hostPort", Number)];

const PROBE: &[(&str, Shape)] = &[
    ("periodSeconds", Number),
    ("httpGet", Struct(&[("path", Text), ("port", Number), ("httpHeaders", AtomicMappings(&[("name", Text)]))])),
    ("exec", Struct(&[("command", Atomic)])),
];

const CAPABILITIES: &[(&str, Shape)] = &[("add", Atomic), ("drop", Atomic)];

const CONTAINER: &[(&str, Shape)] = &[
    ("image", Text),
    ("args", Atomic),
    ("env", Keyed("name", NAMES, ENV)),
    ("ports", Keyed("containerPort", Ids::Numbers(&[80, 443, 8080, 8443, 9090]), PORT)),
    ("volumeMounts", Keyed("mountPath", Ids::Texts(&["/a", "/b", "/c", "/d"]), &[("name", Text), ("readOnly", Text)])),
    ("resources", Struct(&[("limits", Texts), ("requests", Texts)])),
    ("securityContext", Struct(&[("runAsUser", Number), ("capabilities", Struct(CAPABILITIES))])),
    ("readinessProbe", Struct(PROBE)),
];

const VOLUME: &[(&str, Shape)] = &[
    ("emptyDir", Struct(&[("medium", Text)])),
    ("configMap", Struct(&[("name", Text), ("items", AtomicMappings(&[("key", Text), ("path", Text)]))])),
    ("projected", Struct(&[("sources", AtomicMappings(&[("secret", Struct(&[("name", Text)]))]))])),
];

const SPREAD: &[(&str, Shape)] = &[("maxSkew", Number), ("labelSelector", Struct(SELECTOR))];

const POD: &[(&str, Shape)] = &[
    ("containers", Keyed("name", NAMES, CONTAINER)),
    (
        "initContainers",
        Keyed("name", NAMES, &[("image", Text), ("command", Atomic), ("env", Keyed("name", NAMES, ENV))]),
    ),
    ("volumes", Keyed("name", NAMES, VOLUME)),
    ("imagePullSecrets", Keyed("name", NAMES, &[])),
    ("hostAliases", Keyed("ip", NAMES, &[("hostnames", Atomic)])),
    ("tolerations", AtomicMappings(&[("key", Text), ("operator", Text)])),
    ("topologySpreadConstraints", Keyed("topologyKey", NAMES, SPREAD)),
    ("nodeSelector", Texts),
    ("securityContext", Struct(&[("runAsUser", Number), ("sysctls", AtomicMappings(&[("name", Text)]))])),
    ("serviceAccountName", Text),
];

const STRATEGY: &[(&str, Shape)] =
    &[("type", Text), ("rollingUpdate", Struct(&[("maxSurge", Number), ("maxUnavailable", Text)]))];

const DEPLOYMENT: &[(&str, Shape)] = &[
    ("replicas", Number),
    ("paused", Text),
    ("selector", Struct(SELECTOR)),
    ("strategy", Struct(STRATEGY)),
    ("template", Struct(&[("metadata", Struct(METADATA)), ("spec", Struct(POD))])),
];

const SERVICE: &[(&str, Shape)] = &[
    ("type", Text),
    ("selector", Texts),
    ("ports", Keyed("port", Ids::Numbers(&[80, 443, 8080, 8443, 9090, 15008]), &[("name", Text), ("protocol", Text)])),
    ("loadBalancerSourceRanges", Atomic),
    ("sessionAffinityConfig", Struct(&[("clientIP", Struct(&[("timeoutSeconds", Number)]))])),
];

/// Kinds by API version and name, and what their objects look like.
pub(super) const KINDS: [(&str, &str, Shape); 4] = [
    ("apps/v1", "Deployment", Struct(&[("metadata", Struct(METADATA)), ("spec", Struct(DEPLOYMENT))])),
    ("v1", "Service", Struct(&[("metadata", Struct(METADATA)), ("spec", Struct(SERVICE))])),
    ("v1", "Pod", Struct(&[("metadata", Struct(METADATA)), ("spec", Struct(POD))])),
    (
        "policy/v1",
        "PodDisruptionBudget",
        Struct(&[("spec", Struct(&[("selector", Struct(SELECTOR)), ("minAvailable", Number)]))]),
    ),
];
