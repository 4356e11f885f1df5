//! Labels on host threads: takes their starts and ends, nests them, writes their rows, and says which label a thread was in at a time.
//!
//! A call may be asked about after its thread has gone on, so each thread remembers its labels of the past.

use crate::rows;
use gapscope_trace::build::{Labels, TextId};
use gapscope_trace::ids::{LabelId, ProcessId, ThreadId};
use gapscope_trace::tables::{Marker, MarkerScope, Tables};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Changes that a thread remembers: a second of operators that take 2 us each.
const MAX_CHANGES: usize = 1 << 19;
/// The longest path of a label. A label that would be deeper stands beside its parent: a program that never ends its labels must not make
/// every path endless.
const MAX_DEPTH: u32 = 256;
/// The most open labels that are looked at for one that others nest in.
const MAX_LOOKS: usize = 1 << 12;

/// The domain of a label. Labels nest in those of their own domain, and in modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LabelDomain {
    /// A domain of the program, as the producer numbers it. 0 is the one without a name.
    Program(u32),
    /// Modules of a model, which gapscope labels: they nest in all that the program has set, and what the program sets nests in them.
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

/// Which open label an end is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LabelScope {
    /// The innermost one of this domain on the thread.
    Thread(LabelDomain),
    /// This range of the process.
    Process(ProcessRangeId),
}

/// Which label of a thread ends.
enum EndedLabel {
    /// This one, wherever it stands.
    Key(LabelKey),
    /// The innermost one of a domain.
    Innermost(LabelDomain),
}

/// The start of a label.
#[derive(Debug, Clone)]
pub struct LabelStart {
    /// The thread that starts it; `None` where the producer does not know it.
    pub thread: Option<ThreadId>,
    /// Its domain.
    pub domain: LabelDomain,
    /// Its text.
    pub text: TextId,
    /// When it starts.
    pub at_ns: i64,
    /// Its category.
    pub category: CategoryId,
    /// What tells it from others of the same text.
    pub payload: Option<Arc<str>>,
    /// The work that the thread launches inside the label has it.
    pub labels_work: bool,
    /// It has a row. Others only label work.
    pub has_row: bool,
}

/// The time asked for is not remembered any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgotten;

/// The labels of one process's threads.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ThreadLabels {
    threads: FxHashMap<Option<ThreadId>, OneThread>,
    ranges: FxHashMap<ProcessRangeId, OpenLabel>,
    domains: FxHashMap<LabelDomain, Arc<str>>,
    categories: FxHashMap<CategoryId, Arc<str>>,
    next_key: u64,
}

/// The labels of one thread.
#[derive(Debug, Default, Serialize, Deserialize)]
struct OneThread {
    /// Open labels of all domains, in the order in which they started.
    open: BTreeMap<LabelKey, OpenLabel>,
    /// The innermost label from each moment on.
    past: VecDeque<LabelChange>,
    /// The innermost label before `past` is forgotten.
    forgotten: bool,
    /// An instant that may still get a detail.
    instant: Option<OpenLabel>,
    last: LastLabel,
}

/// The label that a thread wrote last.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum LastLabel {
    #[default]
    None,
    Open,
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
    depth: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct OpenLabel {
    key: LabelKey,
    label: LabelId,
    parent: Option<Nesting>,
    text: TextId,
    start_ns: i64,
    thread: Option<ThreadId>,
    domain: LabelDomain,
    category: CategoryId,
    payload: Option<Arc<str>>,
    labels_work: bool,
    has_row: bool,
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

    /// Returns the innermost label on a thread at a time.
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

    /// Starts a label on a thread.
    pub fn begin(
        &mut self,
        process: ProcessId,
        start: LabelStart,
        labels: &mut Labels,
        tables: &mut Tables,
    ) -> LabelKey {
        let at_ns = start.at_ns;
        let thread = self.thread_to_change(process, start.thread, tables);
        let parent = thread.parent(start.domain, labels);
        let open = self.open_label(start, parent, labels);
        let key = open.key;
        let thread = self.threads.entry(open.thread).or_default();
        thread.open.insert(key, open);
        thread.last = LastLabel::Open;
        thread.remember(at_ns, labels);
        key
    }

    /// Starts a range of the process.
    pub fn begin_process_range(
        &mut self,
        process: ProcessId,
        range: ProcessRangeId,
        start: LabelStart,
        labels: &mut Labels,
        tables: &mut Tables,
    ) {
        let thread = self.thread_to_change(process, start.thread, tables);
        thread.last = LastLabel::Range(range);
        let open = self.open_label(start, None, labels);
        self.ranges.insert(range, open);
    }

    /// Writes a label that marks a moment. A detail of it may follow.
    pub fn instant(
        &mut self,
        process: ProcessId,
        start: LabelStart,
        labels: &mut Labels,
        tables: &mut Tables,
    ) {
        let thread = self.thread_to_change(process, start.thread, tables);
        let parent = thread.parent(start.domain, labels);
        let open = self.open_label(start, parent, labels);
        let thread = self.threads.entry(open.thread).or_default();
        thread.instant = Some(open);
        thread.last = LastLabel::Instant;
    }

    /// Ends the label of a scope that is innermost on a thread.
    pub fn end(
        &mut self,
        process: ProcessId,
        thread: Option<ThreadId>,
        scope: LabelScope,
        at_ns: i64,
        labels: &mut Labels,
        tables: &mut Tables,
    ) {
        match scope {
            LabelScope::Thread(domain) => {
                let end = EndedLabel::Innermost(domain);
                self.end_label(process, thread, end, at_ns, labels, tables);
            }
            LabelScope::Process(range) => {
                self.thread_to_change(process, thread, tables);
                if let Some(open) = self.ranges.remove(&range) {
                    self.write(process, &open, MarkerScope::Process, Some(at_ns), tables);
                }
            }
        }
    }

    /// Ends one label, wherever it is among those that are open on its thread.
    pub fn end_key(
        &mut self,
        process: ProcessId,
        thread: Option<ThreadId>,
        key: LabelKey,
        at_ns: i64,
        labels: &mut Labels,
        tables: &mut Tables,
    ) {
        self.end_label(process, thread, EndedLabel::Key(key), at_ns, labels, tables);
    }

    fn end_label(
        &mut self,
        process: ProcessId,
        thread: Option<ThreadId>,
        end: EndedLabel,
        at_ns: i64,
        labels: &mut Labels,
        tables: &mut Tables,
    ) {
        let of_thread = self.thread_to_change(process, thread, tables);
        of_thread.last = LastLabel::None;
        let key = match end {
            EndedLabel::Key(key) => Some(key),
            EndedLabel::Innermost(domain) => {
                let mut open = of_thread.open.values().rev();
                open.find(|open| open.domain == domain).map(|open| open.key)
            }
        };
        if let Some(ended) = key.and_then(|key| of_thread.open.remove(&key)) {
            of_thread.remember(at_ns, labels);
            self.write(process, &ended, MarkerScope::Thread, Some(at_ns), tables);
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
            open.category = category;
            open.payload = payload;
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
            Some(LabelScope::Thread(domain)) => {
                let labels = self.threads.get_mut(&thread);
                labels.and_then(|l| l.open.values_mut().rfind(|open| open.domain == domain))
            }
        };
        if let Some(open) = open {
            open.payload = Some(match &open.payload {
                None => Arc::from(part),
                Some(before) => Arc::from(format!("{before}, {part}")),
            });
        }
    }

    /// Writes what is still open: nothing more comes. Returns how many labels never ended.
    pub fn finish(&mut self, process: ProcessId, tables: &mut Tables) -> u64 {
        let mut unended = 0;
        let mut threads: Vec<_> = std::mem::take(&mut self.threads).into_iter().collect();
        threads.sort_unstable_by_key(|(thread, _)| *thread);
        for (_, labels) in &threads {
            unended += labels.open.len() as u64;
            for open in labels.open.values() {
                self.write(process, open, MarkerScope::Thread, None, tables);
            }
            if let Some(instant) = &labels.instant {
                self.write_instant(process, instant, tables);
            }
        }
        let mut ranges: Vec<_> = std::mem::take(&mut self.ranges).into_iter().collect();
        ranges.sort_unstable_by_key(|(range, _)| *range);
        unended += ranges.len() as u64;
        for (_, open) in &ranges {
            self.write(process, open, MarkerScope::Process, None, tables);
        }
        unended
    }

    /// Returns the labels of a thread, which is about to write another one: nothing is added to its last instant any more.
    fn thread_to_change(
        &mut self,
        process: ProcessId,
        thread: Option<ThreadId>,
        tables: &mut Tables,
    ) -> &mut OneThread {
        let instant = self.threads.get_mut(&thread).and_then(|l| l.instant.take());
        if let Some(instant) = instant {
            self.write_instant(process, &instant, tables);
        }
        self.threads.entry(thread).or_default()
    }

    fn open_label(
        &mut self,
        start: LabelStart,
        parent: Option<Nesting>,
        labels: &mut Labels,
    ) -> OpenLabel {
        self.next_key += 1;
        OpenLabel {
            key: LabelKey(self.next_key),
            label: labels.label(parent.map(|parent| parent.label), start.text),
            parent,
            text: start.text,
            start_ns: start.at_ns,
            thread: start.thread,
            domain: start.domain,
            category: start.category,
            payload: start.payload,
            labels_work: start.labels_work,
            has_row: start.has_row,
        }
    }

    fn last_of(&mut self, thread: Option<ThreadId>) -> Option<&mut OpenLabel> {
        let labels = self.threads.get_mut(&thread)?;
        match labels.last {
            LastLabel::None => None,
            LastLabel::Open => labels.open.values_mut().next_back(),
            LastLabel::Range(range) => self.ranges.get_mut(&range),
            LastLabel::Instant => labels.instant.as_mut(),
        }
    }

    fn write_instant(&self, process: ProcessId, instant: &OpenLabel, tables: &mut Tables) {
        let end_ns = Some(instant.start_ns);
        self.write(process, instant, MarkerScope::Thread, end_ns, tables);
    }

    /// Writes the row of a label; without `end_ns` of one that was never ended.
    fn write(
        &self,
        process: ProcessId,
        open: &OpenLabel,
        scope: MarkerScope,
        end_ns: Option<i64>,
        tables: &mut Tables,
    ) {
        if !open.has_row {
            return;
        }
        let duration_ns = end_ns.map(|end_ns| end_ns.saturating_sub(open.start_ns));
        let row = rows::marker_row(process, scope, open.label, Some(open.start_ns), duration_ns);
        rows::marker(
            tables,
            Marker {
                thread: open.thread,
                domain: self.domains.get(&open.domain).cloned(),
                category: self.categories.get(&open.category).cloned(),
                payload: open.payload.clone(),
                ..row
            },
        );
    }
}

impl OpenLabel {
    /// Returns the label in which those nest that start inside this one.
    fn nesting(&self) -> Option<Nesting> {
        match self.parent {
            Some(parent) if parent.depth >= MAX_DEPTH => Some(parent),
            parent => Some(Nesting {
                label: self.label,
                depth: parent.map_or(0, |parent| parent.depth) + 1,
            }),
        }
    }
}

impl OneThread {
    /// Returns the open labels from the innermost one on.
    fn innermost_first(&self) -> impl Iterator<Item = &OpenLabel> {
        self.open.values().rev().take(MAX_LOOKS)
    }

    /// Returns the open label in which one of a domain starts.
    fn parent(&self, domain: LabelDomain, labels: &mut Labels) -> Option<Nesting> {
        use LabelDomain::{Module, Operator};
        if domain == Operator {
            return self.innermost(false, labels);
        }
        let mut open = self.innermost_first();
        let around = open.find(|open| match domain {
            Module => open.domain != Operator,
            _ => open.domain == domain || open.domain == Module,
        });
        around.and_then(OpenLabel::nesting)
    }

    /// Returns the innermost label, and inside it all operators that run: a module of a backward pass starts inside one operator of the
    /// engine and ends inside another. With `for_work` only among labels that work has.
    fn innermost(&self, for_work: bool, labels: &mut Labels) -> Option<Nesting> {
        let is_operator = |open: &&OpenLabel| open.domain == LabelDomain::Operator;
        let counts = |open: &&OpenLabel| !is_operator(open) && (open.labels_work || !for_work);
        let base = self.innermost_first().find(counts).and_then(|open| {
            let label = open.label;
            open.nesting().map(|nesting| match for_work {
                true => Nesting { label, ..nesting },
                false => nesting,
            })
        });
        let operators = self.innermost_first().filter(is_operator);
        let operators: Vec<TextId> = operators.map(|open| open.text).collect();
        operators
            .iter()
            .rev()
            .fold(base, |around, operator| match around {
                Some(around) if around.depth >= MAX_DEPTH => Some(around),
                around => Some(Nesting {
                    label: labels.label(around.map(|around| around.label), *operator),
                    depth: around.map_or(0, |around| around.depth) + 1,
                }),
            })
    }

    /// Remembers the innermost label that work has from now on.
    fn remember(&mut self, at_ns: i64, labels: &mut Labels) {
        let label = self
            .innermost(true, labels)
            .map(|innermost| innermost.label);
        if self.past.len() == MAX_CHANGES {
            self.past.pop_front();
            self.forgotten = true;
        }
        // The clock of one thread does not go back, and a damaged record must not make it seem so.
        let latest = self.past.back().map(|last| last.since_ns);
        let since_ns = latest.map_or(at_ns, |latest| at_ns.max(latest));
        self.past.push_back(LabelChange { since_ns, label });
    }
}
