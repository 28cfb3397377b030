//! An API server, or what is on the way to it, that answers badly: nothing is lost, and nothing is done twice.
//!
//! The API server is a real one; a proxy before it keeps a log of what it was asked and carried out.

mod admission;
mod annotations;
mod answers;
mod credentials;
mod definitions;
mod kinds;
mod lost;

use crate::cluster::proxy::Proxy;
use crate::ownership::site::Site;
use crate::program::Run;

/// A site that reaches its server through a proxy.
pub(crate) struct Place {
    pub(crate) site: Site,
    pub(crate) proxy: Proxy,
}

impl Place {
    pub(crate) fn new(settings: &str) -> Self {
        let site = Site::new("");
        let proxy = Proxy::start(site.server);
        let place = Self { site, proxy };
        place.configure(settings);
        place
    }

    /// A place with this Gateway, of which nothing is missing.
    pub(crate) fn with(gateway: &str) -> Self {
        let place = Self::new("");
        place.site.want(&[gateway], 80);
        place.sync().exits(0).says("4 objects created");
        place.proxy.recovers();
        place
    }

    pub(crate) fn configure(&self, settings: &str) {
        self.site.configure(&self.site.name, settings);
        self.site.desk.replace(
            "gatewright.yaml",
            "kubeconfig: {}",
            "kubeconfig: {allowInsecureTls: true, timeout: 20s}",
        );
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.site.desk.run_with(&self.proxy.kubeconfig(), arguments)
    }

    pub(crate) fn sync(&self) -> Run {
        self.run(&["sync"])
    }

    /// Asserts that every prepared answer was given, and that the server did each of these things once and nothing else.
    #[track_caller]
    pub(crate) fn did(&self, verb: &str, objects: &[&str]) {
        assert_eq!(self.proxy.left(), 0, "some answers were not asked for: {:?}", self.proxy.seen());
        let mut done = self.proxy.carried_out();
        done.sort();
        let mut expected: Vec<String> = objects.iter().map(|object| self.line(verb, object)).collect();
        expected.sort();
        assert_eq!(done, expected);
    }

    fn line(&self, verb: &str, object: &str) -> String {
        let root = if object.starts_with("deployments/") { "apis/apps/v1" } else { "api/v1" };
        format!("{verb} /{root}/namespaces/{}/{object}", self.site.name)
    }

    /// Asserts that nothing is left to do, and that everything is there which belongs to this Gateway.
    #[track_caller]
    pub(crate) fn is_settled(&self, gateway: &str) {
        self.proxy.recovers();
        self.sync().exits(0).says("no changes");
        assert_eq!(self.proxy.carried_out(), [""; 0]);
        assert_eq!(self.site.left_of(gateway).len(), 4);
        let owned = self.site.inventory().entries.into_keys().filter(|id| id.name == gateway).count();
        assert_eq!(owned, 4, "the inventory knows all of them");
    }
}

/// The objects of a Gateway.
fn all_of(name: &str) -> [String; 4] {
    ["serviceaccounts", "configmaps", "services", "deployments"].map(|plural| format!("{plural}/{name}"))
}
