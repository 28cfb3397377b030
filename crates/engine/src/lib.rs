//! The merging, rendering and planning core of gatewright.

pub mod check;
pub mod diff;
pub mod error;
pub mod health;
pub mod inventory;
pub mod live;
pub mod marks;
pub mod merge;
pub mod object;
pub mod pack;
pub mod plan;
pub mod problem;
pub mod render;
pub mod resolve;
pub mod schema;
pub mod spec;
pub mod text;
pub mod tree;
pub mod unit;
pub mod yaml;
