//! Small things that know nothing of Kubernetes: time, sizes, paths, private files, certificates, text that
//! others wrote.
//!
//! [`sanitize`] takes control characters out of any text, [`redact`] takes credentials out of addresses and headers; the
//! engine's `mask` hides secrets in objects.
//!
//! Uses no other folder.

pub mod clock;
pub mod duration;
pub(crate) mod glob;
pub(crate) mod lock;
pub(crate) mod paths;
pub(crate) mod pem;
pub(crate) mod private;
pub mod redact;
pub mod sanitize;
pub(crate) mod size;
pub(crate) mod waiting_line;
