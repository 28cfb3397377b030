//! Devices that containers ask for, by the names that vendors have them announced with on nodes.

/// The names of whole devices.
pub(crate) const NAMES: [&str; 7] = [
    "amd.com/gpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "google.com/tpu",
    "gpu.intel.com/xe",
    "habana.ai/gaudi",
    "nvidia.com/gpu",
];

/// The beginnings of names, beside those that end in `/gpu`.
const BEGINNINGS: [&str; 5] =
    ["nvidia.com/mig-", "gpu.intel.com/", "habana.ai/gaudi", "aws.amazon.com/neuron", "google.com/tpu"];

/// Tells whether a resource is a device, or a part of one.
pub(crate) fn is_device(resource: &str) -> bool {
    resource.ends_with("/gpu") || BEGINNINGS.iter().any(|beginning| resource.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_a_device() {
        assert!(NAMES.into_iter().all(is_device));
        assert!(!["cpu", "memory", "example.com/disk", "gpu"].into_iter().any(is_device));
    }
}
