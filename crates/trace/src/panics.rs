//! Catches panics of libraries that parse untrusted input.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// True while this thread is inside [`guarded`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// A panic that [`guarded`] caught, with its message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is damaged: {0}")]
pub struct Panicked(String);

impl Panicked {
    /// Returns the message of the panic alone.
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Calls a library that may panic on damaged input, such as Parquet's. A panic prints nothing in a process that called
/// [`quiet`].
///
/// # Errors
/// The call panicked.
pub fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, Panicked> {
    let outside = GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(outside);
    result.map_err(|panic| Panicked(message(&*panic)))
}

/// Silences the panics that [`guarded`] catches; all others go to the hook that was there. Meant for programs: a
/// library leaves its program's hook alone.
pub fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                others(panic);
            }
        }));
    });
}

/// Returns the text of a panic; a general one where it carries no text.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the reader gave up").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Messages that reached the earlier hook.
    static PRINTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

    #[test]
    fn only_panics_that_are_not_caught_here_are_printed() {
        panic::set_hook(Box::new(|panic| {
            let text = panic.payload_as_str().unwrap_or_default();
            PRINTED.lock().unwrap().push(text.to_owned());
        }));
        quiet();
        quiet();
        let nested = || guarded(|| panic!("inside")).map_err(|panic| panic.to_string());
        let result: Result<(), Panicked> = guarded(|| {
            assert_eq!(nested(), Err("it is damaged: inside".to_owned()));
            panic!("after it");
        });
        assert_eq!(result, Err(Panicked("after it".to_owned())));
        assert!(catch_unwind(|| panic!("outside")).is_err());
        let elsewhere = std::thread::spawn(|| panic!("elsewhere"));
        assert!(elsewhere.join().is_err());
        let _ = panic::take_hook();
        assert_eq!(*PRINTED.lock().unwrap(), ["outside", "elsewhere"]);
    }
}
