//! The contents of a pack itself: texts of its templates, and values that nobody can change.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Fixed;
use super::inputs::Case;
use super::spots::{fates, leaves, replaced};
use super::vary::{carries, others};
use crate::object::Object;
use crate::render::Renderer;

/// The part of a pack that makes one object.
pub(super) struct Maker {
    pack: String,
    /// The template, as `pack/file`.
    pub(super) template: Option<String>,
    /// The fields that the template has made; others were added later.
    made: BTreeSet<String>,
    /// Fields that come from a value, with the path of that.
    values: BTreeMap<String, String>,
}

/// One object as a template has made it.
struct Made<'a> {
    renderer: &'a Renderer,
    template: &'a str,
    object: Object,
    index: usize,
}

impl Maker {
    /// Finds the template of an object and, if `with_values`, which of its fields come from values.
    pub(super) fn of(case: &Case<'_>, object: &Object, with_values: bool) -> Self {
        let pack = case.resolved.pack;
        let mut maker =
            Self { pack: pack.manifest.name.clone(), template: None, made: BTreeSet::new(), values: BTreeMap::new() };
        let Some(values) = case.values() else { return maker };
        let Some(made) = Made::find(&pack.renderer, object, &values) else { return maker };
        maker.template = Some(format!("{}/{}", maker.pack, made.template));
        if with_values {
            maker.made = leaves(made.object.body()).iter().map(super::Spot::text).collect();
            maker.values = made.sources_in(&values);
        }
        maker
    }

    /// Says where a field comes from that no input has a say in.
    pub(super) fn fixed(&self, path: &str) -> Fixed {
        Fixed {
            pack: self.pack.clone(),
            template: self.template.clone().filter(|_| self.made.contains(path)),
            value: self.values.get(path).cloned(),
        }
    }
}

impl<'a> Made<'a> {
    fn find(renderer: &'a Renderer, wanted: &Object, values: &Value) -> Option<Self> {
        let is_wanted = |object: &Object| {
            let (id, wanted) = (object.id(), wanted.id());
            id.group == wanted.group && id.kind == wanted.kind && id.name == wanted.name
        };
        renderer.templates().iter().find_map(|template| {
            let mut objects = renderer.fill(template, values).ok()?;
            let index = objects.iter().position(is_wanted)?;
            Some(Self { renderer, template, object: objects.swap_remove(index), index })
        })
    }

    /// Changes one value after the other, and returns the fields that change with the path of the value; one that
    /// carries the value goes before one that merely depends on it.
    fn sources_in(&self, values: &Value) -> BTreeMap<String, String> {
        let fields = leaves(self.object.body());
        let mut sources: BTreeMap<String, (bool, String)> = BTreeMap::new();
        for value in leaves(values) {
            let Some(other) = others(&value.value).into_iter().next() else { continue };
            let changed = self.renderer.fill(self.template, &replaced(values, &value.steps, Some(other.clone())));
            let Some(after) = changed.ok().and_then(|objects| objects.into_iter().nth(self.index)) else { continue };
            for (field, fate) in fields.iter().zip(fates(self.object.body(), Some(after.body()))) {
                if fate == Some(&field.value) {
                    continue;
                }
                let carries = carries(&field.value, fate, &value.value, Some(&other));
                let known = sources.get(&field.text());
                if known.is_none_or(|(carried, _)| carries && !carried) {
                    sources.insert(field.text(), (carries, value.text()));
                }
            }
        }
        sources.into_iter().map(|(field, (_, value))| (field, value)).collect()
    }
}
