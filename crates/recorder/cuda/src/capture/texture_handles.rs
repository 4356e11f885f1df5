//! Keeps the handles of textures and surfaces that the program has. A handle is a small number that means nothing in
//! another process, so that a launch with one among its parameters cannot be captured.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

static HANDLES: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

fn handles() -> MutexGuard<'static, BTreeSet<usize>> {
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes that the program has made a texture or a surface.
pub fn made(handle: usize) {
    handles().insert(handle);
}

/// Notes that a texture or a surface has ended.
pub fn ended(handle: usize) {
    handles().remove(&handle);
}

/// Returns whether a word of parameters is the handle of a texture or a surface. A number that only looks like one
/// refuses a launch without need; it does so in programs with textures alone.
pub fn is_among(parameters: &[u8]) -> bool {
    let handles = handles();
    let mut words = parameters.as_chunks::<8>().0.iter();
    words.any(|word| handles.contains(&usize::from_ne_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_found_until_it_ends() {
        let parameters = [1_u64.to_ne_bytes(), 0x7001_u64.to_ne_bytes()].concat();
        assert!(!is_among(&parameters));
        made(0x7001);
        assert!(is_among(&parameters));
        ended(0x7001);
        assert!(!is_among(&parameters));
    }
}
