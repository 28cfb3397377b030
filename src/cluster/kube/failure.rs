//! The failures of a request, and what they mean to the caller.

use std::error::Error as StdError;
use std::io::{self, ErrorKind};
use std::iter::successors;
use std::time::Duration;

use http::StatusCode;
use kube::core::Status;
use kube::core::request::Error as BuildError;
use kube::core::response::StatusCause;

use super::resource::Attempt;
use crate::basics::redact::said_of;
use crate::basics::sanitize;
use crate::cluster::account::Acting;
use crate::cluster::budget::OverBudget;
use crate::cluster::exec::PluginError;
use crate::cluster::kubeconfig::KubeconfigError;
use crate::cluster::permit::Withdrawn;
use crate::cluster::{ClusterError, ImmutableFields, Reason};

/// The words in which API servers, and the rules of CRDs, say that a field cannot be changed.
const IMMUTABLE: [&str; 5] = [
    "field is immutable",
    "may not change once set",
    "cannot change roleRef",
    "is immutable",
    "may not be changed once set",
];

/// The reason why a request has no result. Nothing secret is in it but what others are quoted with.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The kubeconfig is of no use.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// It lies in a Secret that nobody has read.
    #[error(transparent)]
    Unread(KubeconfigError),
    /// The credential plugin gave nothing.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The TLS library does not take the certificates, or there is no such proxy.
    #[error("no client can be made of {place}: {problem}")]
    NoClient { place: String, problem: String },
    /// No answer, or not all of it, in time.
    #[error("{server} gave no answer within {limit:?}")]
    Timeout { server: String, limit: Duration },
    /// No connection, or it broke.
    #[error("no connection to {server}: {problem}")]
    NoConnection { server: String, problem: String, again: bool },
    /// Something answered, but no API server.
    #[error("what answers is no API server: {what}")]
    NotKubernetes { what: String, code: Option<StatusCode> },
    /// The answer has more bytes than are read.
    #[error("what answers is no API server, or sends too much at once: {server} sends more and more")]
    TooMuch { server: String },
    /// All answers together have more bytes than there is memory for.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// The API server said no.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The request cannot be made.
    #[error("{0}")]
    Impossible(String),
    /// A dry run was carried out.
    #[error(
        "{0} was written by a request that was only to be a dry run: the server, or something before it, ignores dryRun"
    )]
    DryRunIgnored(String),
    /// The API server does not have the kind.
    #[error("the cluster has no kind {0}")]
    NoKind(String),
    /// This host has lost the right to make the request before it was sent.
    #[error(transparent)]
    Withdrawn(#[from] Withdrawn),
}

/// The answer that an API server gave instead of doing it.
#[derive(Clone, Debug, Default, thiserror::Error)]
#[error("{}", self.text())]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) status: Status,
    /// `Retry-After`.
    pub(super) wait: Option<Duration>,
    /// The origin of our credentials: the kubeconfig.
    pub(super) place: String,
    /// The account that the request was made as, if that is another one.
    pub(super) acting: Option<Box<Acting>>,
    /// Whether it is the answer to another try: an earlier one may have been carried out, and its answer lost.
    pub(super) is_repeated: bool,
}

impl Refusal {
    /// Says it in one line: a server that puts more of them into its words could say there whatever it likes.
    fn text(&self) -> String {
        match (self.status.message.trim(), self.status.reason.as_str()) {
            ("", "") => format!("the server answered {}", self.code),
            ("", reason) => format!("the server answered {} {}", self.code, sanitize::line(reason)),
            (message, _) => sanitize::line(message).into_owned(),
        }
    }

    /// The server's words may quote values; of them only the names of fields remain.
    fn without_values(mut self) -> Self {
        let mut fields: Vec<String> = self.causes().map(|cause| cause.field.clone()).collect();
        // `… Kind=Secret): .data.key: expected string, got …`
        let path = self.status.message.split_once("): .").and_then(|(_, rest)| rest.split_once(": "));
        fields.extend(path.map(|(path, _)| format!(".{path}")));
        fields.retain(|field| !field.is_empty());
        let because = if fields.is_empty() { String::new() } else { format!(", because of {}", fields.join(", ")) };
        self.status.message = format!("the server answered {}{because}", self.code);
        self.status.details = None;
        self
    }

    /// Tells whether a webhook did not answer: that concerns the objects that it is asked about, and no others.
    fn misses_webhook(&self) -> bool {
        self.code == 500 && self.status.message.contains("webhook")
    }

    /// Tells whether admission refuses the object, such as a quota or a policy; an authorizer names the user, and what that may
    /// not do.
    fn is_denied(&self) -> bool {
        let message = &self.status.message;
        let is_of_admission = message.contains("is forbidden: ") || message.starts_with("admission webhook ");
        self.code == 403 && is_of_admission && !message.to_lowercase().contains("user \"")
    }

    fn causes(&self) -> impl Iterator<Item = &StatusCause> {
        self.status.details.iter().flat_map(|details| &details.causes)
    }

    pub(super) fn objects_to(&self, field: &str) -> bool {
        self.causes().any(|cause| cause.field == field)
    }

    /// Returns the fields that cannot be changed, if the server objects to nothing else, and to nothing of the metadata:
    /// a uid that cannot be changed means that the object is another one.
    fn immutable(&self) -> Vec<String> {
        let is_immutable = |cause: &StatusCause| {
            let is_content = !cause.field.is_empty() && !cause.field.starts_with("metadata");
            is_content && IMMUTABLE.iter().any(|words| cause.message.contains(words))
        };
        let mut fields: Vec<String> = self.causes().map(|cause| cause.field.clone()).collect();
        fields.sort();
        fields.dedup();
        if self.code == 422 && self.causes().all(is_immutable) { fields } else { Vec::new() }
    }

    fn misses(&self, name: &str) -> bool {
        let details = self.status.details.as_ref().filter(|_| self.code == 404);
        details.is_some_and(|details| details.name == name && details.kind != "namespaces")
    }

    pub(super) fn missing_namespace(&self) -> Option<&str> {
        let details = self.status.details.as_ref().filter(|details| self.code == 404 && details.kind == "namespaces");
        details.map(|details| details.name.as_str())
    }

    fn is_terminating(&self) -> bool {
        self.causes().any(|cause| cause.reason == "NamespaceTerminating")
    }

    /// Tells whether the object does not fit the schema of its kind. Of an apply that is said with a 500, and only in
    /// words.
    fn misses_schema(&self) -> bool {
        let says = |words: &str| self.status.message.starts_with(words);
        self.code == 500 && (says("failed to create typed patch object") || says("failed to convert new object"))
    }

    /// Returns the right that is missing: `patch services in namespace "infra"`. All API servers say it in one form,
    /// and admission policies and quotas, which answer 403 too, do not.
    fn missing_right(&self) -> Option<String> {
        let (_, rest) = self.status.message.split_once(" cannot ")?;
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once("\" in API group \"")?;
        let (group, rest) = rest.split_once('"')?;
        let dot = if group.is_empty() { "" } else { "." };
        let namespace = rest.split_once("in the namespace \"").and_then(|(_, rest)| rest.split_once('"'));
        let place = namespace.map_or("everywhere".to_owned(), |(namespace, _)| format!("in namespace {namespace:?}"));
        Some(format!("{verb} {resource}{dot}{group} {place}"))
    }

    fn hint(&self) -> Option<String> {
        if let Some(namespace) = self.missing_namespace() {
            return Some(format!("make the namespace {namespace:?}, or set createNamespaces: true"));
        }
        if self.is_terminating() {
            return Some("wait until the namespace is gone, and is made again".to_owned());
        }
        match self.code {
            401 => Some(format!("renew the credentials of {}: they are wrong or have expired", self.place)),
            403 => {
                let right = self.missing_right()?;
                let user = format!("the user of {}", self.place);
                Some(match &self.acting {
                    None => format!("grant the right to {right} to {user}"),
                    Some(acting) => acting.hint(&right, &user),
                })
            }
            _ => None,
        }
    }
}

impl From<http::Error> for Failure {
    fn from(error: http::Error) -> Self {
        Self::Impossible(error.to_string())
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self::Impossible(format!("the request cannot be put together ({error})"))
    }
}

impl Failure {
    /// Turns what the client library reports, which says little itself, into what lies at the bottom of it.
    pub(super) fn of_connection(server: &str, error: &(dyn StdError + 'static)) -> Self {
        let causes = || successors(Some(error), |error| (*error).source());
        let kind = causes().filter_map(|error| error.downcast_ref::<io::Error>()).last().map(io::Error::kind);
        let problem = causes().last().unwrap_or(error).to_string();
        // Waiting for as long again seldom helps, and a certificate stays what it is.
        let again = matches!(
            kind,
            Some(
                ErrorKind::ConnectionRefused
                    | ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionAborted
                    | ErrorKind::BrokenPipe
                    | ErrorKind::UnexpectedEof
            )
        ) || problem.contains("closed before message completed");
        Self::NoConnection { server: server.to_owned(), problem, again }
    }

    pub(super) fn refusal(&self, code: u16) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) if refusal.code == code => Some(refusal),
            _ => None,
        }
    }

    /// Makes a conflict of a refusal that is one, whatever number the server gave it.
    pub(super) fn into_conflict(mut self) -> Self {
        if let Self::Refused(refusal) = &mut self {
            refusal.code = 409;
        }
        self
    }

    /// Tells whether the object of this name does not exist. A 404 that does not say so says nothing about it.
    pub(super) fn misses(&self, name: &str) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.misses(name))
    }

    /// Tells whether less would have been answered: the page was more than we read, or than the server can send.
    pub(super) fn is_too_large(&self) -> bool {
        match self {
            Self::TooMuch { .. } => true,
            Self::Refused(refusal) => {
                refusal.code == 413 || refusal.code == 500 && refusal.status.message.contains("larger than max")
            }
            _ => false,
        }
    }

    /// Returns how long to wait before another try: what the server wants, else `otherwise`; `None` if a try is no use.
    ///
    /// Trying again is always safe: every write carries the condition that makes its second time a conflict.
    pub(super) fn pause(&self, otherwise: Duration) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => {
                // A webhook that is down stays down longer than we would wait, and slows down each object of a round.
                let passing = is_passing(refusal.code) && !refusal.misses_webhook() && !refusal.misses_schema();
                passing.then(|| refusal.wait.unwrap_or(otherwise))
            }
            Self::NotKubernetes { code: Some(code), .. } => is_passing(code.as_u16()).then_some(otherwise),
            Self::NoConnection { again: true, .. } => Some(otherwise),
            _ => None,
        }
    }

    fn reason(&self) -> Reason {
        match self {
            Self::Kubeconfig(_) | Self::Plugin(_) | Self::NoClient { .. } | Self::DryRunIgnored(_) => {
                Reason::Misconfigured
            }
            Self::Unread(_)
            | Self::Timeout { .. }
            | Self::NoConnection { .. }
            | Self::NotKubernetes { .. }
            | Self::TooMuch { .. } => Reason::Unreachable,
            Self::OverBudget(_) => Reason::Overloaded,
            Self::Impossible(_) => Reason::Invalid,
            Self::NoKind(_) => Reason::NotFound,
            Self::Withdrawn(_) => Reason::Other,
            Self::Refused(refusal) if refusal.is_terminating() || refusal.misses_webhook() => Reason::Other,
            Self::Refused(refusal) if refusal.is_denied() => Reason::Invalid,
            Self::Refused(refusal) if refusal.misses_schema() => Reason::Invalid,
            Self::Refused(refusal) => match refusal.code {
                401 => Reason::Unauthorized,
                403 => Reason::Forbidden,
                404 => Reason::NotFound,
                409 => Reason::Conflict,
                400 | 422 => Reason::Invalid,
                code if is_passing(code) => Reason::Overloaded,
                _ => Reason::Other,
            },
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Kubeconfig(error) | Self::Unread(error) => Some(error.hint.clone()),
            Self::Plugin(error) => error.hint.clone(),
            Self::NoClient { .. } => {
                Some("compare its certificates and proxy-url with a kubeconfig that works".to_owned())
            }
            Self::NoConnection { problem, .. } => Some(about_connection(problem).to_owned()),
            Self::Timeout { .. } => Some("look for a firewall on the way, or raise kubeconfig.timeout".to_owned()),
            Self::NotKubernetes { .. } | Self::TooMuch { .. } => {
                Some("look for a proxy or a login page at the address of the kubeconfig".to_owned())
            }
            Self::OverBudget(over) => Some(format!(
                "nothing is changed there, and other clusters go on; look for who has made so much, or raise {}",
                over.setting
            )),
            Self::DryRunIgnored(_) => Some(
                "no dry run is tried there any more: look for what drops dryRun, and restart gatewright".to_owned(),
            ),
            Self::NoKind(_) => {
                Some("install the CRDs that define it, or use a version that the cluster has".to_owned())
            }
            Self::Refused(refusal) => refusal.hint(),
            Self::Withdrawn(withdrawn) => Some(withdrawn.hint.clone()),
            Self::Impossible(_) => None,
        }
    }

    /// Takes out of the words of others what looks like a credential, and the secrets of what was sent.
    fn without_secrets(self, sent: &[String]) -> Self {
        match self {
            Self::Refused(mut refusal) => {
                refusal.status.message = said_of(&refusal.status.message, sent);
                Self::Refused(refusal)
            }
            Self::NotKubernetes { what, code } => Self::NotKubernetes { what: said_of(&what, sent), code },
            Self::NoConnection { server, problem, again } => {
                Self::NoConnection { server: said_of(&server, sent), problem: said_of(&problem, sent), again }
            }
            other => other,
        }
    }

    /// Says it to the caller.
    pub(super) fn into_error(self, attempt: &Attempt) -> ClusterError {
        let (reason, hint) = (self.reason(), self.hint());
        let source = match self.without_secrets(&attempt.sent) {
            Self::Refused(refusal) if attempt.secret => Self::Refused(Box::new(refusal.without_values())),
            Self::Refused(refusal) if !refusal.immutable().is_empty() => {
                let (fields, message) = (refusal.immutable(), refusal.text());
                let source = Box::new(ImmutableFields { fields, message });
                return ClusterError { action: attempt.action.clone(), reason, hint, source };
            }
            other => other,
        };
        ClusterError { action: attempt.action.clone(), reason, hint, source: Box::new(source) }
    }
}

fn is_passing(code: u16) -> bool {
    matches!(code, 429 | 500 | 502 | 503 | 504)
}

fn about_connection(problem: &str) -> &'static str {
    let says = |words: &str| problem.contains(words);
    if says("certificate") {
        "compare the certificate-authority and tls-server-name in the kubeconfig with what the server shows"
    } else if says("InvalidContentType") {
        "write the address with http:// in the kubeconfig if the server speaks no TLS"
    } else if says("lookup") || says("resolve") {
        "check the host name in the kubeconfig, and the name server of this host"
    } else {
        "check that the API server runs, and the address and proxy-url in the kubeconfig"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(causes: &[(&str, &str)], fields: &[&str]) {
        let causes: Vec<_> =
            causes.iter().map(|(field, message)| json!({"field": field, "message": message})).collect();
        let status = json!({"status": "Failure", "code": 422, "details": {"causes": causes}});
        let status = serde_json::from_value(status).expect("it is a status");
        let refusal = Refusal { code: 422, status, ..Refusal::default() };
        assert_eq!(refusal.immutable(), fields, "{causes:?}");
    }

    #[test]
    fn what_admission_refuses_is_no_matter_of_credentials() {
        let reason = |message: &str| {
            let status = serde_json::from_value(json!({"status": "Failure", "code": 403, "message": message}));
            let refusal = Refusal { code: 403, status: status.expect("it is a status"), ..Refusal::default() };
            Failure::Refused(Box::new(refusal)).reason()
        };
        for denied in [
            "configmaps \"web\" is forbidden: exceeded quota: q, requested: count/configmaps=1",
            "pods \"web\" is forbidden: violates PodSecurity \"restricted:latest\": host namespaces",
            "services \"web\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            "admission webhook \"policy.example.com\" denied the request: no",
        ] {
            assert_eq!(reason(denied), Reason::Invalid, "{denied}");
        }
        for forbidden in [
            "",
            "Forbidden",
            "configmaps is forbidden: User \"edge\" cannot list resource \"configmaps\" in API group \"\"",
            "users \"edge\" is forbidden: User \"admin\" cannot impersonate resource \"users\"",
            "roles.rbac.authorization.k8s.io \"r\" is forbidden: user \"edge\" (groups=[]) is attempting to grant",
        ] {
            assert_eq!(reason(forbidden), Reason::Forbidden, "{forbidden}");
        }
    }

    #[test]
    fn a_field_is_immutable_only_if_the_server_says_nothing_else() {
        let immutable = "Invalid value: {}: field is immutable";
        check(&[("spec.selector", immutable)], &["spec.selector"]);
        check(&[("spec.clusterIPs[0]", "Invalid value: []: may not change once set")], &["spec.clusterIPs[0]"]);
        check(&[("spec.selector", immutable), ("spec.replicas", "Invalid value: -1: must be positive")], &[]);
        check(&[("metadata.uid", immutable)], &[]);
        check(&[("metadata.name", immutable), ("spec.selector", immutable)], &[]);
        check(&[("spec.replicas", "Invalid value: -1: must be positive")], &[]);
        check(&[], &[]);
    }
}
