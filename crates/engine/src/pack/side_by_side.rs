//! Packs side by side: which of them a document belongs to.

use std::fmt;

use super::{Pack, PackError};
use crate::admission::Definitions;
use crate::enforce::Rule;
use crate::kinds;
use crate::kinds::name::KindName;
use crate::rules::Severities;
use crate::rules::policies::Policies;
use crate::spec::{GATEWAY_API, Kinds, base_kinds};

/// Puts what packs say of kinds into one table.
fn table(packs: &[Pack]) -> Result<kinds::Table, PackError> {
    let mut table = kinds::Table::builtin();
    for (index, Pack { manifest, .. }) in packs.iter().enumerate() {
        table.add(&manifest.kinds).map_err(|(group, kind)| {
            let said = |other: &&Pack| kinds::say(&other.manifest.kinds, &group, &kind);
            let other = packs[..index].iter().find(said).map(|other| format!("pack {:?}", other.manifest.name));
            let other = other.unwrap_or_else(|| "gatewright itself".to_owned());
            PackError::Kinds { pack: manifest.name.clone(), other, kind: KindName::exact(&group, &kind) }
        })?;
    }
    for pack in packs {
        let read = pack.claimed.iter().map(|(claim, _)| (&claim.group, &claim.kind));
        let parameters = pack.kinds().map(|parameters| (&parameters.kind.group, &parameters.kind.kind));
        read.chain(parameters).for_each(|(group, kind)| table.add_name(group, kind));
    }
    Ok(table)
}

/// Packs side by side, and the kinds of documents that they read.
pub struct Packs {
    all: Vec<Pack>,
    kinds: Kinds,
    table: kinds::Table,
    definitions: Definitions,
    severities: Severities,
    policies: Policies,
}

impl fmt::Debug for Packs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|pack| &pack.manifest.name)).finish()
    }
}

impl Packs {
    /// Puts packs side by side; of two that claim one controller the first holds.
    pub fn new(packs: Vec<Pack>) -> Result<Self, PackError> {
        let table = table(&packs)?;
        let mut kinds = base_kinds().map_err(PackError::Schema)?;
        let mut all = Vec::new();
        for mut pack in packs {
            pack.hand_over(&mut kinds);
            // Their kinds are the same, and known by now.
            pack.overrides.iter_mut().for_each(|other| other.pack.hand_over(&mut Kinds::new()));
            all.push(pack);
        }
        for pack in &mut all {
            pack.read_rules(&kinds)?;
            pack.overrides.iter_mut().try_for_each(|other| other.pack.read_rules(&kinds))?;
        }
        Ok(Self {
            all,
            kinds,
            table,
            definitions: Definitions::default(),
            severities: Severities::default(),
            policies: Policies::default(),
        })
    }

    /// Adds the definitions by which documents are checked as an API server would.
    #[must_use]
    pub fn with_definitions(self, definitions: Definitions) -> Self {
        Self { definitions, ..self }
    }

    /// Puts the policies of a config file in force.
    #[must_use]
    pub fn with_policies(self, policies: Policies) -> Self {
        Self { policies, ..self }
    }

    /// Returns the policies that are in force.
    pub fn policies(&self) -> &Policies {
        &self.policies
    }

    /// Gives rules the severities of a config file.
    #[must_use]
    pub fn with_severities(self, severities: Severities) -> Self {
        Self { severities, ..self }
    }

    /// Returns the severities of rules that are not the usual ones.
    pub fn severities(&self) -> &Severities {
        &self.severities
    }

    /// Returns the definitions by which documents are checked.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Returns the pack that renders specs of a kind that is not Gateways'.
    pub fn claiming(&self, group: &str, kind: &str) -> Option<&Pack> {
        self.all.iter().find(|pack| pack.claims(group, kind))
    }

    /// Tells whether documents of a kind are specs: a Gateway, or what a pack claims.
    pub fn is_spec(&self, group: &str, kind: &str) -> bool {
        (group == GATEWAY_API && kind == "Gateway") || self.claiming(group, kind).is_some()
    }

    /// Returns the kinds that can be read.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Returns what is known of kinds: by itself, and by what packs say.
    pub fn table(&self) -> &kinds::Table {
        &self.table
    }

    /// Returns the packs, in their order.
    pub fn all(&self) -> &[Pack] {
        &self.all
    }

    /// Returns what must hold for the parameters of units, whichever pack renders them.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.all.iter().flat_map(|pack| &pack.rules)
    }

    /// Returns the pack that renders the Gateways of a controller.
    pub(crate) fn of_controller(&self, controller: &str) -> Option<&Pack> {
        self.all.iter().find(|pack| pack.manifest.controllers.iter().any(|name| name == controller))
    }

    /// Returns all controllers that packs render for.
    pub(crate) fn controllers(&self) -> impl Iterator<Item = &str> {
        self.all.iter().flat_map(|pack| &pack.manifest.controllers).map(String::as_str)
    }

    /// Returns the controller of a class that exists without a document: one of ours, or one that is left to others.
    pub(crate) fn builtin_class(&self, class: &str) -> Option<&str> {
        let ours = self.all.iter().find_map(|pack| pack.manifest.classes.get(class));
        ours.or_else(|| self.all.iter().find_map(|pack| pack.manifest.foreign_classes.get(class))).map(String::as_str)
    }

    /// Returns the names of the classes that exist without a document.
    pub(crate) fn builtin_classes(&self) -> impl Iterator<Item = &str> {
        self.all.iter().flat_map(|pack| pack.manifest.classes.keys()).map(String::as_str)
    }
}
