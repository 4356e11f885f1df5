//! Runs one input through one target. An input is any bytes; a promise is what gapscope says of reading them, such as
//! that it never panics.

use crate::bytes::MutateBytes;
use fastrand::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, Once, PoisonError};

/// A target: code that reads data from strangers.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of the target and of its folder in `corpus/`.
    pub name: &'static str,
    /// Reads an input, and panics if a promise is broken.
    pub read: fn(&[u8]),
    /// Changes an input so that it keeps enough of its format; the last argument changes bytes without a format.
    pub mutate: fn(&mut Vec<u8>, &mut Rng, MutateBytes<'_>),
}

/// The messages of the panics of the present input, in order.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Reads an input. A panic that leaves the target is printed, with those before it, and continues. Panics of the
/// Parquet library that gapscope catches are no faults and are not printed.
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
