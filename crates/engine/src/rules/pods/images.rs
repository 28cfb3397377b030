//! Images: where they may be from, and whether they are named by what is in them.

use super::policies::ImagePolicy;
use super::{Pod, items, name};
use crate::rules::table::IMAGE_POLICY;

/// The registry of images that name none, and the folder of those that have no name but their own.
const USUAL_REGISTRY: &str = "docker.io";
const USUAL_FOLDER: &str = "library";

pub(super) fn check(pod: &mut Pod<'_>, policy: &ImagePolicy) {
    for (list, container) in pod.containers() {
        let image = container["image"].as_str().unwrap_or_default();
        if image.is_empty() {
            continue;
        }
        let own = name(container);
        judge(pod, (policy, image), &[list, own, "image"], &format!("the container {own:?}"));
    }
    for volume in items(&pod.spec["volumes"]) {
        if let Some(image) = volume["image"]["reference"].as_str() {
            let own = name(volume);
            judge(pod, (policy, image), &["volumes", own, "image", "reference"], &format!("the volume {own:?}"));
        }
    }
}

fn judge(pod: &mut Pod<'_>, (policy, image): (&ImagePolicy, &str), path: &[&str], of: &str) {
    if !policy.registries.is_empty() && !policy.registries.iter().any(|registry| is_from(image, registry)) {
        let message = format!("the image {image:?} of {of} is from none of the registries");
        let hint = format!("use an image from {}", policy.registries.join(" or "));
        pod.add_firm(IMAGE_POLICY, path, (message, hint));
    }
    if policy.digests && !has_digest(image) {
        let message = format!("the image {image:?} of {of} has no digest");
        let hint = "add @sha256: and the digest of what was tested".to_owned();
        pod.add_firm(IMAGE_POLICY, path, (message, hint));
    }
}

/// Tells whether an image is named with a digest that may be one.
fn has_digest(image: &str) -> bool {
    let digest = image.split_once("@sha256:").map_or("", |(_, digest)| digest);
    digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Tells whether an image is from a registry, or from a folder of one. A name with two dots in a row is that of no image:
/// it would lead out of the folder.
fn is_from(image: &str, registry: &str) -> bool {
    let whole = whole(image);
    !image.contains("..")
        && whole.strip_prefix(registry.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the name of an image with its registry.
fn whole(image: &str) -> String {
    let is_registry = |first: &str| first.contains(['.', ':']) || first == "localhost";
    match image.split_once('/') {
        Some((first, _)) if is_registry(first) => image.to_owned(),
        Some(_) => format!("{USUAL_REGISTRY}/{image}"),
        None => format!("{USUAL_REGISTRY}/{USUAL_FOLDER}/{image}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_from_its_registry_and_the_folders_of_it() {
        for (image, registry) in [
            ("a.example/b:1", "a.example"),
            ("a.example/b/c:1", "a.example/b"),
            ("a.example:5000/b", "a.example:5000/"),
            ("proxy:1", "docker.io"),
            ("proxy:1", "docker.io/library"),
            ("acme/proxy", "docker.io/acme"),
        ] {
            assert!(is_from(image, registry), "{image} {registry}");
        }
        for (image, registry) in [
            ("a.example.com/b", "a.example"),
            ("a.example/bc/d", "a.example/b"),
            ("a.example/b", "a.example/b"),
            ("a.example/b", "docker.io"),
            ("a/example/b", "a.example"),
            ("a.example/b/../c", "a.example/b"),
        ] {
            assert!(!is_from(image, registry), "{image} {registry}");
        }
    }

    #[test]
    fn a_digest_is_whole() {
        let digest = "0123456789abcdef".repeat(4);
        assert!(has_digest(&format!("a.example/b@sha256:{digest}")) && has_digest(&format!("b:1@sha256:{digest}")));
        for image in ["b", "b:1", "b@sha256:", "b@sha256:abc", &format!("b@sha256:{digest}0"), &format!("b:{digest}")] {
            assert!(!has_digest(image), "{image}");
        }
    }
}
