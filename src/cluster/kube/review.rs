//! The rights of the credentials, asked for before anything is tried: an attempt that is refused stands in audit logs
//! as one.
//!
//! Both questions are about oneself, and every user may ask them (`authorization.k8s.io`).

use std::collections::BTreeSet;

use gatewright_engine::object::Gvk;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use serde_json::{Value, json};

use super::KubeCluster;
use super::failure::Failure;
use super::resource::{Resource, root};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

/// The verb that an apply asks for, dry run or not.
const VERB: &str = "patch";

impl KubeCluster {
    pub(super) async fn allowed_everywhere(&self, kinds: &BTreeSet<Gvk>) -> Result<BTreeSet<Gvk>, Failure> {
        let mut allowed = BTreeSet::new();
        for kind in kinds {
            let resource = self.discovery.find(&self.transport, kind).await?;
            let attributes = json!({"group": kind.group, "resource": resource.plural, "verb": VERB});
            let status = self.review("SelfSubjectAccessReview", json!({"resourceAttributes": attributes})).await?;
            if status["allowed"] == true {
                allowed.insert(kind.clone());
            }
        }
        Ok(allowed)
    }

    pub(super) async fn allowed_within(
        &self,
        kinds: &BTreeSet<Gvk>,
        namespace: &str,
    ) -> Result<BTreeSet<Gvk>, Failure> {
        let status = self.review("SelfSubjectRulesReview", json!({"namespace": namespace})).await?;
        let rules: Vec<&Value> = status["resourceRules"].as_array().into_iter().flatten().collect();
        let mut allowed = BTreeSet::new();
        for kind in kinds {
            let resource = self.discovery.find(&self.transport, kind).await?;
            if rules.iter().any(|rule| allows(rule, kind, &resource)) {
                allowed.insert(kind.clone());
            }
        }
        Ok(allowed)
    }

    async fn review(&self, kind: &str, spec: Value) -> Result<Value, Failure> {
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
        let resource = format!("{}s", kind.to_lowercase());
        let request = Request::post(format!("{REVIEWS}/{resource}")).header(CONTENT_TYPE, "application/json");
        let request = request.body(body.to_string().into_bytes())?;
        Ok(self.transport.ask(request).await?["status"].take())
    }

    /// Reads what the server says about a version of an API group; `None` if it says nothing.
    pub(super) async fn try_openapi(&self, api_version: &str) -> Result<Option<Value>, Failure> {
        match self.transport.get(&format!("/openapi/v3{}", root(api_version))).await {
            Ok(document) => Ok(Some(document)),
            // What is not there is said in plain text here.
            Err(Failure::NotKubernetes { code: Some(StatusCode::NOT_FOUND), .. }) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// Tells whether a rule allows every object of a kind to be applied.
fn allows(rule: &Value, kind: &Gvk, resource: &Resource) -> bool {
    let names = |field: &str, name: &str| {
        let listed = rule[field].as_array().into_iter().flatten();
        listed.filter_map(Value::as_str).any(|listed| listed == "*" || listed == name)
    };
    let is_about_all = rule["resourceNames"].as_array().is_none_or(Vec::is_empty);
    is_about_all && names("verbs", VERB) && names("apiGroups", &kind.group) && names("resources", &resource.plural)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::KindScope;

    #[test]
    fn a_rule_allows_what_it_names() {
        let deployments = Resource {
            api_version: "apps/v1".to_owned(),
            plural: "deployments".to_owned(),
            scope: KindScope::Namespaced,
        };
        let check = |rule: &Value, expected: bool| {
            assert_eq!(allows(rule, &Gvk::new("apps/v1", "Deployment"), &deployments), expected, "{rule}");
        };
        check(&json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), true);
        check(&json!({"verbs": ["get", "patch"], "apiGroups": ["apps"], "resources": ["deployments"]}), true);
        check(&json!({"verbs": ["get", "list"], "apiGroups": ["apps"], "resources": ["deployments"]}), false);
        check(&json!({"verbs": ["patch"], "apiGroups": [""], "resources": ["deployments"]}), false);
        let named = json!(["edge"]);
        check(&json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": named}), false);
    }
}
