//! The account that requests are made as: impersonation, as `kubectl --as` has it.
//!
//! The credentials of the kubeconfig say who asks, and headers of each request say as whom (`Impersonate-User` and the
//! like). The API server checks first that the one may impersonate the other, and then everything else as if the other one
//! had asked.

use std::collections::BTreeMap;
use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::right::{IMPERSONATE, Right};

/// The header whose absence means that nobody is impersonated.
const USER: HeaderName = HeaderName::from_static("impersonate-user");
const GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const UID: HeaderName = HeaderName::from_static("impersonate-uid");

/// The beginning of the headers of everything else that is said of a user.
const EXTRA: &str = "impersonate-extra-";

/// The beginning of the name that an API server gives to a service account.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The group of the rights to impersonate anything but users, groups and service accounts.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// An account of an API server: `impersonate` in the config file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Account {
    /// A service account, as `NAMESPACE/NAME`; in place of `user`.
    pub service_account: Option<String>,
    /// A user, as `kubectl --as` has it.
    pub user: Option<String>,
    /// The groups that the user counts as a member of. A service account has its own where none are named.
    pub groups: Vec<String>,
    /// The uid of the user.
    pub uid: Option<String>,
    /// Anything else that authorizers and audit logs are told of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The reason why nobody can be impersonated so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// There is nobody, or there are two.
    #[error("one of user and serviceAccount is needed, and only one")]
    NotOne,
    /// It is not the name of a service account.
    #[error("{0:?} is no service account")]
    NoServiceAccount(String),
    /// It cannot stand in a header.
    #[error("{0} is empty, or has a character in it that no request can carry")]
    NoHeader(&'static str),
}

impl AccountError {
    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotOne => "write user: NAME, or serviceAccount: NAMESPACE/NAME; groups, uid and extra go with it",
            Self::NoServiceAccount(_) => "write it as NAMESPACE/NAME",
            Self::NoHeader(_) => "write it as `kubectl --as`, --as-group and --as-uid take it",
        }
    }
}

impl Account {
    /// Returns namespace and name of the service account that it is, however that is written.
    pub fn service_account(&self) -> Option<(&str, &str)> {
        match (&self.service_account, &self.user) {
            (Some(account), _) => account.split_once('/'),
            (None, Some(user)) => user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':'),
            (None, None) => None,
        }
    }

    /// Returns the user's name as the API server has it.
    pub fn user(&self) -> String {
        match (&self.user, self.service_account()) {
            (Some(user), _) => user.clone(),
            (None, Some((namespace, name))) => format!("{SERVICE_ACCOUNT}{namespace}:{name}"),
            (None, None) => String::new(),
        }
    }

    /// Tells whether an API server can be told to take us for it.
    pub fn check(&self) -> Result<(), AccountError> {
        self.headers().map(drop)
    }

    /// Returns the headers that say so.
    pub(crate) fn headers(&self) -> Result<HeaderMap, AccountError> {
        if self.user.is_some() == self.service_account.is_some() {
            return Err(AccountError::NotOne);
        }
        if let Some(account) = &self.service_account {
            let is_name = |part: &str| !part.is_empty() && !part.contains(['/', ':', ' ']);
            let parts = account.split_once('/').filter(|(namespace, name)| is_name(namespace) && is_name(name));
            parts.ok_or_else(|| AccountError::NoServiceAccount(account.clone()))?;
        }
        let mut headers = HeaderMap::new();
        headers.insert(USER, value("the user", &self.user())?);
        for group in &self.groups {
            headers.append(GROUP, value("a group", group)?);
        }
        if let Some(uid) = &self.uid {
            headers.insert(UID, value("the uid", uid)?);
        }
        for (key, values) in &self.extra {
            let name = extra_name(key).ok_or(AccountError::NoHeader("a key of extra"))?;
            for text in values {
                headers.append(name.clone(), value("a value of extra", text)?);
            }
        }
        Ok(headers)
    }

    /// Returns the rights that it takes to impersonate it.
    pub(crate) fn rights(&self) -> Vec<Right> {
        let right = |namespace: Option<&str>, group: &str, resource: &str, name: &str| Right {
            namespace: namespace.map(str::to_owned),
            group: group.to_owned(),
            resource: resource.to_owned(),
            verb: IMPERSONATE.to_owned(),
            name: Some(name.to_owned()),
        };
        let mut rights = vec![match self.service_account() {
            Some((namespace, name)) => right(Some(namespace), "", "serviceaccounts", name),
            None => right(None, "", "users", &self.user()),
        }];
        rights.extend(self.groups.iter().map(|group| right(None, "", "groups", group)));
        rights.extend(self.uid.iter().map(|uid| right(None, AUTHENTICATION, "uids", uid)));
        let extra = self.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        rights.extend(
            extra.map(|(key, value)| right(None, AUTHENTICATION, &format!("userextras/{}", key.to_lowercase()), value)),
        );
        rights
    }

    /// Returns the account as a binding names it.
    pub(crate) fn subject(&self) -> Value {
        match self.service_account() {
            Some((namespace, name)) => json!({"kind": "ServiceAccount", "namespace": namespace, "name": name}),
            None => json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": self.user()}),
        }
    }
}

/// Displays as `service account team-a/deployer`, or `user "alice" of groups "dev", "ops"`.
impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.service_account() {
            Some((namespace, name)) => write!(f, "service account {namespace}/{name}")?,
            None => write!(f, "user {:?}", self.user())?,
        }
        let groups: Vec<String> = self.groups.iter().map(|group| format!("{group:?}")).collect();
        match groups.as_slice() {
            [] => Ok(()),
            [group] => write!(f, " of group {group}"),
            groups => write!(f, " of groups {}", groups.join(", ")),
        }
    }
}

/// An account that requests are made as. Displays as `service account team-a/deployer (syncs.shop.impersonate)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Acting {
    /// The headers that each request bears.
    pub headers: HeaderMap,
    /// The account, for messages.
    name: String,
    /// The setting, or what a kubeconfig says.
    because: String,
    /// The rights that it takes, for messages.
    needs: Option<String>,
}

impl Acting {
    /// Prepares to act as an account.
    pub(crate) fn new(account: &Account, because: impl Into<String>) -> Result<Self, AccountError> {
        let rights: Vec<String> = account.rights().iter().map(Right::to_string).collect();
        let (headers, needs) = (account.headers()?, Some(rights.join(", ")));
        Ok(Self { headers, name: account.to_string(), because: because.into(), needs })
    }

    /// Leaves out of messages who it is: what stands in a Secret is quoted nowhere.
    pub(crate) fn unnamed(self) -> Self {
        Self { name: "the account".to_owned(), needs: None, ..self }
    }

    /// Says what is to be done if it is missing a right, or if we miss the right to act as it, as which `user` acts. Servers
    /// since 1.36 say of the latter that we cannot `impersonate-on:user-info:get` something.
    pub(crate) fn hint(&self, right: &str, user: &str) -> String {
        match &self.needs {
            _ if !right.starts_with(IMPERSONATE) => {
                format!("grant the right to {right} to {self}, as which {user} acts")
            }
            Some(needs) => format!("grant the right to {needs} to {user}, which is to act as {self}"),
            None => format!("grant the right to {right} to {user}, which is to act as {self}"),
        }
    }
}

impl fmt::Display for Acting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.because)
    }
}

fn value(what: &'static str, text: &str) -> Result<HeaderValue, AccountError> {
    let is_whole = !text.is_empty() && text.trim() == text;
    let value = HeaderValue::from_bytes(text.as_bytes()).ok().filter(|_| is_whole);
    value.ok_or(AccountError::NoHeader(what))
}

/// Names the header of a key: what no name of a header may have is escaped as the client of Kubernetes does it.
fn extra_name(key: &str) -> Option<HeaderName> {
    if key.is_empty() {
        return None;
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
    let letters = key.bytes().map(|byte| match byte {
        byte if is_plain(byte) => char::from(byte.to_ascii_lowercase()).to_string(),
        byte => format!("%{byte:02x}"),
    });
    format!("{EXTRA}{}", letters.collect::<String>()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(value: Value) -> Account {
        serde_json::from_value(value).expect("it is an account")
    }

    #[test]
    fn an_account_is_told_in_headers() {
        let user = account(json!({
            "user": "alice", "groups": ["dev", "ops"], "uid": "u-1", "extra": {"example.com/Team": ["a", "b"]},
        }));
        let headers = user.headers().expect("it is one");
        let told: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().expect("it is text"))).collect();
        let expected = [
            ("impersonate-user", "alice"),
            ("impersonate-group", "dev"),
            ("impersonate-group", "ops"),
            ("impersonate-uid", "u-1"),
            ("impersonate-extra-example.com%2fteam", "a"),
            ("impersonate-extra-example.com%2fteam", "b"),
        ];
        assert_eq!(told, expected);
        assert_eq!(user.to_string(), "user \"alice\" of groups \"dev\", \"ops\"");
        let needed: Vec<String> = user.rights().iter().map(Right::to_string).collect();
        assert_eq!(
            needed,
            [
                "impersonate users alice",
                "impersonate groups dev",
                "impersonate groups ops",
                "impersonate uids.authentication.k8s.io u-1",
                "impersonate userextras/example.com/team.authentication.k8s.io a",
                "impersonate userextras/example.com/team.authentication.k8s.io b",
            ]
        );
    }

    #[test]
    fn a_service_account_is_a_user_by_its_long_name() {
        let (short, long) = (json!({"serviceAccount": "shop/bot"}), json!({"user": "system:serviceaccount:shop:bot"}));
        for written in [short, long] {
            let account = account(written);
            assert_eq!(account.headers().expect("it is one")[USER], "system:serviceaccount:shop:bot");
            assert_eq!(account.to_string(), "service account shop/bot");
            assert_eq!(account.rights()[0].to_string(), "impersonate serviceaccounts bot in shop");
            assert_eq!(account.subject(), json!({"kind": "ServiceAccount", "namespace": "shop", "name": "bot"}));
        }
    }

    #[test]
    fn whoever_lacks_a_right_is_named() {
        let acting = Acting::new(&account(json!({"serviceAccount": "shop/bot"})), "syncs.edge.impersonate");
        let acting = acting.expect("it is one");
        let hint = |right: &str| acting.hint(right, "the user of \"a\"");
        assert_eq!(
            hint("patch services in namespace \"shop\""),
            "grant the right to patch services in namespace \"shop\" to service account shop/bot \
             (syncs.edge.impersonate), as which the user of \"a\" acts"
        );
        let to_act = "grant the right to impersonate serviceaccounts bot in shop to the user of \"a\", which is to act as \
                      service account shop/bot (syncs.edge.impersonate)";
        assert_eq!(hint("impersonate serviceaccounts in namespace \"shop\""), to_act);
        assert_eq!(hint("impersonate-on:serviceaccount:get namespaces everywhere"), to_act);
        assert!(!acting.unnamed().hint("impersonate users everywhere", "a").contains("bot"));
    }

    #[test]
    fn nobody_is_impersonated_by_halves() {
        let wrong = |value: Value| account(value).check().expect_err("it is none").to_string();
        assert!(wrong(json!({})).contains("one of user and serviceAccount"));
        assert!(wrong(json!({"groups": ["system:masters"]})).contains("one of user and serviceAccount"));
        assert!(wrong(json!({"user": "a", "serviceAccount": "b/c"})).contains("one of user and serviceAccount"));
        for name in ["bot", "shop/", "/bot", "a/b/c", "a:b/c"] {
            assert!(wrong(json!({"serviceAccount": name})).contains("is no service account"), "{name}");
        }
        for value in [
            json!({"user": ""}),
            json!({"user": "a\nb"}),
            json!({"user": "a "}),
            json!({"user": "a", "groups": [""]}),
            json!({"user": "a", "uid": "\u{7}"}),
            json!({"user": "a", "extra": {"": ["b"]}}),
            json!({"user": "a", "extra": {"b": [""]}}),
        ] {
            assert!(wrong(value).contains("no request can carry"));
        }
        assert_eq!(account(json!({"user": "jürgen"})).check(), Ok(()));
    }
}
