//! Keeps the recorder of the process, which all modules share: the spool, the mode of timing and the counters of
//! ids. It exists where the session's environment asks for a recording. A spool is the directory of logs into which
//! the process writes events and from which the session reads them.

use crate::polls;
use gapscope_spool::event::{CommonEvent, EventGroup, LossKind};
use gapscope_spool::ids::{self, Counter};
use gapscope_spool::{Spool, hook};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};

/// The granularity of timing, see `gapscope record --mode`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only command buffers have times.
    CommandBuffer,
    /// Each dispatch has times; no barriers are added.
    Dispatch,
    /// Each dispatch has times, and a barrier after it, so that dispatches do not overlap.
    DispatchSerialised,
}

/// The counters from which things get the ids that events use, one for each kind of thing.
#[derive(Default)]
pub struct Ids {
    pub device: Counter<ids::Device>,
    pub queue: Counter<ids::Queue>,
    pub kernel: Counter<ids::Kernel>,
    pub buffer: Counter<ids::Buffer>,
    pub memory: Counter<ids::Allocation>,
    pub content: Counter<ids::BindingContent>,
    pub recording: Counter<ids::CommandRecording>,
    pub semaphore: Counter<ids::Semaphore>,
    pub instance: Counter<ids::Instance>,
    pub submission: Counter<ids::Submission>,
}

pub struct Recorder {
    spool: Spool,
    pub mode: Mode,
    pub ids: Ids,
    /// A label that contains this text starts the recording; `None` if none does.
    start_label: Option<String>,
    texts: RwLock<Texts>,
}

/// The ids of label texts that have been written, by text.
#[derive(Default)]
struct Texts {
    /// The process that wrote the texts: a forked child has written none yet.
    generation: u32,
    ids: HashMap<String, ids::Text>,
}

impl Texts {
    /// The id of a text, if the process of this `generation` has written it.
    fn id(&self, generation: u32, text: &str) -> Option<ids::Text> {
        self.ids
            .get(text)
            .copied()
            .filter(|_| self.generation == generation)
    }
}

/// The recorder; `None` inside where this process is not recorded.
static RECORDER: OnceLock<Option<Recorder>> = OnceLock::new();

/// Returns the recorder, when this process is being recorded.
pub fn recorder() -> Option<&'static Recorder> {
    RECORDER.get_or_init(Recorder::start).as_ref()
}

impl Recorder {
    /// Makes the recorder where the session's environment names a spool.
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
        let recorder = Recorder {
            spool,
            mode,
            ids: Ids::default(),
            start_label: std::env::var(gapscope_spool::env::START_LABEL)
                .ok()
                .filter(|t| !t.is_empty()),
            texts: RwLock::default(),
        };
        // SAFETY: the handler is a plain function of this library, which is pinned.
        unsafe { libc::atexit(at_exit) };
        Some(recorder)
    }

    /// Writes an event to the log of the calling thread.
    pub fn write(&self, event: &impl EventGroup) {
        self.spool.write(event);
    }

    pub fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Returns whether work is to be recorded; definitions always are.
    pub fn recording(&self) -> bool {
        self.spool.recording()
    }

    /// Writes that so many things of a kind were not recorded, and the reason.
    pub fn loss(&self, kind: LossKind, count: u64, reason: &str) {
        self.write(&CommonEvent::Loss {
            kind,
            count,
            reason: Cow::Borrowed(reason),
        });
    }

    /// Returns the id of a label's text; writes the text when it is new. A text that contains the session's start
    /// label starts the recorder.
    pub fn text(&self, text: &str) -> ids::Text {
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
        let id = ids::Text(texts.ids.len() as u32 + 1);
        texts.ids.insert(text.to_owned(), id);
        self.write(&CommonEvent::Text {
            text: id,
            value: text,
        });
        id
    }
}

/// Writes the last polls, the number of panics that hooks have caught, and the end of the process.
extern "C" fn at_exit() {
    hook::guard(|| {
        let recorder = recorder().filter(|recorder| recorder.spool.has_begun());
        let Some(recorder) = recorder else { return };
        polls::flush();
        let caught = hook::take_caught();
        if caught > 0 {
            recorder.loss(LossKind::HookActions, caught, "internal error of the layer");
        }
        recorder.write(&CommonEvent::ProcessEnd {
            at_ns: gapscope_spool::monotonic_ns(),
        });
    });
}
