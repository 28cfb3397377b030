//! An order to stop, for work that nobody waits for any more.
//!
//! Rendering is pure and runs on one thread, and a thread cannot be ended from outside. So the loops whose length a
//! source decides ask here, and return early with whatever they have; who has given the order throws that away. Work
//! that nobody interrupts yields the same whether or not it is done within [`Interrupt::during`].

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// An order to stop: given at most once, and never taken back.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Gives the order.
    pub fn give(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_given(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Does work on this thread that the order ends; what it yields then is worth nothing, and is not returned.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let _around = Around(CURRENT.replace(Some(self.clone())));
        let done = work();
        (!self.is_given()).then_some(done)
    }
}

/// The work that was being done on this thread, and is again when this is dropped, even if the work within ends in a bug.
struct Around(Option<Interrupt>);

impl Drop for Around {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Tells whether the work on this thread is to stop.
pub fn is_given() -> bool {
    CURRENT.with_borrow(|current| current.as_ref().is_some_and(Interrupt::is_given))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_work_that_an_order_is_about_is_interrupted() {
        let (one, other) = (Interrupt::default(), Interrupt::default());
        other.give();
        assert_eq!(one.during(is_given), Some(false));
        let inner = one.during(|| (other.during(is_given), is_given()));
        assert_eq!(inner, Some((None, false)), "what was begun within other work ends alone");
        assert!(!is_given());
    }
}
