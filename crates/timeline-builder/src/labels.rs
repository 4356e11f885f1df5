//! Labels on host threads: takes their starts and ends, nests them, writes their rows, and says in which label a
//! thread was at a time. A call may be asked about after its thread has gone on, so that each thread remembers its
//! labels of the past. An instant is a label that marks a moment; its detail is a category and a value.

use crate::output::LabelRows;
use crate::rows;
use gapscope_trace::build::{Labels, TextId};
use gapscope_trace::ids::{LabelId, ThreadId};
use gapscope_trace::tables::{Marker, MarkerScope};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Changes that a thread remembers: a second of operators that take 2 us each.
const MAX_CHANGES: usize = 1 << 19;
/// The longest path of a label. A label that would be deeper stands beside its parent, since a program that never
/// ends its labels must not make every path endless.
const MAX_DEPTH: u32 = 256;
/// The most open labels that are looked at for one that others nest in.
const MAX_LOOKS: usize = 1 << 12;

/// The domain of a label. Labels nest in those of their own domain, and in modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LabelDomain {
    /// A domain of the program, as the producer numbers it. 0 is the one without a name.
    Program(u32),
    /// Modules of a model, which gapscope labels: they nest in labels of the program, and those nest in them.
    Module,
    /// Operators of a framework, which gapscope labels: they are innermost.
    Operator,
}

/// A category of labels, as the producer numbers it. 0 is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CategoryId(pub u32);

/// A range that a process sets, which may end on another thread, as the producer numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessRangeId(pub u64);

/// Tells one open label from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LabelKey(u64);

/// The label that an end is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelScope {
    /// The innermost label of this domain on the thread.
    Thread(LabelDomain),
    /// The label of the thread with this key, whether or not it is innermost.
    Key(LabelKey),
    /// This range of the process.
    Process(ProcessRangeId),
}

/// The start of a label.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LabelStart {
    /// The thread that starts the label; `None` where the producer does not know the thread.
    pub thread: Option<ThreadId>,
    /// Its domain.
    pub domain: LabelDomain,
    /// Its text.
    pub text: TextId,
    /// When it starts.
    pub at_ns: i64,
    /// Its category.
    pub category: CategoryId,
    /// The value that tells the label from others of the same text.
    pub payload: Option<Arc<str>>,
    /// True if the work that the thread launches inside the label has it.
    pub labels_work: bool,
    /// True if the label gets a row. Others only label work.
    pub has_row: bool,
}

/// The error that the labels of a time are not remembered any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgotten;

/// The labels of one process's threads.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ThreadLabels {
    /// The labels of each thread.
    threads: FxHashMap<Option<ThreadId>, OneThread>,
    /// The open ranges of the process.
    ranges: FxHashMap<ProcessRangeId, OpenLabel>,
    /// The names of domains.
    domains: FxHashMap<LabelDomain, Arc<str>>,
    /// The names of categories.
    categories: FxHashMap<CategoryId, Arc<str>>,
    /// The key of the label that was started last.
    next_key: u64,
}

/// The labels of one thread.
#[derive(Debug, Default, Serialize, Deserialize)]
struct OneThread {
    /// Open labels of all domains, in the order in which they started.
    open: BTreeMap<LabelKey, OpenLabel>,
    /// The innermost label that work has, from each moment on.
    past: VecDeque<LabelChange>,
    /// True if changes before `past` were dropped.
    forgotten: bool,
    /// An instant that may still get a detail.
    instant: Option<OpenLabel>,
    last: LastLabel,
}

/// The label that a thread wrote last.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum LastLabel {
    /// None, or it has ended.
    #[default]
    None,
    Open(LabelKey),
    Range(ProcessRangeId),
    Instant,
}

/// The innermost label of a thread, from a moment on.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct LabelChange {
    since_ns: i64,
    label: Option<LabelId>,
}

/// A label in which others may nest, and the length of its path.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Nesting {
    label: LabelId,
    /// The number of labels on the path, this one included.
    depth: u32,
}

/// A label that has started and not ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct OpenLabel {
    label: LabelId,
    /// The label in which those nest that start inside this one.
    inside: Nesting,
    start: LabelStart,
}

impl Nesting {
    /// Returns the label in which those nest that start inside the label `text` in `around`.
    fn new(around: Option<Nesting>, text: TextId, labels: &mut Labels) -> Nesting {
        match around {
            Some(around) if around.depth >= MAX_DEPTH => around,
            around => Nesting {
                label: labels.label(around.map(|around| around.label), text),
                depth: around.map_or(0, |around| around.depth) + 1,
            },
        }
    }
}

impl OpenLabel {
    /// Makes the label of a start, inside another one.
    fn new(around: Option<Nesting>, start: LabelStart, labels: &mut Labels) -> OpenLabel {
        OpenLabel {
            label: labels.label(around.map(|around| around.label), start.text),
            inside: Nesting::new(around, start.text, labels),
            start,
        }
    }
}

impl ThreadLabels {
    /// Names a domain.
    pub fn name_domain(&mut self, domain: LabelDomain, name: Arc<str>) {
        self.domains.insert(domain, name);
    }

    /// Names a category.
    pub fn name_category(&mut self, category: CategoryId, name: Arc<str>) {
        self.categories.insert(category, name);
    }

    /// Returns the innermost label that work has on a thread at a time.
    ///
    /// # Errors
    /// The time lies before what is remembered.
    pub fn at(&self, thread: Option<ThreadId>, at_ns: i64) -> Result<Option<LabelId>, Forgotten> {
        let Some(labels) = self.threads.get(&thread) else {
            return Ok(None);
        };
        let past = &labels.past;
        let changes = match past.back() {
            // Mostly the call is of the last moments.
            Some(last) if last.since_ns <= at_ns => past.len(),
            _ => past.partition_point(|change| change.since_ns <= at_ns),
        };
        match changes.checked_sub(1).and_then(|last| past.get(last)) {
            Some(change) => Ok(change.label),
            None if labels.forgotten => Err(Forgotten),
            None => Ok(None),
        }
    }

    /// Starts a label on a thread, and returns the key by which it can be ended.
    pub fn begin(&mut self, start: LabelStart, out: &mut LabelRows<'_>) -> LabelKey {
        self.next_key += 1;
        let key = LabelKey(self.next_key);
        let at_ns = start.at_ns;
        let thread = self.thread_to_change(start.thread, out);
        let parent = thread.parent(start.domain, out.labels);
        let open = OpenLabel::new(parent, start, out.labels);
        thread.open.insert(key, open);
        thread.last = LastLabel::Open(key);
        thread.remember(at_ns, out.labels);
        key
    }

    /// Starts a range of the process.
    pub fn begin_process_range(
        &mut self,
        range: ProcessRangeId,
        start: LabelStart,
        out: &mut LabelRows<'_>,
    ) {
        self.thread_to_change(start.thread, out).last = LastLabel::Range(range);
        self.ranges
            .insert(range, OpenLabel::new(None, start, out.labels));
    }

    /// Writes a label that marks a moment. A detail of it may follow.
    pub fn instant(&mut self, start: LabelStart, out: &mut LabelRows<'_>) {
        let thread = self.thread_to_change(start.thread, out);
        let parent = thread.parent(start.domain, out.labels);
        thread.instant = Some(OpenLabel::new(parent, start, out.labels));
        thread.last = LastLabel::Instant;
    }

    /// Ends the label of a scope, and writes its row. `thread` is the one that ends it; an end without a start does
    /// nothing.
    pub fn end(
        &mut self,
        thread: Option<ThreadId>,
        scope: LabelScope,
        at_ns: i64,
        out: &mut LabelRows<'_>,
    ) {
        let labels = self.thread_to_change(thread, out);
        let ended = match scope {
            LabelScope::Process(range) => self.ranges.remove(&range),
            scope => {
                labels.last = LastLabel::None;
                let ended = labels.key(scope).and_then(|key| labels.open.remove(&key));
                if ended.is_some() {
                    labels.remember(at_ns, out.labels);
                }
                ended
            }
        };
        if let Some(ended) = ended {
            let scope = match scope {
                LabelScope::Process(_) => MarkerScope::Process,
                _ => MarkerScope::Thread,
            };
            self.write(&ended, scope, Some(at_ns), out);
        }
    }

    /// Adds a category and a value to the label that a thread wrote last.
    pub fn detail(
        &mut self,
        thread: Option<ThreadId>,
        category: CategoryId,
        payload: Option<Arc<str>>,
    ) {
        if let Some(open) = self.last_of(thread) {
            open.start.category = category;
            open.start.payload = payload;
        }
    }

    /// Adds a part of the value of the label that a thread wrote last, or that it ends next in the scope `ending`.
    pub fn add_payload(
        &mut self,
        thread: Option<ThreadId>,
        ending: Option<LabelScope>,
        part: &str,
    ) {
        let open = match ending {
            None => self.last_of(thread),
            Some(LabelScope::Process(range)) => self.ranges.get_mut(&range),
            Some(scope) => (self.threads.get_mut(&thread)).and_then(|labels| {
                let key = labels.key(scope)?;
                labels.open.get_mut(&key)
            }),
        };
        if let Some(OpenLabel { start, .. }) = open {
            start.payload = Some(match &start.payload {
                None => Arc::from(part),
                Some(before) => Arc::from(format!("{before}, {part}")),
            });
        }
    }

    /// Writes what is still open: nothing more comes. Returns how many labels never ended.
    pub fn finish(&mut self, out: &mut LabelRows<'_>) -> u64 {
        let mut unended = 0;
        let mut threads: Vec<_> = std::mem::take(&mut self.threads).into_iter().collect();
        threads.sort_unstable_by_key(|(thread, _)| *thread);
        for (_, labels) in &threads {
            unended += labels.open.len() as u64;
            for open in labels.open.values() {
                self.write(open, MarkerScope::Thread, None, out);
            }
            if let Some(instant) = &labels.instant {
                let at_ns = Some(instant.start.at_ns);
                self.write(instant, MarkerScope::Thread, at_ns, out);
            }
        }
        let mut ranges: Vec<_> = std::mem::take(&mut self.ranges).into_iter().collect();
        ranges.sort_unstable_by_key(|(range, _)| *range);
        unended += ranges.len() as u64;
        for (_, open) in &ranges {
            self.write(open, MarkerScope::Process, None, out);
        }
        unended
    }

    /// Returns the labels of a thread, which is about to write another one: writes the last instant, to which nothing
    /// is added any more.
    fn thread_to_change(
        &mut self,
        thread: Option<ThreadId>,
        out: &mut LabelRows<'_>,
    ) -> &mut OneThread {
        let instant = self.threads.get_mut(&thread).and_then(|l| l.instant.take());
        if let Some(instant) = instant {
            let at_ns = Some(instant.start.at_ns);
            self.write(&instant, MarkerScope::Thread, at_ns, out);
        }
        self.threads.entry(thread).or_default()
    }

    /// Returns the label that a thread wrote last, if that is open, or an instant.
    fn last_of(&mut self, thread: Option<ThreadId>) -> Option<&mut OpenLabel> {
        let labels = self.threads.get_mut(&thread)?;
        match labels.last {
            LastLabel::None => None,
            LastLabel::Open(key) => labels.open.get_mut(&key),
            LastLabel::Range(range) => self.ranges.get_mut(&range),
            LastLabel::Instant => labels.instant.as_mut(),
        }
    }

    /// Writes the row of a label; without `end_ns` of one that was never ended.
    fn write(
        &self,
        OpenLabel { label, start, .. }: &OpenLabel,
        scope: MarkerScope,
        end_ns: Option<i64>,
        out: &mut LabelRows<'_>,
    ) {
        if !start.has_row {
            return;
        }
        let duration_ns = end_ns.map(|end_ns| end_ns.saturating_sub(start.at_ns));
        let row = rows::marker_row(out.process, scope, *label, Some(start.at_ns), duration_ns);
        rows::marker(
            out.tables,
            Marker {
                thread: start.thread,
                domain: self.domains.get(&start.domain).cloned(),
                category: self.categories.get(&start.category).cloned(),
                payload: start.payload.clone(),
                ..row
            },
        );
    }
}

impl OneThread {
    /// Returns the key of the open label that a scope of the thread stands for.
    fn key(&self, scope: LabelScope) -> Option<LabelKey> {
        match scope {
            LabelScope::Key(key) => Some(key),
            LabelScope::Thread(domain) => {
                let mut open = self.open.iter().rev();
                let innermost = open.find(|(_, open)| open.start.domain == domain);
                innermost.map(|(key, _)| *key)
            }
            LabelScope::Process(_) => None,
        }
    }

    /// Returns the open labels from the innermost one on, at most [`MAX_LOOKS`].
    fn innermost_first(&self) -> impl Iterator<Item = &OpenLabel> {
        self.open.values().rev().take(MAX_LOOKS)
    }

    /// Returns the open label in which one of a domain starts.
    fn parent(&self, domain: LabelDomain, labels: &mut Labels) -> Option<Nesting> {
        use LabelDomain::{Module, Operator};
        let nests_in = |open: &&OpenLabel| match domain {
            Module | Operator => open.start.domain != Operator,
            _ => open.start.domain == domain || open.start.domain == Module,
        };
        let around = self.innermost_first().find(nests_in);
        let around = around.map(|open| open.inside);
        match domain {
            Operator => self.inside_operators(around, labels),
            _ => around,
        }
    }

    /// Nests all open operators inside `around`: a module of a backward pass starts inside one operator of the engine
    /// and ends inside another.
    fn inside_operators(&self, around: Option<Nesting>, labels: &mut Labels) -> Option<Nesting> {
        let is_operator = |open: &&OpenLabel| open.start.domain == LabelDomain::Operator;
        let operators: Vec<_> = self.innermost_first().filter(is_operator).collect();
        operators.iter().rev().fold(around, |around, operator| {
            Some(Nesting::new(around, operator.start.text, labels))
        })
    }

    /// Remembers the innermost label that work has from now on.
    fn remember(&mut self, at_ns: i64, labels: &mut Labels) {
        let is_of_work = |open: &&OpenLabel| {
            open.start.labels_work && open.start.domain != LabelDomain::Operator
        };
        let around = self.innermost_first().find(is_of_work);
        let around = around.map(|open| Nesting {
            label: open.label,
            ..open.inside
        });
        let innermost = self.inside_operators(around, labels);
        if self.past.len() == MAX_CHANGES {
            self.past.pop_front();
            self.forgotten = true;
        }
        // The clock of one thread does not go back, and a damaged record must not make it seem so.
        let latest = self.past.back().map(|last| last.since_ns);
        self.past.push_back(LabelChange {
            since_ns: latest.map_or(at_ns, |latest| at_ns.max(latest)),
            label: innermost.map(|innermost| innermost.label),
        });
    }
}
