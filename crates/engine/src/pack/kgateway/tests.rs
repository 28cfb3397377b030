//! Tests of the pack as a whole.

mod merging;
