//! The table of all rules. An id is never given to another rule; a new rule is added at the end.

use super::Severity::{Error, Warning};
use super::{Id, Rule, Severity};

pub(crate) const CLASS_NOT_FOUND: Id = Id(1);
pub(crate) const INVALID_PARAMETERS: Id = Id(2);
pub(crate) const CLASS_PARAMETERS_NAMESPACE_MISSING: Id = Id(3);
pub(super) const CLASS_PARAMETERS_NAMESPACE_EXTRA: Id = Id(4);
/// A Gateway asks for addresses of a type that its data plane does not give.
pub const UNSUPPORTED_ADDRESS_TYPE: Id = Id(5);
pub(super) const MALFORMED_ADDRESS_TYPE: Id = Id(6);
pub(super) const UNSUPPORTED_PROTOCOL: Id = Id(7);
pub(super) const INVALID_ROUTE_KIND: Id = Id(8);
pub(super) const HTTPS_WITHOUT_TLS: Id = Id(9);
pub(super) const CERTIFICATE_NOT_FOUND: Id = Id(10);
pub(super) const CERTIFICATE_KIND: Id = Id(11);
pub(super) const REFERENCE_NOT_GRANTED: Id = Id(12);
pub(super) const CLIENT_CERTIFICATE: Id = Id(13);
pub(super) const AUTHORITY_KIND: Id = Id(14);
pub(super) const AUTHORITY_NOT_FOUND: Id = Id(15);
pub(super) const INSECURE_VALIDATION: Id = Id(16);
pub(super) const PROTOCOL_CONFLICT: Id = Id(17);
pub(super) const HTTP_AND_TLS_ON_ONE_PORT: Id = Id(18);
pub(super) const TLS_MODES_ON_ONE_PORT: Id = Id(19);
pub(super) const TCP_AND_UDP_ON_ONE_PORT: Id = Id(20);
pub(super) const RESERVED_PREFIX: Id = Id(21);
pub(super) const SELECTOR_MISSING: Id = Id(22);
pub(super) const HOSTNAME_IS_ADDRESS: Id = Id(23);
pub(super) const PORT_WITHOUT_LISTENER: Id = Id(24);
pub(super) const LISTENER_SET_NOT_ALLOWED: Id = Id(25);
pub(crate) const SERVICE_NAME: Id = Id(26);
pub(super) const CONTAINER_WITHOUT_IMAGE: Id = Id(27);
pub(super) const RESOURCE_NAME: Id = Id(28);
pub(super) const REQUEST_AND_LIMIT: Id = Id(29);
pub(super) const VOLUME_NOT_FOUND: Id = Id(30);
pub(super) const PORT_OF_TWO_CONTAINERS: Id = Id(31);
pub(super) const POD_VALUE: Id = Id(32);
pub(super) const REFERENCE_NOT_FOUND: Id = Id(33);
pub(super) const PARALLELISM_AND_DEVICES: Id = Id(34);
pub(super) const OBJECT_FIELD: Id = Id(35);
pub(super) const OBJECT_VALUE: Id = Id(36);
pub(super) const POD_SECURITY: Id = Id(37);
pub(super) const IMAGE_POLICY: Id = Id(38);
pub(super) const CERTIFICATE_INVALID: Id = Id(39);
pub(super) const CERTIFICATE_EXPIRED: Id = Id(40);
pub(super) const CERTIFICATE_HOSTNAME: Id = Id(41);
pub(super) const UNKNOWN_KIND: Id = Id(42);
pub(super) const ROUTE_PARENT: Id = Id(43);
pub(super) const ROUTE_HOSTNAME: Id = Id(44);
pub(super) const ROUTE_NOT_ALLOWED: Id = Id(45);
pub(super) const ROUTE_BACKEND: Id = Id(46);

const fn rule(
    (id, name): (Id, &'static str),
    severity: Severity,
    (condition, reason): (&'static str, &'static str),
    summary: &'static str,
) -> Rule {
    // Nothing can be rendered of what breaks these two.
    let is_fixed = id.0 <= INVALID_PARAMETERS.0;
    Rule { id, name, severity, condition, reason, summary, is_fixed }
}

const LISTENER_LOST: (&str, &str) = ("Accepted=False", "ListenersNotValid");
const UNRESOLVED: (&str, &str) = ("ResolvedRefs=False", "InvalidCertificateRef");
const PARAMETERS: (&str, &str) = ("Accepted=False", "InvalidParameters");
const CONFLICT: (&str, &str) = ("Conflicted=True", "ProtocolConflict");
/// The standard says it in words only.
const NO_CONDITION: (&str, &str) = ("", "");

/// All rules, in the order of their ids.
pub static ALL: [Rule; 46] = [
    rule(
        (CLASS_NOT_FOUND, "class-not-found"),
        Error,
        ("Accepted=Unknown", "Pending"),
        "The class of a Gateway is neither in the source nor made by a control plane that a pack knows.",
    ),
    rule(
        (INVALID_PARAMETERS, "invalid-parameters"),
        Error,
        PARAMETERS,
        "The parameters of a Gateway are of another kind than its class takes, are not in the source, or are wrong.",
    ),
    rule(
        (CLASS_PARAMETERS_NAMESPACE_MISSING, "class-parameters-without-namespace"),
        Error,
        PARAMETERS,
        "A class refers to parameters of a kind that has namespaces, and names none.",
    ),
    rule(
        (CLASS_PARAMETERS_NAMESPACE_EXTRA, "class-parameters-with-namespace"),
        Error,
        PARAMETERS,
        "A class refers to parameters of a kind without namespaces, and names one.",
    ),
    rule(
        (UNSUPPORTED_ADDRESS_TYPE, "unsupported-address-type"),
        Error,
        ("Accepted=False", "UnsupportedAddress"),
        "A Gateway asks for addresses of a type that its data plane does not give.",
    ),
    rule(
        (MALFORMED_ADDRESS_TYPE, "malformed-address-type"),
        Error,
        ("Accepted=False", "UnsupportedAddress"),
        "The type of an address is no type of the standard, and not the name of a vendor's own either.",
    ),
    rule(
        (UNSUPPORTED_PROTOCOL, "unsupported-protocol"),
        Error,
        ("Accepted=False", "UnsupportedProtocol"),
        "A listener has a protocol that the standard does not know; an error where no listener is left.",
    ),
    rule(
        (INVALID_ROUTE_KIND, "invalid-route-kind"),
        Warning,
        ("ResolvedRefs=False", "InvalidRouteKinds"),
        "A listener allows a kind of routes that does not exist, or that its protocol does not take.",
    ),
    rule(
        (HTTPS_WITHOUT_TLS, "https-without-tls"),
        Error,
        LISTENER_LOST,
        "A listener for HTTPS says nothing of TLS; an error where no listener is left.",
    ),
    rule(
        (CERTIFICATE_NOT_FOUND, "certificate-not-found"),
        Warning,
        UNRESOLVED,
        "Nothing in the source is or makes the Secret that a listener names as its certificate.",
    ),
    rule(
        (CERTIFICATE_KIND, "certificate-kind"),
        Warning,
        UNRESOLVED,
        "A listener names something else than a Secret as its certificate.",
    ),
    rule(
        (REFERENCE_NOT_GRANTED, "reference-not-granted"),
        Warning,
        ("ResolvedRefs=False", "RefNotPermitted"),
        "A reference goes into another namespace, and no ReferenceGrant in the source allows it.",
    ),
    rule(
        (CLIENT_CERTIFICATE, "client-certificate"),
        Warning,
        ("ResolvedRefs=False", "InvalidClientCertificateRef"),
        "The certificate that a Gateway shows to backends is no Secret, or is not in the source.",
    ),
    rule(
        (AUTHORITY_KIND, "ca-certificate-kind"),
        Error,
        ("ResolvedRefs=False", "InvalidCACertificateKind"),
        "Clients are to be validated by something that holds no authorities; an error where no listener is left.",
    ),
    rule(
        (AUTHORITY_NOT_FOUND, "ca-certificate-not-found"),
        Warning,
        ("ResolvedRefs=False", "InvalidCACertificateRef"),
        "The authorities by which clients are to be validated are not in the source.",
    ),
    rule(
        (INSECURE_VALIDATION, "insecure-frontend-validation"),
        Warning,
        ("InsecureFrontendValidationMode=True", "ConfigurationChanged"),
        "Clients without a valid certificate are let in.",
    ),
    rule(
        (PROTOCOL_CONFLICT, "protocol-conflict"),
        Error,
        CONFLICT,
        "Two listeners have one port and protocols that cannot share it; an error where no listener is left.",
    ),
    rule(
        (HTTP_AND_TLS_ON_ONE_PORT, "http-and-tls-on-one-port"),
        Warning,
        CONFLICT,
        "Two listeners have one port, one with TLS and one without, which most data planes cannot tell apart.",
    ),
    rule(
        (TLS_MODES_ON_ONE_PORT, "tls-modes-on-one-port"),
        Warning,
        CONFLICT,
        "Two listeners for TLS have one port, and only one of them ends TLS, which not every data plane can do.",
    ),
    rule(
        (TCP_AND_UDP_ON_ONE_PORT, "tcp-and-udp-on-one-port"),
        Warning,
        NO_CONDITION,
        "One port is for TCP and for UDP, which some load balancers cannot do.",
    ),
    rule(
        (RESERVED_PREFIX, "reserved-prefix"),
        Error,
        NO_CONDITION,
        "A label or annotation for the objects of a Gateway has a prefix that is the standard's own.",
    ),
    rule(
        (SELECTOR_MISSING, "selector-missing"),
        Error,
        NO_CONDITION,
        "Namespaces are to be selected, and there is no selector.",
    ),
    rule(
        (HOSTNAME_IS_ADDRESS, "hostname-is-address"),
        Error,
        NO_CONDITION,
        "The hostname of a listener is an IP address, which the standard forbids.",
    ),
    rule(
        (PORT_WITHOUT_LISTENER, "tls-for-port-without-listener"),
        Warning,
        NO_CONDITION,
        "TLS is set up for a port on which no listener takes HTTPS.",
    ),
    rule(
        (LISTENER_SET_NOT_ALLOWED, "listener-set-not-allowed"),
        Warning,
        ("Accepted=False", "NotAllowed"),
        "A listener set names a Gateway that does not allow it, as far as the source shows.",
    ),
    rule(
        (SERVICE_NAME, "service-name"),
        Warning,
        NO_CONDITION,
        "A Service gets the name of its Gateway, and no Service can have that name.",
    ),
    rule(
        (CONTAINER_WITHOUT_IMAGE, "container-without-image"),
        Error,
        NO_CONDITION,
        "A container of a pod has no image.",
    ),
    rule(
        (RESOURCE_NAME, "resource-name"),
        Error,
        NO_CONDITION,
        "A container asks for a resource that no node can have; a warning where it looks like a misspelled device.",
    ),
    rule(
        (REQUEST_AND_LIMIT, "request-and-limit"),
        Error,
        NO_CONDITION,
        "A container requests more than its limit, or of a device something else than its limit.",
    ),
    rule(
        (VOLUME_NOT_FOUND, "volume-not-found"),
        Error,
        NO_CONDITION,
        "A container mounts a volume that its pod does not have.",
    ),
    rule(
        (PORT_OF_TWO_CONTAINERS, "port-of-two-containers"),
        Warning,
        NO_CONDITION,
        "Two containers of a pod have one port.",
    ),
    rule((POD_VALUE, "pod-value"), Error, NO_CONDITION, "A field of a pod has a value that no API server takes."),
    rule(
        (REFERENCE_NOT_FOUND, "reference-not-found"),
        Warning,
        NO_CONDITION,
        "A pod names a Secret, ConfigMap, claim or service account that is not in the source.",
    ),
    rule(
        (PARALLELISM_AND_DEVICES, "parallelism-and-devices"),
        Warning,
        NO_CONDITION,
        "A server of models is to spread a layer over more devices than its container may use.",
    ),
    rule(
        (OBJECT_FIELD, "object-field"),
        Error,
        NO_CONDITION,
        "An object of Kubernetes' own kinds has a field that its kind does not have, or a value of another type.",
    ),
    rule(
        (OBJECT_VALUE, "object-value"),
        Error,
        NO_CONDITION,
        "An object has a name, a label or values that no API server takes, alone or together.",
    ),
    rule(
        (POD_SECURITY, "pod-security"),
        Error,
        NO_CONDITION,
        "A pod does not keep to the level of the Pod Security Standards that the config file asks for.",
    ),
    rule(
        (IMAGE_POLICY, "image-policy"),
        Error,
        NO_CONDITION,
        "A container has an image from another registry than the config file allows, or one without a digest.",
    ),
    rule(
        (CERTIFICATE_INVALID, "certificate-invalid"),
        Warning,
        UNRESOLVED,
        "What the source has as a certificate or as authorities is none, or its key belongs to another certificate.",
    ),
    rule(
        (CERTIFICATE_EXPIRED, "certificate-expired"),
        Warning,
        NO_CONDITION,
        "A certificate in the source has expired, expires soon, or is not valid yet.",
    ),
    rule(
        (CERTIFICATE_HOSTNAME, "certificate-hostname"),
        Warning,
        NO_CONDITION,
        "No certificate of a listener is for its hostname.",
    ),
    rule(
        (UNKNOWN_KIND, "unknown-kind"),
        Error,
        NO_CONDITION,
        "A document is of a group, version or kind that no API server has.",
    ),
    rule(
        (ROUTE_PARENT, "route-parent"),
        Warning,
        ("Accepted=False", "NoMatchingParent"),
        "A route names a Gateway, a listener or a port that is misspelled or not there.",
    ),
    rule(
        (ROUTE_HOSTNAME, "route-hostname"),
        Warning,
        ("Accepted=False", "NoMatchingListenerHostname"),
        "No hostname of a route is one of the listeners that it names.",
    ),
    rule(
        (ROUTE_NOT_ALLOWED, "route-not-allowed"),
        Warning,
        ("Accepted=False", "NotAllowedByListeners"),
        "The listeners that a route names take no routes of its kind, or none of its namespace.",
    ),
    rule(
        (ROUTE_BACKEND, "route-backend"),
        Warning,
        ("ResolvedRefs=False", "BackendNotFound"),
        "A route sends to a Service that is misspelled, or to a port that the Service does not have.",
    ),
];

/// Returns the rule with an id.
pub fn find(id: Id) -> Option<&'static Rule> {
    ALL.iter().find(|rule| rule.id == id)
}
