//! The rights of the credentials, asked for before anything is tried: an attempt that is refused stands in audit logs
//! as one.
//!
//! Both questions are about oneself, and every user may ask them (`authorization.k8s.io`).

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use gatewright_engine::object::Gvk;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use serde_json::{Value, json};

use super::KubeCluster;
use super::failure::Failure;
use super::resource::root;
use super::transport::Transport;
use crate::cluster::right::{IMPERSONATE, Right};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

/// The verb that an apply asks for, dry run or not.
const VERB: &str = "patch";

impl KubeCluster {
    pub(super) async fn allowed_everywhere(&self, kinds: &BTreeSet<Gvk>) -> Result<BTreeSet<Gvk>, Failure> {
        let mut allowed = BTreeSet::new();
        for kind in kinds {
            if has(&self.transport, &self.right_to_apply(kind).await?).await? {
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
        let status = rules_in(&self.transport, namespace).await?;
        let mut allowed = BTreeSet::new();
        for kind in kinds {
            if grants(&status, &self.right_to_apply(kind).await?) {
                allowed.insert(kind.clone());
            }
        }
        Ok(allowed)
    }

    /// Asks for ourselves what we do for ourselves, and as the account what is done as that. Who may not act as it has no
    /// answer to the rest.
    pub(super) async fn try_lacking(&self, rights: &BTreeSet<Right>) -> Result<BTreeSet<Right>, Failure> {
        if self.account.is_none() {
            return lacking(&self.own, rights.iter().collect()).await;
        }
        let (own, others): (Vec<&Right>, Vec<&Right>) = rights.iter().partition(|right| right.is_our_own());
        let mut missing = lacking(&self.own, own).await?;
        if missing.iter().all(|right| right.verb != IMPERSONATE) {
            missing.extend(lacking(&self.transport, others).await?);
        }
        Ok(missing)
    }

    async fn right_to_apply(&self, kind: &Gvk) -> Result<Right, Failure> {
        let resource = self.discovery.find(&self.own, kind).await?.plural;
        Ok(Right { namespace: None, group: kind.group.clone(), resource, verb: VERB.to_owned(), name: None })
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

/// One question tells all rights in a namespace; those that hold everywhere are asked for one by one.
async fn lacking(transport: &Transport, rights: Vec<&Right>) -> Result<BTreeSet<Right>, Failure> {
    let mut places: BTreeMap<&str, Vec<&Right>> = BTreeMap::new();
    let mut open: Vec<&Right> = Vec::new();
    for right in rights {
        match &right.namespace {
            Some(namespace) => places.entry(namespace).or_default().push(right),
            None => open.push(right),
        }
    }
    let mut lacking = BTreeSet::new();
    let asked =
        places.keys().map(async |namespace| Ok::<_, Failure>((*namespace, rules_in(transport, namespace).await?)));
    for (namespace, status) in try_join_all(asked).await? {
        let denied = places[namespace].iter().filter(|right| !grants(&status, right));
        // An authorizer that cannot list its rules (a webhook) may allow more than it lists.
        if status["incomplete"] == true {
            open.extend(denied);
        } else {
            lacking.extend(denied.map(|right| (*right).clone()));
        }
    }
    let asked = open.into_iter().map(async |right| Ok::<_, Failure>((right, has(transport, right).await?)));
    let answers = try_join_all(asked).await?;
    lacking.extend(answers.into_iter().filter(|(_, has)| !has).map(|(right, _)| right.clone()));
    Ok(lacking)
}

async fn has(transport: &Transport, right: &Right) -> Result<bool, Failure> {
    let (resource, subresource) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
    let attributes = json!({
        "group": right.group, "resource": resource, "subresource": subresource, "verb": right.verb,
        "namespace": right.namespace.as_deref().unwrap_or_default(),
        "name": right.name.as_deref().unwrap_or_default(),
    });
    let status = review(transport, "SelfSubjectAccessReview", json!({"resourceAttributes": attributes})).await?;
    Ok(status["allowed"] == true)
}

async fn rules_in(transport: &Transport, namespace: &str) -> Result<Value, Failure> {
    review(transport, "SelfSubjectRulesReview", json!({"namespace": namespace})).await
}

async fn review(transport: &Transport, kind: &str, spec: Value) -> Result<Value, Failure> {
    let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
    let resource = format!("{}s", kind.to_lowercase());
    let request = Request::post(format!("{REVIEWS}/{resource}")).header(CONTENT_TYPE, "application/json");
    let request = request.body(body.to_string().into_bytes())?;
    Ok(transport.ask(request).await?["status"].take())
}

/// Tells whether the rules of a review grant a right in their namespace.
fn grants(status: &Value, right: &Right) -> bool {
    status["resourceRules"].as_array().into_iter().flatten().any(|rule| allows(rule, right))
}

fn allows(rule: &Value, right: &Right) -> bool {
    let names = |field: &str, name: &str| {
        let listed = rule[field].as_array().into_iter().flatten();
        listed.filter_map(Value::as_str).any(|listed| listed == "*" || listed == name)
    };
    let objects = rule["resourceNames"].as_array().filter(|names| !names.is_empty());
    let is_about = |names: &Vec<Value>| right.name.as_ref().is_some_and(|name| names.iter().any(|it| it == name));
    objects.is_none_or(is_about)
        && names("verbs", &right.verb)
        && names("apiGroups", &right.group)
        && names("resources", &right.resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_allows_what_it_names() {
        let right = |name: Option<&str>| Right {
            namespace: None,
            group: "apps".to_owned(),
            resource: "deployments".to_owned(),
            verb: "patch".to_owned(),
            name: name.map(str::to_owned),
        };
        let check = |rule: &Value, expected: bool| assert_eq!(allows(rule, &right(None)), expected, "{rule}");
        check(&json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), true);
        check(&json!({"verbs": ["get", "patch"], "apiGroups": ["apps"], "resources": ["deployments"]}), true);
        check(&json!({"verbs": ["get", "list"], "apiGroups": ["apps"], "resources": ["deployments"]}), false);
        check(&json!({"verbs": ["patch"], "apiGroups": [""], "resources": ["deployments"]}), false);
        let named = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["edge"]});
        check(&named, false);
        assert!(allows(&named, &right(Some("edge"))) && !allows(&named, &right(Some("other"))));
    }
}
