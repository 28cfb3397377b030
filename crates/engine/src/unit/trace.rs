//! By what the objects are known that an implementation makes for its specs, whoever asks.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Deployer, Unit};
use crate::object::Gvk;
use crate::pack::{Pack, Packs};

/// By what the objects of an implementation are known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trace {
    /// The label that each of them bears; its value names the spec.
    pub label: String,
    /// The field manager of whoever makes them.
    pub manager: String,
    /// The kinds that it makes.
    pub kinds: BTreeSet<Gvk>,
}

impl Trace {
    fn of(pack: &Pack) -> Option<Self> {
        let traces = pack.manifest.traces.as_ref()?;
        let kinds = traces.kinds.iter().map(|kind| Gvk::new(&kind.api_version, &kind.kind)).collect();
        Some(Self { label: traces.label.clone(), manager: Deployer::of(pack)?.manager, kinds })
    }
}

/// Returns the traces of the deployers of these units; where there are no units, those of any pack.
pub(super) fn traces(packs: &Packs, units: &[Unit]) -> BTreeSet<Trace> {
    let managers: BTreeSet<&str> =
        units.iter().filter_map(|unit| unit.deployer.as_ref()).map(|deployer| deployer.manager.as_str()).collect();
    let traces = packs.all().iter().filter_map(Trace::of);
    traces.filter(|trace| managers.is_empty() || managers.contains(trace.manager.as_str())).collect()
}
