//! A fleet that is made up: a config file, and specs of Gateways, in a folder.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// The name of the source.
pub(crate) const SOURCE: &str = "specs";

/// The size and shape of a fleet.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// The number of clusters.
    pub(crate) clusters: usize,
    /// The number of Gateways on each of them.
    pub(crate) gateways: usize,
    /// The number of sorts of clusters; each has an overlay of its own.
    pub(crate) sorts: usize,
    /// The sizes of waves, in percent of all clusters; the rest comes last. Empty: one cluster goes first.
    pub(crate) waves: Vec<u8>,
}

/// The content of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// All Gateways.
    First,
    /// The same with another image.
    OtherImage,
    /// One Gateway less.
    OneLess,
}

/// Writes the config file; `folder` is where everything is.
pub(crate) fn config(shape: &Shape) -> String {
    let mut text = format!(
        "stateDir: state\nhttp: {{listen: off}}\nsources:\n  {SOURCE}: {{directory: {{path: {SOURCE}, settle: 0s}}, poll: 30s}}\nclusters:\n"
    );
    let width = shape.clusters.to_string().len();
    for number in 0..shape.clusters {
        let (sort, wave) = (number % shape.sorts.max(1), shape.wave_of(number));
        let name = format!("c{:0width$}", number + 1);
        let labels = format!("{{sort: s{sort}, wave: w{wave}}}");
        write(&mut text, format_args!("  {name}: {{kubeconfig: {{path: none}}, labels: {labels}}}\n"));
    }
    text.push_str(
        "syncs:\n  gateways:\n    source: specs\n    clusters: {matchLabels: {}}\n    createNamespaces: true\n",
    );
    if !shape.waves.is_empty() {
        text.push_str("    rollout:\n      waves:\n");
        let used: BTreeSet<usize> = (0..shape.clusters).map(|number| shape.wave_of(number)).collect();
        for wave in used {
            write(&mut text, format_args!("        - clusters: {{matchLabels: {{wave: w{wave}}}}}\n"));
        }
    }
    text
}

impl Shape {
    /// Returns the wave of a cluster: those of a wave are spread over all sorts.
    fn wave_of(&self, number: usize) -> usize {
        let mut end = 0;
        for (wave, percent) in self.waves.iter().enumerate() {
            end += (self.clusters * usize::from(*percent)).div_ceil(100);
            if number < end {
                return wave;
            }
        }
        self.waves.len()
    }

    /// Writes the source.
    pub(crate) fn write(&self, content: Content, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("class.yaml"), class(if content == Content::OtherImage { "v2" } else { "v1" }))?;
        for sort in 0..self.sorts {
            fs::write(folder.join(format!("overlay-{sort}.yaml")), overlay(sort))?;
        }
        let left = self.gateways.saturating_sub(usize::from(content == Content::OneLess));
        for number in 0..left {
            fs::write(folder.join(format!("g{number:03}.yaml")), gateway(number))?;
        }
        Ok(())
    }
}

/// Makes a folder hold exactly the files of another one.
pub(super) fn replace(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if !from.join(entry.file_name()).exists() {
            fs::remove_file(entry.path())?;
        }
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

fn class(image: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {{name: kgateway}}\nspec:\n  \
         controllerName: kgateway.dev/kgateway\n  parametersRef: {{group: gateway.kgateway.dev, \
         kind: GatewayParameters, name: shared, namespace: infra}}\n---\n\
         apiVersion: gateway.kgateway.dev/v1alpha1\nkind: GatewayParameters\nmetadata: {{name: shared, namespace: infra}}\n\
         spec: {{kube: {{envoyContainer: {{image: {{tag: {image}}}}}}}}}\n"
    )
}

fn overlay(sort: usize) -> String {
    format!(
        "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {{name: sort-{sort}}}\nspec:\n  \
         clusters: {{matchLabels: {{sort: s{sort}}}}}\n  \
         parameters: {{kube: {{service: {{extraAnnotations: {{example.com/sort: s{sort}}}}}}}}}\n"
    )
}

fn gateway(number: usize) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: g{number:03}, namespace: infra}}\n\
         spec: {{gatewayClassName: kgateway, listeners: [{{name: http, port: 8080, protocol: HTTP}}]}}\n"
    )
}

fn write(text: &mut String, line: std::fmt::Arguments<'_>) {
    text.write_fmt(line).expect("a text takes everything");
}
