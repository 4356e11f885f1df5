//! Runs the thread that analyses a trace: functions of an [`AnalysedTrace`] (questions) go in, their results come
//! out. The thread keeps the analysed trace between questions. A snapshot is what was read of a trace at one time; a
//! live trace, which is still being recorded, gets newer ones.

use crate::Error;
use crate::analysed_trace::AnalysedTrace;
use crate::priority::step_back;
use crate::snapshot::Snapshot;
use gapscope_timeline::Timeline;
use gapscope_trace::{DispatchPieces, Trace};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The source from which the thread reads its trace.
pub trait TraceSource: Send + Sync {
    /// Returns the name of the trace.
    fn name(&self) -> &str;

    /// Returns the trace as far as drawing needs it.
    fn snapshot(&self) -> Result<Arc<Snapshot>, Error>;

    /// Returns the trace with all its columns.
    fn full(&self) -> Result<Arc<Snapshot>, Error>;

    /// Reads the columns that findings rest on; `None` where all columns are in memory already, or where the trace is
    /// being recorded or damaged.
    fn in_pieces(&self) -> Option<TraceInPieces>;
}

/// The columns of a complete trace that findings rest on. Times count from the start of the recording.
pub struct TraceInPieces {
    /// The trace without dispatches.
    pub trace: Trace,
    /// The dispatches in pieces.
    pub pieces: DispatchPieces,
    /// Sentences about reading the trace.
    pub remarks: Vec<String>,
}

/// A function that takes the analysed trace, or the error that prevents analysis, and sends the answer.
type Answer = Box<dyn for<'a, 'b> FnOnce(Result<&'b AnalysedTrace<'a>, Error>) + Send>;

/// A question to the thread.
struct Question {
    /// Whether the question needs columns that the findings do not rest on, such as those of dependencies.
    of_all: bool,
    answer: Answer,
}

/// A handle on the thread, which takes questions.
#[derive(Debug)]
pub struct AnalysisThread {
    /// The way to the thread, which ends when this is dropped.
    questions: Mutex<Sender<Question>>,
}

impl AnalysisThread {
    /// Starts the thread, which reads its trace from `store` and ends when the handle is dropped.
    pub fn start(store: Weak<dyn TraceSource>) -> AnalysisThread {
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

    /// Asks a question and does not wait: its answer stays in the [`AnalysedTrace`] for later questions. Nothing
    /// happens where the trace cannot be read.
    pub fn begin(&self, question: fn(&AnalysedTrace)) {
        self.send(false, move |analysed| {
            if let Ok(analysed) = analysed {
                question(analysed);
            }
        });
    }

    /// Makes the thread release the snapshot that it holds, so that a live trace can grow.
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

    /// Sends a question and waits for its answer; `of_all` as in [`Question`].
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

    /// Sends a question; `answer` is called on the thread.
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

/// Answers questions until the handle is dropped. A complete trace is first analysed in pieces, so that its
/// dispatches are never all in memory; from the first question on that needs all columns, the whole trace is read.
fn answer_all(store: &Weak<dyn TraceSource>, asked: &Receiver<Question>) {
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
    store: &Weak<dyn TraceSource>,
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
    let Ok(timeline) = catch_unwind(AssertUnwindSafe(|| Timeline::new(&snapshot.trace))) else {
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

/// Answers questions from a trace in pieces; returns one that needs all columns, or the given one where that fails.
fn answer_by_pieces(
    store: &Weak<dyn TraceSource>,
    question: Question,
    asked: &Receiver<Question>,
) -> Result<Option<Question>, Question> {
    let Some(strong) = store.upgrade() else {
        return Ok(None);
    };
    let name = strong.name().to_owned();
    let read = catch_unwind(AssertUnwindSafe(|| strong.in_pieces()));
    let Ok(Some(TraceInPieces {
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
