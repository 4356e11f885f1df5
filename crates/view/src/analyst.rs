//! Who analyses a trace: a thread that keeps its timeline, and answers one question after the other.

use crate::Error;
use crate::answers::findings;
use crate::server::step_back;
use crate::snapshot::Snapshot;
use crate::store::{InPieces, Store};
use gapscope_analysis::dataflow::Dataflow;
use gapscope_analysis::gaps::{Cause, GapFinder, each_gap};
use gapscope_analysis::kernels::kernels;
use gapscope_analysis::warm_up::{FirstUses, warm_up};
use gapscope_analysis::{Findings, Options};
use gapscope_timeline::Timeline;
use gapscope_timeline::bound_bytes::BindingSets;
use gapscope_timeline::counters::{Counter, counters};
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Gaps that are listed.
const LONGEST: usize = 1000;

/// A trace as the analyses see it.
pub struct Analysed<'a> {
    pub name: &'a str,
    /// What is drawn of it.
    pub snapshot: Arc<Snapshot>,
    /// What the analyses read of it.
    pub timeline: &'a Timeline<'a>,
    /// What was said when that was read.
    pub remarks: &'a [String],
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
    pub fn of(
        name: &'a str,
        snapshot: Arc<Snapshot>,
        timeline: &'a Timeline<'a>,
        remarks: &'a [String],
    ) -> Analysed<'a> {
        Analysed {
            name,
            snapshot,
            timeline,
            remarks,
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
            .get_or_init(|| BindingSets::new(self.timeline.trace))
    }

    pub fn first_uses(&self) -> &FirstUses {
        self.first_uses.get_or_init(|| {
            let kernels = kernels(self.timeline, self.bindings(), None, None);
            FirstUses::new(self.timeline, &kernels, &warm_up(self.timeline, &kernels))
        })
    }

    /// All findings, with so many of the longest gaps as are listed.
    pub fn found(&self) -> &Findings {
        self.found.get_or_init(|| {
            let options = Options {
                longest: LONGEST,
                ..Options::default()
            };
            Findings::from_timeline(self.timeline, &options)
        })
    }

    pub fn flow(&self) -> &Dataflow<'a> {
        self.flow.get_or_init(|| Dataflow::new(self.timeline))
    }

    pub fn finder(&self) -> &GapFinder<'a> {
        self.finder.get_or_init(|| GapFinder::new(self.timeline))
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

/// Takes the trace, or why there is none.
type Answer = Box<dyn for<'a, 'b> FnOnce(Result<&'b Analysed<'a>, Error>) + Send>;

/// What is asked of the thread.
struct Question {
    /// It takes columns that the findings do not rest on, which rows depend on which among them.
    of_all: bool,
    answer: Answer,
}

/// Asks the thread.
#[derive(Debug)]
pub struct Analyst {
    questions: Mutex<Sender<Question>>,
}

impl Analyst {
    /// Starts the thread, which ends with the store.
    pub fn start(store: Weak<Store>) -> Analyst {
        let (questions, asked) = channel();
        std::thread::spawn(move || {
            // What is drawn goes first.
            step_back();
            answer_all(&store, &asked);
        });
        Analyst {
            questions: Mutex::new(questions),
        }
    }

    /// Has the findings made before they are asked for.
    pub fn begin(&self) {
        self.send(false, |analysed| {
            if let Ok(analysed) = analysed {
                findings(analysed);
            }
        });
    }

    /// Has the thread let go of what was drawn before.
    pub fn look_again(&self) {
        self.send(false, |_| ());
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The trace cannot be read, or the analysis failed.
    pub fn ask<T: Send + 'static>(
        &self,
        question: impl for<'a, 'b> FnOnce(&'b Analysed<'a>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.ask_of(false, question)
    }

    /// The same, of a trace with all its columns.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_of_all<T: Send + 'static>(
        &self,
        question: impl for<'a, 'b> FnOnce(&'b Analysed<'a>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.ask_of(true, question)
    }

    fn ask_of<T: Send + 'static>(
        &self,
        of_all: bool,
        question: impl for<'a, 'b> FnOnce(&'b Analysed<'a>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = channel();
        self.send(of_all, move |analysed| {
            // Who asked may be gone.
            let _ = answer.send(analysed.map(question));
        });
        answered.recv().unwrap_or(Err(Error::Analysis))
    }

    fn send(
        &self,
        of_all: bool,
        answer: impl for<'a, 'b> FnOnce(Result<&'b Analysed<'a>, Error>) + Send + 'static,
    ) {
        let answer = Box::new(answer);
        let questions = self.questions.lock();
        let questions = questions.unwrap_or_else(PoisonError::into_inner);
        // If its thread has ended, the question goes, and its asker is told.
        let _ = questions.send(Question { of_all, answer });
    }
}

/// Answers what is asked: of a complete trace first by what the findings rest on, whose dispatches are never all in memory,
/// and from the first question on that takes more by all of it.
fn answer_all(store: &Weak<Store>, asked: &Receiver<Question>) {
    let mut next = asked.recv().ok();
    let mut of_all = false;
    while let Some(question) = next.take() {
        of_all |= question.of_all;
        let left = match of_all {
            true => answer_by_all(store, question, asked),
            false => match answer_by_pieces(store, question, asked) {
                Ok(left) => left,
                Err(question) => {
                    of_all = true;
                    Some(question)
                }
            },
        };
        next = left.or_else(|| asked.recv().ok());
    }
}

/// Gives the question that is left, if there is one.
fn answer_by_all(
    store: &Weak<Store>,
    question: Question,
    asked: &Receiver<Question>,
) -> Option<Question> {
    let strong = store.upgrade()?;
    let name = strong.name().to_owned();
    let snapshot = catch_unwind(AssertUnwindSafe(|| strong.full())).unwrap_or(Err(Error::Analysis));
    // While nobody is asking, the trace may go.
    drop(strong);
    let snapshot = match snapshot {
        Ok(snapshot) => snapshot,
        Err(error) => {
            (question.answer)(Err(error));
            return None;
        }
    };
    let Ok(timeline) = catch_unwind(AssertUnwindSafe(|| Timeline::new(&snapshot.trace))) else {
        (question.answer)(Err(Error::Analysis));
        return None;
    };
    let analysed = Analysed::of(&name, snapshot.clone(), &timeline, &snapshot.remarks);
    let mut question = question;
    loop {
        answer(&analysed, question);
        // A live trace grows only while nobody holds it.
        question = match snapshot.live {
            true => asked.try_recv().ok()?,
            false => asked.recv().ok()?,
        };
    }
}

/// Gives the question that is left, as [`answer_by_all`] does, or back where the trace cannot be read so.
fn answer_by_pieces(
    store: &Weak<Store>,
    question: Question,
    asked: &Receiver<Question>,
) -> Result<Option<Question>, Question> {
    let Some(strong) = store.upgrade() else {
        return Ok(None);
    };
    let name = strong.name().to_owned();
    let read = catch_unwind(AssertUnwindSafe(|| strong.in_pieces()));
    let Ok(Some(InPieces {
        trace,
        pieces,
        remarks,
    })) = read
    else {
        return Err(question);
    };
    let made = catch_unwind(AssertUnwindSafe(|| {
        Timeline::from_pieces(&trace, None, pieces.rows(), |take| {
            pieces.each(&trace, take)
        })
    }));
    // Where it fails, all of the trace says why.
    let (Ok(Some((timeline, said))), Ok(snapshot)) = (made, strong.snapshot()) else {
        return Err(question);
    };
    drop(strong);
    let remarks: Vec<String> = remarks
        .into_iter()
        .chain(said.iter().map(ToString::to_string))
        .collect();
    let mut analysed = Analysed::of(&name, snapshot, &timeline, &remarks);
    let mut question = question;
    while !question.of_all {
        answer(&analysed, question);
        question = match asked.recv() {
            Ok(question) => question,
            Err(_) => return Ok(None),
        };
        // There may be more of it by now.
        if let Some(Ok(snapshot)) = store.upgrade().map(|store| store.snapshot()) {
            analysed.snapshot = snapshot;
        }
    }
    Ok(Some(question))
}

/// A question that panics loses its answer, and its asker is told.
fn answer(analysed: &Analysed, question: Question) {
    let _ = catch_unwind(AssertUnwindSafe(|| (question.answer)(Ok(analysed))));
}
