//! Labels: the program says what it is doing.
//!
//! A label is a marker on the calling thread. Recordings of gapscope show it, and give it to the work that the thread
//! submits (Vulkan) or launches (CUDA) while it is open. Without a hook in the process a label costs a few
//! nanoseconds.

use std::marker::PhantomData;

/// A label that is open. Dropping it ends it.
///
/// ```
/// fn step(number: u32) {
///     let _step = gapscope_sdk::label::label(&format!("step {number}"));
///     {
///         let _attention = gapscope_sdk::label::label("attention");
///         // … submit …
///     }
/// }
/// step(1);
/// ```
#[derive(Debug)]
#[must_use = "the label ends when this is dropped"]
pub struct Label {
    /// How many hooks took it; 0: nobody records.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    open: bool,
    /// Labels belong to their thread.
    not_send: PhantomData<*const ()>,
}

/// Begins a label on the calling thread.
pub fn label(text: &str) -> Label {
    Label {
        open: hooks::push(text),
        not_send: PhantomData,
    }
}

/// Sets a label at this moment on the calling thread.
///
/// ```
/// gapscope_sdk::label::instant("first token");
/// ```
pub fn instant(text: &str) {
    hooks::instant(text);
}

impl Drop for Label {
    fn drop(&mut self) {
        if self.open {
            hooks::pop();
        }
    }
}

#[cfg(target_os = "linux")]
mod hooks {
    use gapscope_spool::interface::{Hook, Hooks, Status};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    static FOUND: OnceLock<Hooks> = OnceLock::new();
    static LOOKED: AtomicU64 = AtomicU64::new(0);

    /// The hooks of this process. A hook is loaded with the first device, perhaps after the first label: while there
    /// is none, the 1st, 2nd, 4th, 8th, … label looks again.
    fn hooks() -> Option<&'static Hooks> {
        if let Some(found) = FOUND.get() {
            return Some(found);
        }
        // Without a session no hook records.
        std::env::var_os(gapscope_spool::env::SPOOL)?;
        let looked = LOOKED.fetch_add(1, Relaxed) + 1;
        if !looked.is_power_of_two() {
            return None;
        }
        let found = Hooks::loaded();
        if found.is_empty() {
            return None;
        }
        Some(FOUND.get_or_init(|| found))
    }

    /// True when any hook took it.
    fn each(work: impl Fn(&Hook) -> Status) -> bool {
        let Some(hooks) = hooks() else { return false };
        // Not `any`: every hook is told.
        hooks
            .iter()
            .fold(false, |taken, hook| (work(hook) == Status::Done) | taken)
    }

    pub fn push(text: &str) -> bool {
        each(|hook| hook.push_label(text))
    }

    pub fn pop() {
        each(Hook::pop_label);
    }

    pub fn instant(text: &str) {
        each(|hook| hook.instant_label(text));
    }
}

#[cfg(not(target_os = "linux"))]
mod hooks {
    pub fn push(_: &str) -> bool {
        false
    }

    pub fn pop() {}

    pub fn instant(_: &str) {}
}
