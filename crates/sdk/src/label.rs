//! Labels the work of a program.
//!
//! A label is a marker on the calling thread. gapscope records it, and assigns it to the work that the thread submits
//! (Vulkan) or launches (CUDA) while the label is open. A label that is not recorded costs a few nanoseconds.
//!
//! A hook is loaded with the first Vulkan instance or CUDA context of the process. Every label looks for a hook until
//! there is one, and from then on every 10 ms for a hook of the other kind. Labels that start before a hook is loaded
//! are not recorded.
//!
//! On Apple's systems a label is a signpost (`os_signpost`, subsystem `gapscope`, category `PointsOfInterest`, name
//! `label`, with the text as its message). Instruments shows it, and the import of Instruments' exports reads it as a
//! label. **This has not run on Apple hardware.** While no tool wants signposts, a label costs only a query of the
//! system.

#[cfg(any(test, target_vendor = "apple"))]
mod signposts;

use std::marker::PhantomData;

/// An open label, which ends when it is dropped.
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
    /// The label's state in the hooks or in the system.
    open: Option<system::OpenLabel>,
    /// Labels belong to their thread.
    not_send: PhantomData<*const ()>,
}

/// Begins a label on the calling thread.
///
/// ```
/// let _prefill = gapscope_sdk::label::label("prefill");
/// ```
pub fn label(text: &str) -> Label {
    Label {
        open: system::push(text),
        not_send: PhantomData,
    }
}

/// Sets a label at this moment on the calling thread.
///
/// ```
/// gapscope_sdk::label::instant("first token");
/// ```
pub fn instant(text: &str) {
    system::instant(text);
}

impl Drop for Label {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            system::pop(open);
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use crate::host_clock::nanoseconds;
    use gapscope_spool::interface::{Hook, Hooks, Status};
    use rustix::time::{ClockId, clock_gettime};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// The interval at which another hook is looked for while there is one.
    const PAUSE_NS: u64 = 10_000_000;

    /// The hooks that were found, with an index for each known kind; the last is a hook of an unknown kind.
    static FOUND: [OnceLock<Hook>; 3] = [const { OnceLock::new() }; 3];
    /// The names of the kinds of hooks that are known.
    const KINDS: [&str; 2] = ["vulkan", "cuda"];

    /// The number of libraries in the process when hooks were last looked for.
    static LIBRARIES: AtomicU64 = AtomicU64::new(0);
    /// When hooks were last looked for while there was one.
    static LOOKED_NS: AtomicU64 = AtomicU64::new(0);

    /// Returns the hooks of this process. A hook is loaded with the first Vulkan instance or CUDA context, so that
    /// the first label may come before it.
    fn hooks() -> impl Iterator<Item = &'static Hook> {
        if is_recorded() && is_time_to_look() {
            look();
        }
        FOUND.iter().filter_map(OnceLock::get)
    }

    /// Returns true in a session; otherwise no hook is loaded.
    fn is_recorded() -> bool {
        static RECORDED: OnceLock<bool> = OnceLock::new();
        *RECORDED.get_or_init(|| std::env::var_os(gapscope_spool::env::SPOOL).is_some())
    }

    /// Returns true at every label while there is no hook, and from time to time once there is one.
    fn is_time_to_look() -> bool {
        if FOUND.iter().all(|place| place.get().is_none()) {
            return true;
        }
        let now = clock_gettime(ClockId::MonotonicCoarse);
        let now_ns = nanoseconds(now.tv_sec, now.tv_nsec);
        let last_ns = LOOKED_NS.load(Relaxed);
        let is_time = now_ns.saturating_sub(last_ns) >= PAUSE_NS;
        is_time
            && LOOKED_NS
                .compare_exchange(last_ns, now_ns, Relaxed, Relaxed)
                .is_ok()
    }

    /// Looks for hooks, if libraries have been loaded since the last look.
    #[cold]
    fn look() {
        let libraries = Hooks::libraries_loaded();
        if LIBRARIES.swap(libraries, Relaxed) == libraries {
            return;
        }
        for hook in Hooks::loaded().iter() {
            let kind = KINDS.iter().position(|kind| *kind == hook.name());
            // A hook that was found before stays.
            let _ = FOUND[kind.unwrap_or(KINDS.len())].set(*hook);
        }
    }

    /// Calls all hooks and returns true if any of them accepted the call.
    fn each(work: impl Fn(&Hook) -> Status) -> bool {
        // All hooks must be called, unlike in `any`. A hook that was found after a label had started refuses the
        // label's end.
        hooks().fold(false, |taken, hook| (work(hook) == Status::Done) | taken)
    }

    /// Hooks keep the thread's labels themselves.
    pub type OpenLabel = ();

    /// Begins a label; `None` if no hook records it.
    pub fn push(text: &str) -> Option<OpenLabel> {
        each(|hook| hook.push_label(text)).then_some(())
    }

    pub fn pop((): OpenLabel) {
        each(Hook::pop_label);
    }

    pub fn instant(text: &str) {
        each(|hook| hook.instant_label(text));
    }
}

#[cfg(target_vendor = "apple")]
mod system {
    use super::signposts::{Id, OsLog, Signposts};
    use std::sync::LazyLock;

    static SIGNPOSTS: LazyLock<Signposts<OsLog>> = LazyLock::new(|| Signposts::to(OsLog::open()));

    pub type OpenLabel = Id;

    pub fn push(text: &str) -> Option<OpenLabel> {
        SIGNPOSTS.begin(text)
    }

    pub fn pop(open: OpenLabel) {
        SIGNPOSTS.end(open);
    }

    pub fn instant(text: &str) {
        SIGNPOSTS.instant(text);
    }
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
mod system {
    pub type OpenLabel = std::convert::Infallible;

    pub fn push(_: &str) -> Option<OpenLabel> {
        None
    }

    pub fn pop(open: OpenLabel) {
        match open {}
    }

    pub fn instant(_: &str) {}
}
