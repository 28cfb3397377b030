//! A rendering that bears the marks of a sync: the only kind that can be planned.
//!
//! An object that is made without them is nobody's in the next round, and would be left behind without a word. So the
//! planner asks for this type, and only what puts marks on makes one. It is read like the rendering in it, and nothing
//! can be added to it any more.
//!
//! ```compile_fail
//! # use gatewright_engine::{inventory::Inventory, plan, unit::Rendering};
//! # fn plan_it(rendering: Rendering, observed: plan::Observed, policies: plan::policies::Policies) {
//! let plan = plan::plan(&rendering, &observed, &Inventory::default(), &policies);
//! # }
//! ```
//!
//! ```
//! # use gatewright_engine::{inventory::Inventory, plan, unit::Rendering};
//! # fn plan_it(rendering: Rendering, observed: plan::Observed, policies: plan::policies::Policies) {
//! let marked = rendering.marked(&policies.marker);
//! let plan = plan::plan(&marked, &observed, &Inventory::default(), &policies);
//! # }
//! ```

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::OnceLock;

use super::addresses::Addresses;
use super::{Rendering, Unit};
use crate::marks::Marker;
use crate::object::{Object, ObjectId};
use crate::text::{digest, digest_of};

/// A rendering with marks.
#[derive(Clone, Debug, Default)]
pub struct Marked {
    rendering: Rendering,
    /// The digest of its units, once somebody has asked for it: many clusters share a rendering.
    digest: OnceLock<String>,
    /// The same of its objects.
    of_objects: OnceLock<BTreeMap<ObjectId, String>>,
}

impl Rendering {
    /// Puts the marks of a sync on every object: last, after everything that may change one.
    pub fn marked(mut self, marker: &Marker) -> Marked {
        for unit in &mut self.units {
            unit.map(|object| marker.mark(object));
        }
        Marked::of(self)
    }

    /// Leaves every object without marks, for what carries none, like a folder of manifests that another tool deploys.
    ///
    /// There only the inventory says what is ours: set [`Observed::is_unmarked`](crate::plan::Observed::is_unmarked).
    pub fn without_marks(self) -> Marked {
        Marked::of(self)
    }
}

impl Marked {
    fn of(rendering: Rendering) -> Self {
        Self { rendering, digest: OnceLock::new(), of_objects: OnceLock::new() }
    }

    /// Writes addresses into the copies of Gateways; `None` if there are none to write.
    pub fn with_addresses(&self, addresses: &Addresses) -> Option<Self> {
        self.rendering.with_addresses(addresses).map(Self::of)
    }

    /// Takes objects that were applied before, with the marks that they had.
    pub(crate) fn applied_before(rendering: Rendering) -> Self {
        Self::of(rendering)
    }

    /// Takes objects out of it.
    pub(crate) fn leave_out(&mut self, is_left_out: impl Fn(&ObjectId) -> bool) {
        (self.digest, self.of_objects) = (OnceLock::new(), OnceLock::new());
        for unit in &mut self.rendering.units {
            unit.objects.retain(|object| !is_left_out(object.id()));
        }
    }

    /// Returns the SHA-256 of its units, as 64 hexadecimal digits: what wants the same has the same.
    ///
    /// # Errors
    /// None that is known of: its objects come from JSON.
    pub fn digest(&self) -> Result<&str, serde_json::Error> {
        if let Some(known) = self.digest.get() {
            return Ok(known);
        }
        let digest = digest_of(&self.units)?;
        Ok(self.digest.get_or_init(|| digest))
    }

    /// Returns the SHA-256 of the body of each object, as 64 hexadecimal digits.
    pub fn digests(&self) -> &BTreeMap<ObjectId, String> {
        self.of_objects.get_or_init(|| {
            let of = |object: &Object| (object.id().clone(), digest(object.body().to_string().as_bytes()));
            self.units.iter().flat_map(Unit::all).map(of).collect()
        })
    }
}

impl Deref for Marked {
    type Target = Rendering;

    fn deref(&self) -> &Rendering {
        &self.rendering
    }
}
