//! The faults that a strategic merge patch can have.

use std::fmt;

use serde_json::Value;

use crate::diff::Segment;

/// The reason why a value of a patch, or of the object under it, cannot be merged. The path goes before it in a
/// message.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// It is something else than a mapping.
    #[error("must be a mapping")]
    NoMapping,
    /// It is something else than a list.
    #[error("{0}must be a list")]
    MustBeList(Side),
    /// The type holds one value and no list.
    #[error("is a list, but the field holds none")]
    NoList,
    /// The type has no such field.
    #[error("is no field of {of}")]
    UnknownField {
        /// The type.
        of: &'static str,
    },
    /// Mappings and lists lie where the type has neither.
    #[error("holds a mapping or a list, but lies where the type has only plain values")]
    NoFields,
    /// An item of a list lacks what it is recognized by.
    #[error("{side}has no {key:?}, by which items of this list are told apart")]
    NoKey {
        /// The field that it lacks.
        key: String,
        /// The side that the item is from.
        side: Side,
    },
    /// An item is recognized by something that cannot be compared.
    #[error("has a list or a mapping where items are compared")]
    Incomparable,
    /// Nothing tells the items of a list of mappings apart.
    #[error("is a list of mappings that nothing tells apart, which cannot be merged or ordered item by item")]
    KeylessList,
    /// The items are not all of one type.
    #[error("has items of different types, or lists or nulls among them")]
    MixedItems,
    /// There are no items to be ordered.
    #[error("has no items that could be put in order")]
    NoItems,
    /// `$patch` says something that there is not.
    #[error("has a \"$patch\" of {0}, but only \"delete\" and \"replace\" exist here")]
    Directive(Value),
    /// A directive that only kinds of Kubernetes have.
    #[error("is a directive that custom resources do not have")]
    NoDirective,
    /// The name of a directive ends before it says what it is about.
    #[error("is no directive; it needs a slash and the name of a list behind it")]
    IncompleteDirective,
    /// `$retainKeys` leaves out what the patch itself sets.
    #[error("leaves out {0:?}, which the patch sets")]
    NotRetained(String),
    /// `$setElementOrder` leaves out items of the patch, or has them in another order.
    #[error("does not have the items of the patch in their order")]
    OtherOrder,
}

/// The side of a patch whose value is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The patch's.
    Patch,
    /// The object's.
    Object,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Patch => "",
            Self::Object => "of the object ",
        })
    }
}

/// A fault and where it is, as far as the way back up has come.
#[derive(Debug)]
pub(super) struct Mistake {
    /// The last step first.
    way: Vec<Segment>,
    fault: Fault,
}

impl Mistake {
    /// Says that this field is on the way.
    pub(super) fn below(mut self, field: &str) -> Self {
        self.way.push(Segment::Field(field.to_owned()));
        self
    }

    /// Says that this item is on the way.
    pub(super) fn in_item(mut self, index: usize) -> Self {
        self.way.push(Segment::Index(index));
        self
    }

    /// Says that this is on the way.
    pub(super) fn at(mut self, segment: Segment) -> Self {
        self.way.push(segment);
        self
    }

    /// Returns the path from the top, and what is wrong there.
    pub(super) fn into_parts(mut self) -> (Vec<Segment>, Fault) {
        self.way.reverse();
        (self.way, self.fault)
    }
}

impl From<Fault> for Mistake {
    fn from(fault: Fault) -> Self {
        Self { way: Vec::new(), fault }
    }
}
