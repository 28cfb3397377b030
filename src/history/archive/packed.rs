//! Renderings in the form in which they are encrypted, each made once: many clusters keep the same one.

use std::sync::{Arc, Mutex, Weak};

use gatewright_engine::unit::marked::Marked;

use super::vault::VaultError;
use crate::basics::lock::lock;

/// The packed renderings that somebody still holds.
#[derive(Debug, Default)]
pub(super) struct Packed(Mutex<Vec<One>>);

/// A rendering, and its packed form.
type One = (Weak<Marked>, Arc<Vec<u8>>);

impl Packed {
    /// Returns what `pack` makes of a rendering; who asks for the same one meanwhile waits for it.
    pub(super) fn of(
        &self,
        rendering: &Arc<Marked>,
        pack: impl FnOnce() -> Result<Vec<u8>, VaultError>,
    ) -> Result<Arc<Vec<u8>>, VaultError> {
        let mut all = lock(&self.0);
        // As long as somebody remembers where it is, nothing else is there.
        if let Some((_, packed)) = all.iter().find(|(known, _)| Weak::as_ptr(known) == Arc::as_ptr(rendering)) {
            return Ok(Arc::clone(packed));
        }
        all.retain(|(known, _)| known.strong_count() > 0);
        let packed = Arc::new(pack()?);
        all.push((Arc::downgrade(rendering), Arc::clone(&packed)));
        Ok(packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rendering_is_packed_once_and_left_when_nobody_holds_it() {
        let (packed, one, other) = (Packed::default(), Arc::default(), Arc::default());
        let of =
            |rendering: &Arc<Marked>, byte: u8| packed.of(rendering, || Ok(vec![byte])).expect("it can be packed")[0];
        assert_eq!([of(&one, 1), of(&other, 2), of(&one, 3), of(&other, 4)], [1, 2, 1, 2]);
        drop(one);
        let third = Arc::default();
        assert_eq!([of(&third, 5), of(&other, 6)], [5, 2]);
        assert_eq!(lock(&packed.0).len(), 2);
    }
}
