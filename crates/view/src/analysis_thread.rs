//! The thread that analyses a trace: it keeps the trace's timeline and answers one question after the other.

use crate::Error;
use crate::answers::findings;
use crate::server::step_back;
use crate::snapshot::Snapshot;
use crate::store::{InPieces, Store};
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

/// The longest gaps that findings list.
const MAX_LISTED_GAPS: usize = 1000;

/// A trace with everything that its analyses have computed so far.
pub struct AnalysedTrace<'a> {
    pub name: &'a str,
    /// The part of the trace that is drawn.
    pub snapshot: Arc<Snapshot>,
    /// The timeline that the analyses read.
    pub timeline: &'a Timeline<'a>,
    /// Sentences about reading the timeline's tables.
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

impl<'a> AnalysedTrace<'a> {
    pub fn new(
        name: &'a str,
        snapshot: Arc<Snapshot>,
        timeline: &'a Timeline<'a>,
        remarks: &'a [String],
    ) -> AnalysedTrace<'a> {
        AnalysedTrace {
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
            .get_or_init(|| BindingSets::of(self.timeline.trace))
    }

    pub fn first_uses(&self) -> &FirstUses {
        self.first_uses.get_or_init(|| {
            let kernels = kernels(self.timeline, self.bindings(), None, None);
            FirstUses::of(self.timeline, &kernels, &warm_up(self.timeline, &kernels))
        })
    }

    /// Returns all findings.
    pub fn found(&self) -> &Findings {
        self.found.get_or_init(|| {
            let options = Options {
                longest: MAX_LISTED_GAPS,
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
        self.gaps.get_or_init(|| Gaps::new(self.timeline))
    }
}

/// The parts of all gaps, each of one cause.
#[derive(Debug, Default)]
pub struct Gaps {
    /// The index at which the parts of each GPU start, and the end of the last.
    pub bounds: Vec<usize>,
    pub start_ns: Vec<i64>,
    pub duration_ns: Vec<i64>,
    pub causes: Vec<Cause>,
    /// The index of the first part of the same gap.
    pub firsts: Vec<u32>,
}

impl Gaps {
    fn new(timeline: &Timeline) -> Gaps {
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

/// Takes the analysed trace, or the error that prevents analysis.
type Answer = Box<dyn for<'a, 'b> FnOnce(Result<&'b AnalysedTrace<'a>, Error>) + Send>;

/// A question to the thread.
struct Question {
    /// The question needs columns that the findings do not rest on, such as those of dependencies.
    of_all: bool,
    answer: Answer,
}

/// A handle on the thread, which takes questions.
#[derive(Debug)]
pub struct AnalysisThread {
    questions: Mutex<Sender<Question>>,
}

impl AnalysisThread {
    /// Starts the thread, which ends with the store.
    pub fn start(store: Weak<Store>) -> AnalysisThread {
        let (questions, asked) = channel();
        std::thread::spawn(move || {
            // Drawing has priority.
            step_back();
            answer_all(&store, &asked);
        });
        AnalysisThread {
            questions: Mutex::new(questions),
        }
    }

    /// Starts to compute the findings before they are asked for.
    pub fn begin(&self) {
        self.send(false, |analysed| {
            if let Ok(analysed) = analysed {
                findings(analysed);
            }
        });
    }

    /// Makes the thread release the snapshot that it holds.
    pub fn look_again(&self) {
        self.send(false, |_| ());
    }

    /// Asks a question and waits for the answer.
    ///
    /// # Errors
    /// The trace cannot be read, or the analysis failed.
    pub fn ask<T: Send + 'static>(
        &self,
        question: impl for<'a, 'b> FnOnce(&'b AnalysedTrace<'a>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.ask_of(false, question)
    }

    /// Asks a question about a trace with all its columns.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_of_all<T: Send + 'static>(
        &self,
        question: impl for<'a, 'b> FnOnce(&'b AnalysedTrace<'a>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.ask_of(true, question)
    }

    fn ask_of<T: Send + 'static>(
        &self,
        of_all: bool,
        question: impl for<'a, 'b> FnOnce(&'b AnalysedTrace<'a>) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = channel();
        self.send(of_all, move |analysed| {
            // The asker may be gone.
            let _ = answer.send(analysed.map(question));
        });
        answered.recv().unwrap_or(Err(Error::Analysis))
    }

    fn send(
        &self,
        of_all: bool,
        answer: impl for<'a, 'b> FnOnce(Result<&'b AnalysedTrace<'a>, Error>) + Send + 'static,
    ) {
        let answer = Box::new(answer);
        let questions = self.questions.lock();
        let questions = questions.unwrap_or_else(PoisonError::into_inner);
        // If the thread has ended, the question is dropped and its asker gets an error.
        let _ = questions.send(Question { of_all, answer });
    }
}

/// Answers questions. A complete trace is first analysed in pieces, so that its dispatches are never all in memory; from the first question on
/// that needs all columns, the whole trace is read.
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

/// Answers questions from the whole trace; returns a question that is left for a newer snapshot.
fn answer_by_all(
    store: &Weak<Store>,
    question: Question,
    asked: &Receiver<Question>,
) -> Option<Question> {
    let strong = store.upgrade()?;
    let name = strong.name().to_owned();
    let snapshot = catch_unwind(AssertUnwindSafe(|| strong.full())).unwrap_or(Err(Error::Analysis));
    // The trace may be closed while nobody asks.
    drop(strong);
    let snapshot = match snapshot {
        Ok(snapshot) => snapshot,
        Err(error) => {
            (question.answer)(Err(error));
            return None;
        }
    };
    let Ok(timeline) = catch_unwind(AssertUnwindSafe(|| Timeline::of(&snapshot.trace))) else {
        (question.answer)(Err(Error::Analysis));
        return None;
    };
    let analysed = AnalysedTrace::new(&name, snapshot.clone(), &timeline, &snapshot.remarks);
    let mut question = question;
    loop {
        answer(&analysed, question);
        // A live trace can only grow while nobody holds its snapshot.
        question = match snapshot.live {
            true => asked.try_recv().ok()?,
            false => asked.recv().ok()?,
        };
    }
}

/// Answers questions from a trace read in pieces; returns the question that is left, or the given one where the trace cannot be read in pieces.
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
        Timeline::of_pieces(&trace, pieces.rows(), |take| pieces.each(&trace, take))
    }));
    // Where this fails, reading the whole trace tells why.
    let (Ok(Some((timeline, said))), Ok(snapshot)) = (made, strong.snapshot()) else {
        return Err(question);
    };
    drop(strong);
    let remarks: Vec<String> = remarks
        .into_iter()
        .chain(said.iter().map(ToString::to_string))
        .collect();
    let mut analysed = AnalysedTrace::new(&name, snapshot, &timeline, &remarks);
    let mut question = question;
    while !question.of_all {
        answer(&analysed, question);
        question = match asked.recv() {
            Ok(question) => question,
            Err(_) => return Ok(None),
        };
        // The snapshot may have more columns by now.
        if let Some(Ok(snapshot)) = store.upgrade().map(|store| store.snapshot()) {
            analysed.snapshot = snapshot;
        }
    }
    Ok(Some(question))
}

/// Answers a question; where that panics, the asker gets an error.
fn answer(analysed: &AnalysedTrace, question: Question) {
    let _ = catch_unwind(AssertUnwindSafe(|| (question.answer)(Ok(analysed))));
}
