//! Pairs that chance does not find: what nobody writes, and Kubernetes has an answer to nevertheless.

use super::generate::Pair;

const DEPLOYMENT: (&str, &str) = ("apps/v1", "Deployment");
const SERVICE: (&str, &str) = ("v1", "Service");
const POD: (&str, &str) = ("v1", "Pod");

const CORNERS: [((&str, &str), &str, &str); 36] = [
    // Nothing at all.
    (POD, "{}", "{}"),
    (POD, "null", r#"{"spec": {}}"#),
    (POD, r#"{"spec": {}}"#, "null"),
    (POD, r#"{"spec": {"nodeName": "a"}}"#, r#"{"$patch": "delete"}"#),
    (POD, r#"{"spec": {"nodeName": "a"}}"#, r#"{"$patch": "replace", "spec": {"hostname": null}}"#),
    (POD, r#"{"spec": {"nodeName": "a"}}"#, r#"{"$patch": null}"#),
    (POD, r#"{"spec": null}"#, r#"{"spec": {"nodeName": null, "hostname": "a"}}"#),
    // Fields in another case, and fields that are not there.
    (POD, r#"{"SPEC": {"a": "b"}}"#, r#"{"SPEC": {"nodeName": "c"}}"#),
    (POD, r#"{"spec": {"CONTAINERS": [{"name": "a"}]}}"#, r#"{"spec": {"CONTAINERS": [{"name": "b"}]}}"#),
    (POD, r#"{"spec": {"none": {"a": "b"}}}"#, r#"{"spec": {"none": {"c": "d"}}}"#),
    (POD, r#"{"spec": {"none": ["a"]}}"#, r#"{"spec": {"none": ["b"]}}"#),
    (POD, r#"{"spec": {"none": "a"}}"#, r#"{"spec": {"none": "b"}}"#),
    (POD, r#"{"spec": {}}"#, r#"{"spec": {"none": {"a": "b"}, "$setElementOrder/nothing": []}}"#),
    (POD, r#"{"spec": {}}"#, r#"{"spec": {"$setElementOrder/nodeName": []}}"#),
    // Other types than the field has.
    (DEPLOYMENT, r#"{"spec": {"replicas": [1]}}"#, r#"{"spec": {"replicas": [2]}}"#),
    (DEPLOYMENT, r#"{"spec": {"paused": [1]}}"#, r#"{"spec": {"paused": [2]}}"#),
    (DEPLOYMENT, r#"{"spec": {"selector": [1]}}"#, r#"{"spec": {"selector": [2]}}"#),
    (DEPLOYMENT, r#"{"spec": {"template": [1]}}"#, r#"{"spec": {"template": [2]}}"#),
    (DEPLOYMENT, r#"{"spec": {"replicas": {"a": 1}}}"#, r#"{"spec": {"replicas": {"a": 2}}}"#),
    (DEPLOYMENT, r#"{"metadata": {"labels": {"a": {"b": 1}}}}"#, r#"{"metadata": {"labels": {"a": {"c": 1}}}}"#),
    (POD, r#"{"metadata": {"finalizers": [1, 2]}}"#, r#"{"metadata": {"finalizers": [1.0]}}"#),
    (POD, r#"{"metadata": {"finalizers": [true, false]}}"#, r#"{"metadata": {"finalizers": [true]}}"#),
    (POD, r#"{"metadata": {"finalizers": [{"a": 1}]}}"#, r#"{"metadata": {"finalizers": [{"a": 1}]}}"#),
    (POD, r#"{"spec": {"containers": ["a"]}}"#, r#"{"spec": {"containers": ["b"]}}"#),
    // Directives where they mean nothing, or something else.
    (POD, r#"{"metadata": {"finalizers": "a"}}"#, r#"{"metadata": {"$deleteFromPrimitiveList/finalizers": "b"}}"#),
    (POD, r#"{"metadata": {"finalizers": "a"}}"#, r#"{"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}"#),
    (POD, r#"{"metadata": {"finalizers": ["a"]}}"#, r#"{"metadata": {"$deleteFromPrimitiveList/finalizers": null}}"#),
    (POD, r#"{"metadata": {"finalizers": ["a"]}}"#, r#"{"metadata": {"$deleteFromPrimitiveListfinalizers": ["a"]}}"#),
    (
        POD,
        r#"{"metadata": {"labels": {"a": "b"}}}"#,
        r#"{"metadata": {"$deleteFromPrimitiveList/labels": {"c": "d"}}}"#,
    ),
    (
        SERVICE,
        r#"{"spec": {"ports": [{"port": 1}]}}"#,
        r#"{"spec": {"$deleteFromPrimitiveList/ports": [{"port": 2}]}}"#,
    ),
    (SERVICE, r#"{"spec": {"ports": [{"port": 1}]}}"#, r#"{"spec": {"$setElementOrder/ports": {"port": 1}}}"#),
    (SERVICE, r#"{"spec": {"ports": []}}"#, r#"{"spec": {"$setElementOrder/ports": [{"port": 1}]}}"#),
    (SERVICE, r#"{"spec": {}}"#, r#"{"spec": {"$setElementOrder/ports": [{"name": "a"}]}}"#),
    (SERVICE, r#"{"spec": {"type": "a"}}"#, r#"{"spec": {"$retainKeys": "type", "type": "b"}}"#),
    (SERVICE, r#"{"spec": {"type": "a"}}"#, r#"{"spec": {"$retainKeys": [{}], "type": "b"}}"#),
    (
        SERVICE,
        "{}",
        r#"{"spec": {"$retainKeys": ["type"], "type": "b", "ports": [{"$patch": null, "port": 1}, null]}}"#,
    ),
];

/// Returns them.
pub(super) fn pairs() -> Vec<Pair> {
    let read = |text: &str| serde_json::from_str(text).expect(text);
    let pair = |((api_version, kind), original, patch): ((_, _), &str, &str)| Pair {
        api_version,
        kind,
        original: read(original),
        patch: read(patch),
    };
    CORNERS.into_iter().map(pair).collect()
}
