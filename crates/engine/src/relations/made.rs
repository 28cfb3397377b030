//! Whose pods these are, by their names alone: for pods that are gone, and for those who may not look at pods.

/// The letters and digits of random names in Kubernetes: none that could form a word.
const RANDOM: &str = "bcdfghjklmnpqrstvwxz2456789";

/// The length of the random end of a name.
const RANDOM_LENGTH: usize = 5;

/// The most characters of the digest of a template of pods in a name; they are of the same set.
const MAX_DIGEST: usize = 10;

/// Returns the workloads of which Kubernetes gives an object of this kind such a name, each as its kind and name.
pub fn possible_owners<'a>(kind: &str, name: &'a str) -> Vec<(&'static str, &'a str)> {
    let Some((stem, end)) = name.rsplit_once('-') else { return Vec::new() };
    match kind {
        "ReplicaSet" if is_digest(end) => vec![("Deployment", stem)],
        "Job" if is_number(end) => vec![("CronJob", stem)],
        "Pod" if is_random(end) && end.len() == RANDOM_LENGTH => {
            let before = stem.rsplit_once('-');
            let deployment = before.filter(|(_, digest)| is_digest(digest)).map(|(name, _)| ("Deployment", name));
            let scheduled = before.filter(|(_, time)| is_number(time)).map(|(name, _)| ("CronJob", name));
            let direct = ["DaemonSet", "ReplicaSet", "Job"].map(|kind| (kind, stem));
            deployment.into_iter().chain(scheduled).chain(direct).collect()
        }
        "Pod" if is_number(end) => vec![("StatefulSet", stem)],
        _ => Vec::new(),
    }
}

fn is_random(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|character| RANDOM.contains(character))
}

fn is_digest(text: &str) -> bool {
    is_random(text) && text.len() <= MAX_DIGEST
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|character| character.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_those_who_made_them_and_words_to_nobody() {
        let first = |kind, name| possible_owners(kind, name).first().copied();
        assert_eq!(first("Pod", "edge-67d8b54f9c-x2x4z"), Some(("Deployment", "edge")));
        assert_eq!(first("Pod", "edge-x2x4z"), Some(("DaemonSet", "edge")));
        assert_eq!(first("Pod", "edge-0"), Some(("StatefulSet", "edge")));
        assert_eq!(first("Pod", "edge-28733040-x2x4z"), Some(("CronJob", "edge")));
        assert_eq!(first("ReplicaSet", "edge-67d8b54f9c"), Some(("Deployment", "edge")));
        assert_eq!(first("Job", "edge-28733040"), Some(("CronJob", "edge")));
        // Another workload, whose name begins in the same way.
        assert!(!possible_owners("Pod", "edge-internal-67d8b54f9c-x2x4z").contains(&("Deployment", "edge")));
        assert!(possible_owners("Pod", "edge-internal").is_empty());
        assert!(possible_owners("Pod", "edge").is_empty() && possible_owners("ReplicaSet", "edge-").is_empty());
        assert!(possible_owners("Service", "edge-x2x4z").is_empty());
    }
}
