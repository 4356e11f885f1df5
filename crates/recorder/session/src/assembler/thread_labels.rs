//! Labels on host threads: what is open, and what was when. Records of calls come long after them, so each thread
//! remembers its labels of the past.

use super::Assembler;
use super::commands;
use super::host::{HostMarker, LabelRecord};
use gapscope_spool::event::{LabelEdge, LabelScope, Layer, Payload};
use gapscope_spool::ids as hook;
use gapscope_trace::build::{Labels, TextId};
use gapscope_trace::ids::{LabelId, ProcessId, ThreadId};
use gapscope_trace::tables::{MarkerScope, Tables};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// Changes that a thread remembers: at 2 us each, as of operators, a second.
const MOST_REMEMBERED: usize = 1 << 19;

/// Labels of one process's threads.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct HostLabels {
    threads: FxHashMap<hook::Thread, ThreadLabels>,
    /// Ranges of the process, by their ids.
    ranges: FxHashMap<hook::LabelRange, OpenLabel>,
    /// Names of domains and categories.
    domains: FxHashMap<hook::LabelDomain, Arc<str>>,
    categories: FxHashMap<hook::LabelCategory, Arc<str>>,
}

/// Labels of one thread.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ThreadLabels {
    /// In the order in which they started, those of all domains.
    open: Vec<OpenLabel>,
    /// The innermost label from each moment on.
    past: VecDeque<LabelChange>,
    /// The innermost label before `past` is not known any more.
    forgotten: bool,
    /// An instant that may get a detail yet.
    instant: Option<OpenLabel>,
    last: LastLabel,
}

/// The label that a thread wrote last.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum LastLabel {
    #[default]
    None,
    Open,
    Range(hook::LabelRange),
    Instant,
}

/// The innermost label of a thread, from a moment on.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct LabelChange {
    since_ns: i64,
    label: Option<LabelId>,
}

/// What was at a moment is not remembered any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgotten;

/// A label that is open.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct OpenLabel {
    label: LabelId,
    text: TextId,
    start_ns: i64,
    thread: hook::Thread,
    domain: hook::LabelDomain,
    category: hook::LabelCategory,
    payload: Option<Arc<str>>,
}

impl HostLabels {
    /// A domain has a name.
    pub fn name_domain(&mut self, domain: hook::LabelDomain, name: &str) {
        self.domains.insert(domain, Arc::from(name));
    }

    /// A category has a name.
    pub fn name_category(&mut self, category: hook::LabelCategory, name: &str) {
        self.categories.insert(category, Arc::from(name));
    }

    /// The innermost label on a thread at a moment; [`Forgotten`] when it was too long ago.
    pub fn at(&self, thread: hook::Thread, at_ns: i64) -> Result<Option<LabelId>, Forgotten> {
        let Some(labels) = self.threads.get(&thread) else {
            return Ok(None);
        };
        let past = &labels.past;
        // Mostly the call is of the last moments.
        let changes = past.partition_point(|change| change.since_ns <= at_ns);
        match changes.checked_sub(1).and_then(|last| past.get(last)) {
            Some(change) => Ok(change.label),
            None if labels.forgotten => Err(Forgotten),
            None => Ok(None),
        }
    }

    /// The label that a thread wrote last.
    fn last_of(&mut self, thread: hook::Thread) -> Option<&mut OpenLabel> {
        let labels = self.threads.get_mut(&thread)?;
        match labels.last {
            LastLabel::None => None,
            LastLabel::Open => labels.open.last_mut(),
            LastLabel::Range(range) => self.ranges.get_mut(&range),
            LastLabel::Instant => labels.instant.as_mut(),
        }
    }

    /// The label that ends next in a scope.
    fn innermost(&mut self, thread: hook::Thread, scope: LabelScope) -> Option<&mut OpenLabel> {
        let domain = match scope {
            LabelScope::Range { range, .. } => return self.ranges.get_mut(&range),
            LabelScope::Thread => hook::LabelDomain::NONE,
            LabelScope::Domain(domain) => domain,
            LabelScope::Queue(_) => return None,
        };
        let open = &mut self.threads.get_mut(&thread)?.open;
        open.iter_mut().rfind(|open| open.domain == domain)
    }

    fn marker<'a>(&'a self, open: &'a OpenLabel, scope: MarkerScope) -> HostMarker<'a> {
        HostMarker {
            scope,
            label: open.label,
            queue: None,
            thread: Some(ThreadId(open.thread.0)),
            start_ns: open.start_ns,
            domain: self.domains.get(&open.domain),
            category: self.categories.get(&open.category),
            payload: open.payload.as_ref(),
        }
    }

    /// Rows for what is still open: nothing more comes.
    pub fn finish(&mut self, process: ProcessId, tables: &mut Tables) {
        let mut threads: Vec<_> = std::mem::take(&mut self.threads).into_iter().collect();
        threads.sort_unstable_by_key(|(thread, _)| *thread);
        for (_, labels) in threads {
            for open in &labels.open {
                self.marker(open, MarkerScope::Thread)
                    .write(process, None, tables);
            }
            if let Some(instant) = &labels.instant {
                self.marker(instant, MarkerScope::Thread).write(
                    process,
                    Some(instant.start_ns),
                    tables,
                );
            }
        }
        let mut ranges: Vec<_> = std::mem::take(&mut self.ranges).into_iter().collect();
        ranges.sort_unstable_by_key(|(range, _)| *range);
        for (_, open) in &ranges {
            self.marker(open, MarkerScope::Process)
                .write(process, None, tables);
        }
    }
}

impl ThreadLabels {
    /// The open label in which one of a domain begins. Labels of a domain nest in it; modules in all that the program has set,
    /// and what the program sets in its modules.
    fn around(&self, domain: hook::LabelDomain) -> Option<LabelId> {
        let open = self.open.iter().rfind(|open| {
            let layer = Layer::of(open.domain);
            match Layer::of(domain) {
                None => open.domain == domain || layer == Some(Layer::Module),
                Some(Layer::Module | Layer::Operator) => layer != Some(Layer::Operator),
            }
        });
        open.map(|open| open.label)
    }

    /// The label of what the thread does now: the innermost, and inside it all operators that run. Backward, a module begins inside an
    /// operator of the engine and ends inside another.
    fn innermost(&self, labels: &mut Labels) -> Option<LabelId> {
        let is_operator = |open: &&OpenLabel| Layer::of(open.domain) == Some(Layer::Operator);
        let base = self.open.iter().rfind(|open| !is_operator(open));
        let operators = self.open.iter().filter(is_operator);
        operators.fold(base.map(|open| open.label), |around, operator| {
            Some(labels.label(around, operator.text))
        })
    }

    fn remember(&mut self, at_ns: i64, label: Option<LabelId>) {
        if self.past.len() == MOST_REMEMBERED {
            self.past.pop_front();
            self.forgotten = true;
        }
        // The clock of one thread does not go back, and a damaged record must not make it seem so.
        let at_ns = self
            .past
            .back()
            .map_or(at_ns, |last| at_ns.max(last.since_ns));
        self.past.push_back(LabelChange {
            since_ns: at_ns,
            label,
        });
    }
}

/// Where on a thread a label is.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadPlace {
    pub thread: hook::Thread,
    pub domain: hook::LabelDomain,
    /// A range of the process, if it is one.
    pub range: Option<hook::LabelRange>,
}

impl Assembler {
    pub(super) fn thread_label(
        &mut self,
        process: ProcessId,
        place: ThreadPlace,
        record: LabelRecord,
        tables: &mut Tables,
    ) {
        let ThreadPlace {
            thread,
            domain,
            range,
        } = place;
        let LabelRecord { edge, text, at_ns } = record;
        let state = &mut self.processes[process];
        let mut all = std::mem::take(&mut state.host_labels);
        let labels = all.threads.entry(thread).or_default();
        if let Some(instant) = labels.instant.take() {
            all.marker(&instant, MarkerScope::Thread).write(
                process,
                Some(instant.start_ns),
                tables,
            );
        }
        let open = |parent: Option<LabelId>, known: &mut Labels| {
            let text = commands::text(&state.texts, known, text);
            OpenLabel {
                label: known.label(parent, text),
                text,
                start_ns: at_ns,
                thread,
                domain,
                category: hook::LabelCategory::NONE,
                payload: None,
            }
        };
        match (edge, range) {
            (LabelEdge::Begin, Some(range)) => {
                all.ranges.insert(range, open(None, &mut self.labels));
                all.threads.entry(thread).or_default().last = LastLabel::Range(range);
            }
            (LabelEdge::End, Some(range)) => {
                if let Some(open) = all.ranges.remove(&range) {
                    all.marker(&open, MarkerScope::Process)
                        .write(process, Some(at_ns), tables);
                }
            }
            (edge, _) => {
                let labels = all.threads.entry(thread).or_default();
                let inner = labels.open.iter().rposition(|o| o.domain == domain);
                let around = match Layer::of(domain) {
                    Some(Layer::Operator) => labels.innermost(&mut self.labels),
                    _ => labels.around(domain),
                };
                match edge {
                    LabelEdge::Begin => {
                        labels.open.push(open(around, &mut self.labels));
                        labels.last = LastLabel::Open;
                        let innermost = labels.innermost(&mut self.labels);
                        labels.remember(at_ns, innermost);
                    }
                    LabelEdge::End => {
                        labels.last = LastLabel::None;
                        if let Some(at) = inner {
                            let ended = labels.open.remove(at);
                            let innermost = labels.innermost(&mut self.labels);
                            labels.remember(at_ns, innermost);
                            all.marker(&ended, MarkerScope::Thread).write(
                                process,
                                Some(at_ns),
                                tables,
                            );
                        }
                    }
                    LabelEdge::Instant => {
                        labels.instant = Some(open(around, &mut self.labels));
                        labels.last = LastLabel::Instant;
                    }
                }
            }
        }
        self.processes[process].host_labels = all;
    }

    /// More of the label that a thread wrote last.
    pub(super) fn label_detail(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        category: hook::LabelCategory,
        payload: Option<Payload>,
    ) {
        let all = &mut self.processes[process].host_labels;
        if let Some(open) = all.last_of(thread) {
            open.category = category;
            open.payload = payload.map(|payload| match payload {
                Payload::Unsigned(value) => Arc::from(value.to_string()),
                Payload::Signed(value) => Arc::from(value.to_string()),
                Payload::Float(value) => Arc::from(value.to_string()),
            });
        }
    }

    /// The value of the label that a thread wrote last, or that it ends next in a scope, in parts.
    pub(super) fn label_payload(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        ending: Option<LabelScope>,
        text: &str,
    ) {
        let all = &mut self.processes[process].host_labels;
        let open = match ending {
            None => all.last_of(thread),
            Some(scope) => all.innermost(thread, scope),
        };
        if let Some(open) = open {
            open.payload = Some(match &open.payload {
                None => Arc::from(text),
                Some(before) => Arc::from(format!("{before}, {text}")),
            });
        }
    }
}
