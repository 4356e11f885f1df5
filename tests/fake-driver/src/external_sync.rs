//! Detects calls that the program should have synchronised.

use std::sync::atomic::{AtomicBool, Ordering::*};

use crate::misuse;

/// Guards an object that the program must synchronise ("externally synchronised" in Vulkan). Under misuse the guard
/// is a lock, so that the driver stays sound.
#[derive(Default)]
pub struct ExternalSync {
    entered: AtomicBool,
}

pub struct Entered<'a>(&'a ExternalSync);

impl ExternalSync {
    #[inline]
    pub fn enter(&self, call: &str, object: &str) -> Entered<'_> {
        if self.entered.swap(true, Acquire) {
            misuse::report(
                call,
                format_args!("another thread is using the same {object}"),
            );
            while self.entered.swap(true, Acquire) {
                std::thread::yield_now();
            }
        }
        Entered(self)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.entered.store(false, Release);
    }
}
