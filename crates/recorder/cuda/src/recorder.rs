//! The recorder of the process, which all modules share: the spool (the log of events that the session reads), and
//! the ids of texts.

use crate::per_process::PerProcess;
use gapscope_spool::event::{CommonEvent, EventGroup, LossKind};
use gapscope_spool::{Spool, hook, ids};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The most texts that a thread remembers; beyond them it forgets all and starts over.
const MAX_THREAD_TEXTS: usize = 1 << 12;
/// The most texts that the process remembers; a forgotten text is written again with another id.
const MAX_PROCESS_TEXTS: usize = 1 << 16;

/// The recorder of this process.
pub struct Recorder {
    spool: Spool,
    /// The text that a label must contain to start the recording; `None` where no label does.
    start_label: Option<String>,
    texts: PerProcess<Mutex<Texts>>,
    /// The process that has written something: a forked child that does nothing leaves no spool.
    active: AtomicU32,
}

/// The ids of the texts that this process has written.
struct Texts {
    next: u32,
    ids: FxHashMap<Box<[u8]>, ids::Text>,
}

/// The ids of the texts that this thread has used.
struct ThreadTexts {
    /// The generation (count of forks) of the process in which the ids were used.
    generation: u32,
    ids: FxHashMap<Box<[u8]>, ids::Text>,
}

thread_local! {
    /// The ids that this thread remembers; `None` before the first.
    static TEXTS: RefCell<Option<ThreadTexts>> = const { RefCell::new(None) };
}

/// The recorder, once [`start`] was called; `None` in it where the process is not recorded.
static RECORDER: OnceLock<Option<Recorder>> = OnceLock::new();

/// Returns the recorder when this process is being recorded and [`start`] has been called.
#[inline]
pub fn recorder() -> Option<&'static Recorder> {
    RECORDER.get()?.as_ref()
}

/// Starts to record this process, if it is to be recorded and is not yet.
pub fn start() -> Option<&'static Recorder> {
    RECORDER.get_or_init(Recorder::new).as_ref()
}

impl Recorder {
    fn new() -> Option<Recorder> {
        // Without a spool the program stays unrecorded; the session (gapscope's process that writes the trace) sees
        // that no process appeared.
        let spool = Spool::from_env(|| hook::process_event("cuda"))
            .ok()
            .flatten()?;
        hook::silence();
        hook::pin_library();
        Some(Recorder {
            spool,
            start_label: std::env::var(gapscope_spool::env::START_LABEL)
                .ok()
                .filter(|t| !t.is_empty()),
            texts: PerProcess::new(),
            active: AtomicU32::new(gapscope_spool::writer::generation()),
        })
    }

    pub fn spool(&self) -> &Spool {
        &self.spool
    }

    /// Writes an event to the log of the calling thread.
    #[inline]
    pub fn write(&self, event: &impl EventGroup) {
        let generation = gapscope_spool::writer::generation();
        if self.active.load(Relaxed) != generation {
            self.active.store(generation, Relaxed);
        }
        self.spool.write(event);
    }

    /// Returns whether work is to be recorded; definitions and labels always are.
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

    /// Notes that nothing of CUDA is recorded in this process, in the ledger and as a sentence for the report.
    pub fn lose_all_work(&self, reason: &'static str, sentence: &str) {
        self.loss(LossKind::CudaWork, 1, reason);
        self.note(sentence);
    }

    /// Writes a sentence for the report.
    pub fn note(&self, sentence: &str) {
        self.write(&CommonEvent::Note {
            text: Cow::Borrowed(sentence),
        });
    }

    /// Returns whether a label's text starts the recording, which is off.
    #[inline]
    pub fn is_start_label(&self, text: &[u8]) -> bool {
        self.start_label.as_ref().is_some_and(|label| {
            !self.recording() && String::from_utf8_lossy(text).contains(label.as_str())
        })
    }

    /// Returns whether this process has written something: a forked child that used neither CUDA nor NVTX has not.
    pub fn is_active(&self) -> bool {
        self.active.load(Relaxed) == gapscope_spool::writer::generation()
    }

    /// Returns the id of a label's text, which is written before its first use.
    pub fn text(&self, text: &[u8]) -> ids::Text {
        let generation = gapscope_spool::writer::generation();
        TEXTS
            .try_with(|texts| {
                let Ok(mut texts) = texts.try_borrow_mut() else {
                    return self.new_text(text);
                };
                let usable = texts
                    .as_ref()
                    .is_some_and(|t| t.generation == generation && t.ids.len() < MAX_THREAD_TEXTS);
                if !usable {
                    *texts = None;
                }
                let texts = texts.get_or_insert_with(|| ThreadTexts {
                    generation,
                    ids: FxHashMap::default(),
                });
                if let Some(id) = texts.ids.get(text) {
                    return *id;
                }
                let id = self.new_text(text);
                texts.ids.insert(text.into(), id);
                id
            })
            .unwrap_or_else(|_| self.new_text(text))
    }

    /// Returns the id of a text that this thread has not used, and writes the text where the process has not.
    #[cold]
    fn new_text(&self, text: &[u8]) -> ids::Text {
        let texts = self.texts.get(|| {
            Mutex::new(Texts {
                next: 1,
                ids: FxHashMap::default(),
            })
        });
        let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = texts.ids.get(text) {
            return *id;
        }
        if texts.ids.len() >= MAX_PROCESS_TEXTS {
            texts.ids.clear();
        }
        let id = ids::Text(texts.next);
        texts.next += 1;
        texts.ids.insert(text.into(), id);
        self.write(&CommonEvent::Text {
            text: id,
            value: &String::from_utf8_lossy(text),
        });
        id
    }
}
