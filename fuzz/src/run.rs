//! One input through one target.

use crate::bytes::Any;
use fastrand::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, Once, PoisonError};

/// Something that reads what a stranger wrote.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder in `corpus/`.
    pub name: &'static str,
    /// Reads an input. It panics where a promise is broken.
    pub read: fn(&[u8]),
    /// Changes an input in a way that keeps enough of its form; the last argument changes bytes that have no form.
    pub mutate: fn(&mut Vec<u8>, &mut Rng, Any<'_>),
}

static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Reads an input. What panics is said before the panic goes on; panics that gapscope catches itself, of the Parquet
/// library, are no faults and not said.
pub fn run(target: &Target, input: &[u8]) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
            panics.push(panic.to_string());
        }));
    });
    PANICS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.read)(input))) {
        for text in &*PANICS.lock().unwrap_or_else(PoisonError::into_inner) {
            eprintln!("{}: {text}", target.name);
        }
        resume_unwind(panic);
    }
}
