//! Who analyses a trace: a thread that keeps its timeline, and answers one question after the other.

use crate::Error;
use crate::snapshot::Snapshot;
use crate::store::Store;
use gapscope_analysis::bound_bytes::BindingSets;
use gapscope_analysis::counters::{Counter, counters};
use gapscope_analysis::dataflow::Dataflow;
use gapscope_analysis::gaps::{Cause, GapFinder, each_gap};
use gapscope_analysis::kernels::kernels;
use gapscope_analysis::warm_up::{FirstUses, warm_up};
use gapscope_analysis::{Findings, Options, Timeline};
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Gaps that are listed.
const LONGEST: usize = 1000;

/// A trace as the analyses see it.
pub struct Analysed<'a> {
    pub name: &'a str,
    pub snapshot: &'a Snapshot,
    pub timeline: &'a Timeline<'a>,
    bindings: OnceCell<BindingSets>,
    first_uses: OnceCell<FirstUses>,
    flow: OnceCell<Dataflow<'a>>,
    gaps: OnceCell<Gaps>,
    finder: OnceCell<GapFinder<'a>>,
    counters: OnceCell<Vec<Counter>>,
    found: OnceCell<Findings>,
    /// The answer to `findings`.
    pub findings: OnceCell<Arc<Vec<u8>>>,
}

impl<'a> Analysed<'a> {
    pub fn of(name: &'a str, snapshot: &'a Snapshot, timeline: &'a Timeline<'a>) -> Analysed<'a> {
        Analysed {
            name,
            snapshot,
            timeline,
            bindings: OnceCell::new(),
            first_uses: OnceCell::new(),
            flow: OnceCell::new(),
            gaps: OnceCell::new(),
            finder: OnceCell::new(),
            counters: OnceCell::new(),
            found: OnceCell::new(),
            findings: OnceCell::new(),
        }
    }

    pub fn bindings(&self) -> &BindingSets {
        self.bindings
            .get_or_init(|| BindingSets::of(&self.snapshot.trace))
    }

    pub fn first_uses(&self) -> &FirstUses {
        self.first_uses.get_or_init(|| {
            let kernels = kernels(self.timeline, self.bindings(), None, None);
            FirstUses::of(self.timeline, &kernels, &warm_up(self.timeline, &kernels))
        })
    }

    /// All findings, with so many of the longest gaps as are listed.
    pub fn found(&self) -> &Findings {
        self.found.get_or_init(|| {
            let options = Options {
                longest: LONGEST,
                ..Options::default()
            };
            Findings::of_timeline(self.timeline, &options)
        })
    }

    pub fn flow(&self) -> &Dataflow<'a> {
        self.flow.get_or_init(|| Dataflow::of(self.timeline))
    }

    pub fn finder(&self) -> &GapFinder<'a> {
        self.finder.get_or_init(|| GapFinder::of(self.timeline))
    }

    pub fn counters(&self) -> &[Counter] {
        self.counters.get_or_init(|| counters(self.timeline))
    }

    pub fn gaps(&self) -> &Gaps {
        self.gaps.get_or_init(|| Gaps::of(self.timeline))
    }
}

/// The parts of all gaps: a part has one cause.
#[derive(Debug, Default)]
pub struct Gaps {
    /// Where the parts of each GPU start, and the end of the last.
    pub bounds: Vec<usize>,
    pub start_ns: Vec<i64>,
    pub duration_ns: Vec<i64>,
    pub causes: Vec<Cause>,
    /// The first part of the same gap.
    pub firsts: Vec<u32>,
}

impl Gaps {
    fn of(timeline: &Timeline) -> Gaps {
        let mut gaps = Gaps {
            bounds: vec![0],
            ..Gaps::default()
        };
        for gpu in 0..timeline.gpus.len() {
            each_gap(timeline, gpu, |_, parts| {
                let first = gaps.causes.len() as u32;
                for part in parts {
                    gaps.firsts.push(first);
                    gaps.start_ns.push(part.start_ns);
                    gaps.duration_ns.push(part.duration_ns);
                    gaps.causes.push(part.cause);
                }
            });
            gaps.bounds.push(gaps.causes.len());
        }
        gaps
    }
}

type Question = Box<dyn for<'a, 'b> FnOnce(Result<&'b Analysed<'a>, Error>) + Send>;

/// Asks the thread.
#[derive(Debug)]
pub struct Analyst {
    questions: Mutex<Sender<Question>>,
}

impl Analyst {
    /// Starts the thread, which ends with the store.
    pub fn start(store: Weak<Store>) -> Analyst {
        let (questions, asked) = channel();
        std::thread::spawn(move || answer_all(&store, &asked));
        Analyst {
            questions: Mutex::new(questions),
        }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The trace cannot be read, or the analysis failed.
    pub fn ask<T: Send + 'static>(
        &self,
        question: impl for<'a, 'b> FnOnce(&'b Analysed<'a>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = channel();
        let question: Question = Box::new(move |analysed| {
            // Who asked may be gone.
            let _ = answer.send(analysed.map(question));
        });
        let questions = self
            .questions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        questions.send(question).map_err(|_| Error::Analysis)?;
        answered.recv().unwrap_or(Err(Error::Analysis))
    }
}

fn answer_all(store: &Weak<Store>, asked: &Receiver<Question>) {
    let mut next = asked.recv().ok();
    while let Some(question) = next.take() {
        let Some(store) = store.upgrade() else { return };
        let name = store.name().to_owned();
        let snapshot =
            catch_unwind(AssertUnwindSafe(|| store.full())).unwrap_or(Err(Error::Analysis));
        // While nobody is asking, the trace may go.
        drop(store);
        let left = match snapshot {
            Ok(snapshot) => answer(&name, &snapshot, question, asked),
            Err(error) => {
                question(Err(error));
                None
            }
        };
        next = left.or_else(|| asked.recv().ok());
    }
}

/// Answers as long as the trace cannot change. Gives the question that is left, if there is one.
fn answer(
    name: &str,
    snapshot: &Snapshot,
    first: Question,
    asked: &Receiver<Question>,
) -> Option<Question> {
    let analysed = catch_unwind(AssertUnwindSafe(|| Timeline::of(&snapshot.trace)));
    let Ok(timeline) = analysed else {
        first(Err(Error::Analysis));
        return None;
    };
    let analysed = Analysed::of(name, snapshot, &timeline);
    let mut question = first;
    loop {
        // A question that panics loses its answer, and its asker is told.
        let _ = catch_unwind(AssertUnwindSafe(|| question(Ok(&analysed))));
        // A live trace grows only while nobody holds it.
        question = match snapshot.live {
            true => asked.try_recv().ok()?,
            false => asked.recv().ok()?,
        };
    }
}
