//! Names of what belongs to a service, as KServe forms them: `ChildName` of Knative's `kmeta`.
//!
//! They must be the same to the letter, because presets form them too, and because objects of the operator are taken
//! over by their names.

use gatewright_engine::text::hex;
use md5::{Digest, Md5};

/// The longest label of a DNS name.
const LONGEST: usize = 63;

/// The length that is left of a name beside the 32 digits of an MD5 digest.
const HEAD: usize = LONGEST - 32;

/// Returns `<parent><suffix>`, shortened to 63 bytes if it must be: the beginning of the parent, the MD5 digest of all
/// of it, the suffix, and no dash between them. A suffix of 31 bytes or more comes into the digest too.
pub(super) fn child(parent: &str, suffix: &str) -> String {
    if parent.len() + suffix.len() <= LONGEST {
        return format!("{parent}{suffix}");
    }
    if suffix.len() < HEAD {
        return format!("{}{}{suffix}", cut(parent, HEAD - suffix.len()), digest(parent));
    }
    let name = format!("{}{}", cut(parent, HEAD), digest(&format!("{parent}{suffix}")));
    let name = format!("{name}{}", cut(suffix, LONGEST.saturating_sub(name.len())));
    name.trim_end_matches(|last: char| !last.is_ascii_alphanumeric()).to_owned()
}

fn digest(text: &str) -> String {
    hex(&Md5::digest(text.as_bytes()))
}

fn cut(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_those_that_the_operator_forms() {
        let long = "a-very-long-llm-inference-service-name-of-sixty-characters-xx";
        let check = |parent: &str, suffix: &str, expected: &str| assert_eq!(child(parent, suffix), expected);
        check("qwen", "-kserve", "qwen-kserve");
        check(long, "-kserve", "a-very-long-llm-inferencc77132b335e62be7a96ca87158263281-kserve");
        check(long, "-epp-service", "a-very-long-llm-infc77132b335e62be7a96ca87158263281-epp-service");
        let suffix = format!("-{long}-epp-auth-rb");
        check("llm", &suffix, "llmc387bb2a3bbd3e3ac4e4f2ac6b27159c-a-very-long-llm-inference-s");
    }

    proptest! {
        #[test]
        fn names_are_never_too_long(parent in "\\PC{0,90}", suffix in "\\PC{0,90}") {
            prop_assert!(child(&parent, &suffix).len() <= LONGEST);
        }
    }
}
