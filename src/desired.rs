//! Desired state: from the settings and the sources to the objects of each cluster.
//!
//! `assemble` builds sources and clusters from their settings, `cluster_secrets` reads which clusters the Secrets of
//! management clusters add to them, `cluster_folders` remembers those of folders, [`rendering`] says what a sync wants on each of its
//! clusters, `capabilities` asks a cluster where that decides what is rendered, [`siblings`] is what the other syncs want
//! there. `rights` derives what a sync may have to do on a cluster,
//! `preflight` asks a cluster who it is and which of those rights are missing, [`cases`] are what packs are tested with.
//!
//! May use `config` and all that stands below it in `ARCHITECTURE.md`.

pub(crate) mod assemble;
pub(crate) mod capabilities;
pub mod cases;
pub(crate) mod cluster_folders;
pub(crate) mod cluster_secrets;
pub mod differences;
pub(crate) mod preflight;
pub mod rendering;
pub(crate) mod rights;
pub mod siblings;
