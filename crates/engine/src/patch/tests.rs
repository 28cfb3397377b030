use super::*;
use serde_json::json;

fn deployment() -> Gvk {
    Gvk::new("apps/v1", "Deployment")
}

/// Wraps the spec of a pod into a Deployment.
fn in_deployment(pod: &Value) -> Value {
    json!({"spec": {"template": {"spec": pod}}})
}

/// Patches the pod of a Deployment.
#[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
fn check(pod: Value, change: Value, expected: Value) {
    let patched = strategic(&in_deployment(&pod), &in_deployment(&change), &deployment()).expect("it can be patched");
    assert_eq!(patched, in_deployment(&expected), "{change}");
}

#[expect(clippy::needless_pass_by_value, reason = "literals read better without a borrow")]
fn fails(pod: Value, change: Value, expected: &str) {
    let error =
        strategic(&in_deployment(&pod), &in_deployment(&change), &deployment()).expect_err("it cannot be patched");
    assert_eq!(error.to_string().replace("spec.template.spec", "pod"), expected, "{change}");
}

#[test]
fn mappings_merge_and_nulls_delete() {
    check(
        json!({"nodeSelector": {"a": "1", "b": "2"}, "hostname": "h"}),
        json!({"nodeSelector": {"a": null, "c": "3", "d": null}, "hostname": null, "nodeName": "n"}),
        json!({"nodeSelector": {"b": "2", "c": "3"}, "nodeName": "n"}),
    );
}

#[test]
fn items_merge_by_their_key_and_new_ones_come_first() {
    check(
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}),
        json!({"containers": [{"name": "c"}, {"name": "b", "image": "3"}]}),
        json!({"containers": [{"name": "c"}, {"name": "a", "image": "1"}, {"name": "b", "image": "3"}]}),
    );
    check(
        json!({"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]}),
        json!({"containers": [{"name": "a", "env": [{"name": "X", "valueFrom": {}, "value": null}]}]}),
        json!({"containers": [{"name": "a", "env": [{"name": "X", "valueFrom": {}}]}]}),
    );
}

#[test]
fn lists_without_a_key_are_replaced() {
    check(
        json!({"tolerations": [{"key": "a"}], "containers": [{"name": "a", "args": ["1", "2"]}]}),
        json!({"tolerations": [{"key": "b"}], "containers": [{"name": "a", "args": ["3"]}]}),
        json!({"tolerations": [{"key": "b"}], "containers": [{"name": "a", "args": ["3"]}]}),
    );
}

#[test]
fn directives_delete_and_replace() {
    let volumes = || json!({"volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]});
    check(
        volumes(),
        json!({"volumes": [{"name": "a", "$patch": "delete"}]}),
        json!({"volumes": [{"name": "b", "emptyDir": {}}]}),
    );
    check(volumes(), json!({"volumes": [{"$patch": "replace"}, {"name": "c"}]}), json!({"volumes": [{"name": "c"}]}));
    check(
        volumes(),
        json!({"volumes": [{"name": "a", "$retainKeys": ["name", "secret"], "secret": {}}]}),
        json!({"volumes": [{"name": "a", "secret": {}}, {"name": "b", "emptyDir": {}}]}),
    );
    let context = || json!({"securityContext": {"runAsUser": 1, "fsGroup": 2}});
    check(context(), json!({"securityContext": {"$patch": "delete"}}), json!({"securityContext": {}}));
    check(
        context(),
        json!({"securityContext": {"$patch": "replace", "runAsUser": 3}}),
        json!({"securityContext": {"runAsUser": 3}}),
    );
}

#[test]
fn an_order_can_be_asked_for() {
    check(
        json!({"containers": [{"name": "a"}, {"name": "b"}]}),
        json!({
            "$setElementOrder/containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}],
            "containers": [{"name": "c"}],
        }),
        json!({"containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}]}),
    );
}

#[test]
fn plain_values_join_and_leave() {
    let metadata = |change: &Value| {
        let object = json!({"metadata": {"finalizers": ["a", "b"]}});
        strategic(&object, &json!({"metadata": change}), &deployment()).expect("it can be patched")["metadata"].clone()
    };
    assert_eq!(metadata(&json!({"finalizers": ["c", "a"]})), json!({"finalizers": ["c", "a", "b"]}));
    assert_eq!(metadata(&json!({"$deleteFromPrimitiveList/finalizers": ["a"]})), json!({"finalizers": ["b"]}));
}

#[test]
fn mistakes_are_named_with_their_path() {
    let pod = || json!({"containers": [{"name": "a", "ports": [{"containerPort": 80}], "args": ["x"]}]});
    fails(
        pod(),
        json!({"containers": [{"name": "a"}, {"image": "b"}]}),
        "pod.containers[1] has no \"name\", by which items of this list are told apart",
    );
    fails(
        json!({"volumes": [{"emptyDir": {}}]}),
        json!({"volumes": [{"name": "a"}]}),
        "pod.volumes[0] of the object has no \"name\", by which items of this list are told apart",
    );
    fails(
        pod(),
        json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "$patch": "remove"}]}]}),
        "pod.containers[0].ports[0] has a \"$patch\" of \"remove\", but only \"delete\" and \"replace\" exist here",
    );
    fails(
        pod(),
        json!({"containers": [{"name": "a"}], "$setElementOrder/containers": [{"name": "b"}]}),
        "pod.containers does not have the items of the patch in their order",
    );
    fails(
        json!({"securityContext": {}}),
        json!({"securityContext": {"$retainKeys": [], "runAsUser": 1}}),
        "pod.securityContext.$retainKeys leaves out \"runAsUser\", which the patch sets",
    );
    fails(json!({"contianers": []}), json!({"contianers": [1]}), "pod.contianers is no field of v1.PodSpec");
    let error = strategic(&json!({}), &json!([]), &deployment()).expect_err("it is a list");
    assert_eq!(error.to_string(), "the patch must be a mapping");
}

#[test]
fn custom_resources_take_other_patches() {
    let gvk = Gvk::new("autoscaling.k8s.io/v1", "VerticalPodAutoscaler");
    let (object, change) = (json!({"spec": {"a": {"b": 1}, "l": [1]}}), json!({"spec": {"a": {"b": null}, "l": [2]}}));
    let error = patch(&object, PatchType::Strategic, &change, &gvk).expect_err("nothing is known about the kind");
    let message =
        "strategic merge patches are not known for autoscaling.k8s.io/v1 VerticalPodAutoscaler; a merge patch is";
    assert_eq!(error.to_string(), message);
    let patched = patch(&object, PatchType::Merge, &change, &gvk).expect("it is a mapping");
    assert_eq!(patched, json!({"spec": {"a": {}, "l": [2]}}));
    assert!(patch(&object, PatchType::Merge, &json!("x"), &gvk).is_err());
}

#[test]
fn operations_are_carried_out_all_or_none() {
    let object = json!({"spec": {"l": [1, 2]}});
    let apply = |operations: &Value| patch(&object, PatchType::Json, operations, &deployment());
    let operations = json!([{"op": "add", "path": "/spec/l/-", "value": 3}, {"op": "remove", "path": "/spec/l/0"}]);
    assert_eq!(apply(&operations).expect("it is possible"), json!({"spec": {"l": [2, 3]}}));
    let operations = json!([{"op": "remove", "path": "/spec/l/0"}, {"op": "test", "path": "/spec/l/0", "value": 1}]);
    let error = apply(&operations).expect_err("the test fails");
    assert_eq!(error.to_string(), "operation 2, on \"/spec/l/0\", cannot be carried out");
    assert_eq!(apply(&json!({})).expect_err("it is no list").to_string(), "the patch is no list of operations");
}

#[test]
fn what_met_nothing_is_dropped_in_the_end() {
    let (object, change) =
        (json!({"spec": {}}), json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}));
    assert_eq!(strategic(&object, &change, &deployment()).expect("it can be patched"), change);
    let patched = patch(&object, PatchType::Strategic, &change, &deployment()).expect("it can be patched");
    assert_eq!(patched, json!({"spec": {"strategy": {"type": "Recreate"}}}));
}

#[test]
fn shared_keys_are_found() {
    let find = |object: &Value, gvk: &Gvk| {
        let found = ambiguous(object, gvk).into_iter();
        found.map(|it| format!("{} {}={} {:?}", it.place(), it.key, it.value, it.items)).collect::<Vec<_>>()
    };
    let service = json!({"spec": {"ports": [
        {"port": 443, "protocol": "TCP"}, {"port": 80}, {"port": 443, "protocol": "UDP"},
    ]}});
    assert_eq!(find(&service, &Gvk::new("v1", "Service")), ["spec.ports port=443 [0, 2]"]);
    let pod = json!({"containers": [{"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 1}]}]});
    let expected = "spec.template.spec.containers[a].ports containerPort=1 [0, 1]";
    assert_eq!(find(&in_deployment(&pod), &deployment()), [expected]);
    let deletes = json!({"spec": {"ports": [{"port": 1, "$patch": "delete"}, {"port": 1}]}});
    assert_eq!(find(&deletes, &Gvk::new("v1", "Service")), [""; 0]);
    assert_eq!(find(&service, &Gvk::new("example.com/v1", "Service")), [""; 0]);
}
