//! What the whole process shares: the spool, the mode and the counters of ids.

use gapscope_spool::{Event, Spool, hook};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{OnceLock, PoisonError, RwLock};

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    CommandBuffer,
    Dispatch,
    DispatchSerialised,
}

/// Counters of ids; each is never reused. 0 means "none".
pub struct Ids {
    pub device: AtomicU32,
    pub queue: AtomicU32,
    pub kernel: AtomicU32,
    pub buffer: AtomicU32,
    pub memory: AtomicU32,
    pub content: AtomicU32,
    pub recording: AtomicU32,
    pub submission: AtomicU32,
    pub semaphore: AtomicU32,
    pub instance: AtomicU64,
}

pub fn next_id(counter: &AtomicU32) -> u32 {
    counter.fetch_add(1, Relaxed)
}

pub struct Recorder {
    spool: Spool,
    pub mode: Mode,
    pub ids: Ids,
    start_label: Option<String>,
    texts: RwLock<Texts>,
}

/// Ids of the texts that have been written.
#[derive(Default)]
struct Texts {
    /// The process that wrote them: a forked child has written none yet.
    generation: u32,
    ids: HashMap<String, u32>,
}

impl Texts {
    fn id(&self, generation: u32, text: &str) -> Option<u32> {
        self.ids
            .get(text)
            .copied()
            .filter(|_| self.generation == generation)
    }
}

static RECORDER: OnceLock<Option<Recorder>> = OnceLock::new();

/// The recorder, when this process is being recorded.
pub fn recorder() -> Option<&'static Recorder> {
    RECORDER.get_or_init(Recorder::start).as_ref()
}

impl Recorder {
    fn start() -> Option<Recorder> {
        // A spool that cannot be made leaves the program unrecorded; the session sees that no process appeared.
        let spool = Spool::from_env(|| hook::process_event("vulkan"))
            .ok()
            .flatten()?;
        hook::silence();
        hook::pin_library();
        let mode = match std::env::var(gapscope_spool::env::MODE).as_deref() {
            Ok("command-buffer") => Mode::CommandBuffer,
            Ok("dispatch-serialised") => Mode::DispatchSerialised,
            _ => Mode::Dispatch,
        };
        let one = || AtomicU32::new(1);
        let recorder = Recorder {
            spool,
            mode,
            ids: Ids {
                device: one(),
                queue: one(),
                kernel: one(),
                buffer: one(),
                memory: one(),
                content: one(),
                recording: one(),
                submission: one(),
                semaphore: one(),
                instance: AtomicU64::new(1),
            },
            start_label: std::env::var(gapscope_spool::env::START_LABEL)
                .ok()
                .filter(|t| !t.is_empty()),
            texts: RwLock::default(),
        };
        // SAFETY: the handler is a plain function of this library, which is pinned.
        unsafe { libc::atexit(at_exit) };
        Some(recorder)
    }

    pub fn write(&self, event: &Event<'_>) {
        self.spool.write(event);
    }

    pub fn spool(&self) -> &Spool {
        &self.spool
    }

    /// True while work shall be recorded; definitions always are.
    pub fn recording(&self) -> bool {
        self.spool.recording()
    }

    pub fn loss(&self, what: &str, count: u64, reason: &str) {
        self.write(&Event::Loss {
            what: Cow::Borrowed(what),
            count,
            reason: Cow::Borrowed(reason),
        });
    }

    /// The id of a label's text, which is written once. A start label starts the recording.
    pub fn text(&self, text: &str) -> u32 {
        if self
            .start_label
            .as_deref()
            .is_some_and(|label| text.contains(label))
            && !self.recording()
        {
            self.spool.start();
        }
        let generation = gapscope_spool::writer::generation();
        if let Some(id) = self
            .texts
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .id(generation, text)
        {
            return id;
        }
        let mut texts = self.texts.write().unwrap_or_else(PoisonError::into_inner);
        if texts.generation != generation {
            *texts = Texts {
                generation,
                ids: HashMap::new(),
            };
        }
        if let Some(id) = texts.id(generation, text) {
            return id;
        }
        let id = texts.ids.len() as u32 + 1;
        texts.ids.insert(text.to_owned(), id);
        self.write(&Event::Text {
            text: id,
            value: text,
        });
        id
    }
}

extern "C" fn at_exit() {
    hook::guard(|| {
        let Some(recorder) = recorder() else { return };
        crate::host_calls::flush();
        let caught = hook::take_caught();
        if caught > 0 {
            recorder.loss("hook actions", caught, "internal error of the layer");
        }
        recorder.write(&Event::ProcessEnd {
            at_ns: gapscope_spool::monotonic_ns(),
        });
    });
}
