//! Names, namespaces, labels and annotations as an API server takes them.
//!
//! No definition of a kind says this: every API server checks it of every object, by Kubernetes' own rules for names
//! (RFC 1123) and for keys of labels.

use std::sync::LazyLock;

use regex::Regex;

use super::overlay;
use crate::check::{InValue, Mistake, suggest};
use crate::text::did_you_mean;
use crate::yaml::{Content, Field, Node};

/// A part of a name between two dots; a namespace is one.
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// The groups of Kubernetes with objects that are called by any segment of a path: roles, and bundles of certificates, which
/// have the name of their signer in theirs (KEP-3257).
const NAMED_FREELY: [&str; 2] = ["certificates.k8s.io", "rbac.authorization.k8s.io"];

/// The fields of `metadata` (`ObjectMeta` of Kubernetes).
const FIELDS: [&str; 16] = [
    "annotations",
    "clusterName",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The bytes of all annotations of an object together.
const MAX_ANNOTATIONS: usize = 256 << 10;

static NAMESPACE: LazyLock<Regex> = LazyLock::new(|| sound(&format!("^{LABEL}$")));
static NAME: LazyLock<Regex> = LazyLock::new(|| sound(&format!(r"^{LABEL}(\.{LABEL})*$")));
static VERSION: LazyLock<Regex> = LazyLock::new(|| sound(&format!(r"^({LABEL}(\.{LABEL})*/)?{LABEL}$")));
static KIND: LazyLock<Regex> = LazyLock::new(|| sound("^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$"));
/// What can stand in the address of an object.
static SEGMENT: LazyLock<Regex> = LazyLock::new(|| sound("^[-._:~@A-Za-z0-9]+$"));
static KEY: LazyLock<Regex> = LazyLock::new(|| sound("^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"));

fn sound(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the expression is sound; a test uses it")
}

/// Returns what an API server would refuse of the metadata of a document of a group. Our own kinds are on no API server,
/// and are called as people like.
pub(super) fn check(group: &str, root: &Node) -> Vec<Mistake> {
    if group == overlay::GROUP {
        return Vec::new();
    }
    in_value(root).into_iter().map(|(_, mistake)| mistake).chain(unknown(root)).collect()
}

/// Returns what of it may make another object of a document than was meant, be its kind known or not: a slip there looks
/// as if the object had been withdrawn.
pub(super) fn of_identity(group: &str, root: &Node) -> Vec<Mistake> {
    // Those of aggregated API servers may be, too.
    let is_theirs = group.contains('.') && !group.ends_with(".k8s.io");
    let is_free =
        |name: &str| (is_theirs || is_named_freely(group)) && SEGMENT.is_match(name) && name != "." && name != "..";
    let is_named = root.at(["metadata", "name"]).and_then(Node::as_str).is_some_and(is_free);
    let wrong =
        names(root).into_iter().filter(|(path, _)| !is_named || path.last().is_none_or(|field| field != "name"));
    wrong.map(|(_, mistake)| mistake).chain(unknown(root)).collect()
}

/// Tells whether objects of one of Kubernetes' own groups may be called by any segment of a path.
pub(crate) fn is_named_freely(group: &str) -> bool {
    NAMED_FREELY.contains(&group)
}

/// Says what is wrong with the value of `apiVersion` or `kind`, if anything is.
pub(super) fn of_kind(field: &str, text: &str) -> Option<String> {
    let (pattern, form) = match field {
        "apiVersion" => (&VERSION, "VERSION or GROUP/VERSION in lower case, such as v1 or apps/v1"),
        "kind" => (&KIND, "a word of letters and digits, such as Service"),
        _ => return None,
    };
    (!pattern.is_match(text)).then(|| format!("{field} is {text:?}, but must be {form}"))
}

/// Returns the fields of `metadata` that there are not.
fn unknown(root: &Node) -> Vec<Mistake> {
    let fields = root.at(["metadata"]).into_iter().flat_map(Node::fields);
    let mistake = |(key, field): (&str, &Field)| Mistake {
        position: field.key,
        message: format!("unknown field {key:?} in metadata"),
        hint: did_you_mean(suggest(key, FIELDS)),
        fix: None,
    };
    fields.filter(|(key, _)| !FIELDS.contains(key)).map(mistake).collect()
}

/// The words by which a mistake begins that is about the key of a label or annotation.
pub(crate) const KEY_OF: &str = "the key of";

/// Returns the same of anything that has metadata, each mistake with its path.
pub(crate) fn in_value(root: &Node) -> Vec<InValue> {
    let mut found = names(root);
    let maps = [("labels", label as Judge), ("annotations", annotation)];
    for (map, judge) in maps {
        let path = |key: &str| ["metadata", map, key].map(str::to_owned).to_vec();
        let fields = root.at(["metadata", map]).into_iter().flat_map(Node::fields);
        found.extend(fields.filter_map(|(key, field)| Some((path(key), judge(key, field)?))));
    }
    if let Some(node) = root.at(["metadata", "annotations"]) {
        let bytes: usize = node.fields().map(|(key, field)| key.len() + field.node.as_str().map_or(0, str::len)).sum();
        if bytes > MAX_ANNOTATIONS {
            let message = "metadata.annotations have more than 256 KiB together".to_owned();
            found.push((["metadata", "annotations"].map(str::to_owned).to_vec(), mistake(node, message, None)));
        }
    }
    found
}

/// Says what is wrong with a label or an annotation.
type Judge = fn(&str, &Field) -> Option<Mistake>;

fn names(root: &Node) -> Vec<InValue> {
    let mut found = Vec::new();
    let path = |field: &str| ["metadata", field].map(str::to_owned).to_vec();
    let text = |field: &str| root.at(["metadata", field]).and_then(|node| Some((node, node.as_str()?)));
    if let Some((node, name)) = text("name").filter(|(_, name)| !is(&NAME, name, 253)) {
        let rule = "must be up to 253 lower-case letters, digits, dashes and dots, each part beginning and ending with a letter or digit";
        found.push((path("name"), mistake(node, format!("metadata.name is {name:?}, but {rule}"), likely(name))));
    }
    if let Some((node, name)) = text("namespace").filter(|(_, name)| !name.is_empty() && !is(&NAMESPACE, name, 63)) {
        let rule =
            "must be up to 63 lower-case letters, digits and dashes, beginning and ending with a letter or digit";
        found.push((
            path("namespace"),
            mistake(node, format!("metadata.namespace is {name:?}, but {rule}"), likely(&name.replace('.', "-"))),
        ));
    }
    found
}

fn is(pattern: &Regex, text: &str, longest: usize) -> bool {
    text.len() <= longest && pattern.is_match(text)
}

fn mistake(node: &Node, message: String, hint: Option<String>) -> Mistake {
    Mistake { position: node.position, message, hint, fix: None }
}

/// Says what a name was probably meant to be.
fn likely(name: &str) -> Option<String> {
    let near = name.to_lowercase().replace(['_', ' '], "-");
    is(&NAME, &near, 253).then(|| format!("did you mean {near:?}?"))
}

/// Says what is wrong with a label.
fn label(key: &str, field: &Field) -> Option<Mistake> {
    let rule =
        "must be up to 63 letters, digits, dashes, underscores and dots, beginning and ending with a letter or digit";
    let message = match &field.node.content {
        Content::String(value) if !is_label_value(value) => {
            Some(format!("label {key:?} has the value {value:?}, but it {rule}"))
        }
        _ => no_text("label", key, field),
    };
    wrong_key("label", key, field).or_else(|| Some(mistake(&field.node, message?, quotes(field))))
}

/// Says what is wrong with an annotation.
fn annotation(key: &str, field: &Field) -> Option<Mistake> {
    let wrong = wrong_key("annotation", &key.to_lowercase(), field);
    wrong.or_else(|| Some(mistake(&field.node, no_text("annotation", key, field)?, quotes(field))))
}

fn no_text(what: &str, key: &str, field: &Field) -> Option<String> {
    match &field.node.content {
        Content::String(_) | Content::Null => None,
        _ => Some(format!("{what} {key:?} is of type {}, but must be a string", field.node.content.type_name())),
    }
}

fn quotes(field: &Field) -> Option<String> {
    let is_scalar = matches!(field.node.content, Content::Bool(_) | Content::Number(_));
    is_scalar.then(|| "put it in quotes".to_owned())
}

/// Says what is wrong with a key: a name, with the domain of whoever has chosen it before a slash.
fn wrong_key(what: &str, key: &str, field: &Field) -> Option<Mistake> {
    let rule =
        "must be up to 63 letters, digits, dashes, underscores and dots, perhaps with a domain and a slash before them";
    let message = format!("{KEY_OF} {what} {key:?} {rule}");
    (!is_label_key(key)).then_some(Mistake { position: field.key, message, hint: None, fix: None })
}

/// Tells whether a label may have a key.
pub(crate) fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    is(&KEY, name, 63) && prefix.is_none_or(|prefix| is(&NAME, prefix, 253))
}

/// Tells whether a label may have a value.
pub(crate) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is(&KEY, value, 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    fn check_all(metadata: &str) -> Vec<String> {
        let roots = yaml::parse(&format!("metadata: {{{metadata}}}")).expect("it is YAML");
        check("example.com", &roots[0]).into_iter().map(|mistake| mistake.message).collect()
    }

    #[test]
    fn what_an_api_server_takes_is_taken() {
        let long = "a".repeat(63);
        for metadata in [
            "name: a, namespace: b",
            "name: a.b-c.9, namespace: '7'",
            &format!("name: {}, namespace: {long}", [long.as_str(); 3].join(".")),
            "name: a, namespace: ''",
            "name: a, labels: {a: '', example.com/A_b.c: 'x.Y_z-1', b: null}, annotations: {Example.com/X: 'any {thing'}",
        ] {
            assert_eq!(check_all(metadata), [""; 0], "{metadata}");
        }
    }

    #[test]
    fn a_slip_in_who_a_document_is_is_found_and_nothing_that_servers_take() {
        let mistakes = |group: &str, metadata: &str| {
            let roots = yaml::parse(&format!("metadata: {{{metadata}}}")).expect("it is YAML");
            of_identity(group, &roots[0]).len()
        };
        for (group, metadata) in [
            ("", "name: a.b, namespace: c, generateName: d, creationTimestamp: null, finalizers: []"),
            ("rbac.authorization.k8s.io", "name: 'system:a'"),
            ("certificates.k8s.io", "name: 'example.com:signer:roots'"),
            ("packages.example.com", "name: A~b@1"),
            ("", "labels: {'a b': c}"),
        ] {
            assert_eq!(mistakes(group, metadata), 0, "{group} {metadata}");
        }
        for (group, metadata) in [
            ("", "name: 'system:a'"),
            ("apps", "name: A"),
            ("", "name: a, namesapce: b"),
            ("rbac.authorization.k8s.io", "name: 'a/b'"),
            ("rbac.authorization.k8s.io", "name: '..'"),
            ("packages.example.com", "name: a, namespace: B"),
            ("", "name: \"a\\u200b\""),
        ] {
            assert_eq!(mistakes(group, metadata), 1, "{group} {metadata}");
        }
        for (field, text, is_right) in [
            ("apiVersion", "v1", true),
            ("apiVersion", "gateway.networking.k8s.io/v1beta1", true),
            ("apiVersion", "apps/v1/x", false),
            ("apiVersion", "Apps/v1", false),
            ("apiVersion", "/v1", false),
            ("kind", "HTTPRoute", true),
            ("kind", "Config Map", false),
            ("name", "anything", true),
        ] {
            assert_eq!(of_kind(field, text).is_none(), is_right, "{field}: {text}");
        }
    }

    #[test]
    fn our_own_kinds_are_called_as_people_like() {
        let roots = yaml::parse("metadata: {name: EU_overlay}").expect("it is YAML");
        assert_eq!(check(overlay::GROUP, &roots[0]), []);
    }

    #[test]
    fn what_an_api_server_refuses_is_refused() {
        let long = "a".repeat(64);
        for metadata in [
            "name: My_Gateway",
            "name: a..b",
            "name: -a",
            &format!("name: {}", [long.as_str(); 4].join(".")),
            "name: a, namespace: a.b",
            "name: a, namespace: <your-namespace>",
            &format!("name: a, namespace: {long}"),
            "name: a, labels: {a: b-}",
            "name: a, labels: {a: 'b c'}",
            "name: a, labels: {a: 7}",
            "name: a, labels: {Example.com/a: b}",
            "name: a, labels: {a/b/c: d}",
            "name: a, labels: {/a: b}",
            "name: a, labels: {'': b}",
            &format!("name: a, labels: {{{long}: b}}"),
            &format!("name: a, labels: {{a: {long}}}"),
            "name: a, annotations: {a_: b}",
            "name: a, annotations: {a: yes}",
            "name: a, annotations: {a: {b: c}}",
            &format!("name: a, annotations: {{a: {}}}", "x".repeat(MAX_ANNOTATIONS)),
        ] {
            assert_eq!(check_all(metadata).len(), 1, "{metadata}: {:?}", check_all(metadata));
        }
    }
}
