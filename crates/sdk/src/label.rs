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
#[inline]
pub fn label(text: &str) -> Label {
    Label {
        open: if system::is_recorded() {
            system::push(text)
        } else {
            None
        },
        not_send: PhantomData,
    }
}

/// Sets a label at this moment on the calling thread.
///
/// ```
/// gapscope_sdk::label::instant("first token");
/// ```
#[inline]
pub fn instant(text: &str) {
    if system::is_recorded() {
        system::instant(text);
    }
}

/// Returns true if labels may be recorded at present, so that a text is worth making.
///
/// ```
/// assert!(!gapscope_sdk::label::is_recorded(), "this is not run under `gapscope record`");
/// ```
#[inline]
pub fn is_recorded() -> bool {
    system::is_recorded()
}

/// Labels the rest of the enclosing block. Without a recording, the arguments of a text are not formatted.
///
/// ```
/// fn step(number: u32) {
///     gapscope_sdk::label_scope!("step {number}");
///     gapscope_sdk::label_scope!("prefill");
///     // … submit …
/// }
/// step(1);
/// ```
#[macro_export]
macro_rules! label_scope {
    ($text:literal $(, $($arguments:tt)*)?) => {
        let _label = $crate::label::is_recorded()
            .then(|| $crate::label::label_args(::core::format_args!($text $(, $($arguments)*)?)));
    };
}

/// Labels the rest of the enclosing function by the function's name.
///
/// ```
/// fn attention() {
///     gapscope_sdk::label_function!();
///     // … submit …
/// }
/// attention();
/// ```
#[macro_export]
macro_rules! label_function {
    () => {
        let _label = {
            fn here() {}
            let name = $crate::label::function_name(::core::any::type_name_of_val(&here));
            $crate::label::label(name)
        };
    };
}

/// Begins a label of which the text may be static.
#[doc(hidden)]
pub fn label_args(text: std::fmt::Arguments<'_>) -> Label {
    match text.as_str() {
        Some(text) => label(text),
        None => label(&text.to_string()),
    }
}

/// Returns the name of the function in which a function `here` is.
#[doc(hidden)]
#[inline]
pub fn function_name(of_here: &'static str) -> &'static str {
    let path = of_here.strip_suffix("::here").unwrap_or(of_here);
    path.trim_end_matches("::{{closure}}")
}

impl Drop for Label {
    #[inline]
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            system::pop(open);
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use crate::environment::session;
    use crate::host_clock::nanoseconds;
    use gapscope_spool::interface::{Hook, Hooks, Status};
    use rustix::time::{ClockId, clock_gettime};
    use std::cell::RefCell;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

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
        if is_time_to_look() {
            look();
        }
        FOUND.iter().filter_map(OnceLock::get)
    }

    /// Returns true under a command of gapscope; otherwise no hook is loaded.
    #[inline]
    pub fn is_recorded() -> bool {
        const UNREAD: u8 = 0;
        const NO: u8 = 1;
        const YES: u8 = 2;
        static RECORDED: AtomicU8 = AtomicU8::new(UNREAD);
        match RECORDED.load(Relaxed) {
            UNREAD => {
                let recorded = session().is_some();
                RECORDED.store(if recorded { YES } else { NO }, Relaxed);
                recorded
            }
            answer => answer == YES,
        }
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

    /// The number of a label on its thread.
    pub type OpenLabel = u64;

    /// The open labels of a thread.
    struct ThreadLabels {
        /// The labels, the innermost last.
        labels: Vec<(OpenLabel, Box<str>)>,
        next: OpenLabel,
    }

    thread_local! {
        static OPEN: RefCell<ThreadLabels> = const {
            RefCell::new(ThreadLabels {
                labels: Vec::new(),
                next: 0,
            })
        };
    }

    /// Begins a label; `None` if no hook records it.
    pub fn push(text: &str) -> Option<OpenLabel> {
        if !each(|hook| hook.push_label(text)) {
            return None;
        }
        // A thread that is ending may no longer have its labels.
        let pushed = OPEN.try_with(|open| {
            let mut open = open.borrow_mut();
            let number = open.next;
            open.next += 1;
            open.labels.push((number, text.into()));
            number
        });
        pushed.ok()
    }

    /// Ends a label. Hooks end the innermost one, so that labels inside of another end with it and begin again.
    pub fn pop(number: OpenLabel) {
        let _ = OPEN.try_with(|open| {
            let mut open = open.borrow_mut();
            let Some(place) = open.labels.iter().rposition(|(n, _)| *n == number) else {
                return;
            };
            let inner = open.labels.split_off(place + 1);
            open.labels.pop();
            for _ in 0..=inner.len() {
                each(Hook::pop_label);
            }
            for (_, text) in &inner {
                each(|hook| hook.push_label(text));
            }
            open.labels.extend(inner);
        });
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

    /// Returns true if a tool may want signposts now.
    pub fn is_recorded() -> bool {
        SIGNPOSTS.is_enabled()
    }

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

    pub fn is_recorded() -> bool {
        false
    }

    pub fn push(_: &str) -> Option<OpenLabel> {
        None
    }

    pub fn pop(open: OpenLabel) {
        match open {}
    }

    pub fn instant(_: &str) {}
}
