//! Addresses that a Gateway asks for.

use std::sync::LazyLock;

use regex::Regex;

use super::found::{Sheet, dotted, text};
use super::table::{MALFORMED_ADDRESS_TYPE, UNSUPPORTED_ADDRESS_TYPE};
use crate::check::suggest;
use crate::text::did_you_mean;
use crate::yaml::Node;

/// The types of the standard.
const TYPES: [&str; 3] = ["IPAddress", "Hostname", "NamedAddress"];

/// The type of a vendor: a domain and a path, as the definition of the kind means it. Its own pattern is not anchored at
/// both ends, so that it takes whatever contains `IPAddress`.
static OF_A_VENDOR: LazyLock<Regex> = LazyLock::new(|| {
    let label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
    let pattern = format!(r"^{label}(\.{label})*/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$");
    Regex::new(&pattern).expect("a test reads it")
});

/// Checks the types of addresses.
pub(super) fn check(sheet: &mut Sheet<'_>) {
    let addresses = sheet.root().at(["spec", "addresses"]).map(Node::items).unwrap_or_default();
    let types: Vec<&str> = addresses.iter().map(|it| text(it, &["type"]).unwrap_or(TYPES[0])).collect();
    let is_of_a_vendor = |ty: &str| !TYPES.contains(&ty) && OF_A_VENDOR.is_match(ty);
    let is_nothing_left = types.iter().all(|ty| is_of_a_vendor(ty));
    for (index, ty) in types.iter().enumerate().filter(|(_, ty)| !TYPES.contains(ty)) {
        let index = index.to_string();
        let path = ["spec", "addresses", &index, "type"];
        let at = dotted(&path);
        if !is_of_a_vendor(ty) {
            let message = format!("{at} is {ty:?}, but must be one of {}", TYPES.join(", "));
            let usual = || "that of a vendor begins with a domain, as example.com/name".to_owned();
            let hint = did_you_mean(suggest(ty, TYPES)).unwrap_or_else(usual);
            sheet.add(MALFORMED_ADDRESS_TYPE, &path, (message, hint));
        } else if !sheet.is_foreign() {
            let message = format!("{at} is {ty:?}, and no data plane that is rendered here knows such addresses");
            let said = (message, "use IPAddress or Hostname".to_owned());
            let rule = UNSUPPORTED_ADDRESS_TYPE;
            if is_nothing_left { sheet.add(rule, &path, said) } else { sheet.warn(rule, &path, said) }
        }
    }
}
