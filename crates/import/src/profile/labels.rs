//! Labels of threads: what nests in what, and which one a call was in.

use super::{Profile, Range, Span};
use crate::Error;
use crate::output::NewTrace;
use gapscope_trace::LossKind;
use gapscope_trace::build::CountedId;
use gapscope_trace::ids::{LabelId, ProcessId, ThreadId};
use gapscope_trace::tables::{Marker, MarkerScope, Table};
use std::collections::BTreeMap;

/// The innermost label of each call that launches, by the call's index; `None` without one.
pub(super) type LabelsOfCalls = Vec<Option<LabelId>>;

/// A range that is open on the thread that is being read.
struct Open {
    end_ns: i64,
    domain: Option<super::TextId>,
    label: LabelId,
    labels_work: bool,
}

/// Threads nest ranges no deeper than this in sane programs; more would make every label's path endless.
const DEEPEST: usize = 256;

/// A thread of a process, where labels name one.
type LabelThread = (ProcessId, Option<ThreadId>);

/// The labels of each thread with possible times, in the order in which they nest.
pub(super) struct Nested {
    ranges: Vec<Range>,
    /// Starts and indices: ranges are large, so that these are sorted in their place.
    threads: BTreeMap<LabelThread, Vec<(i64, u32)>>,
    /// Labels with impossible times.
    refused: u64,
}

impl Nested {
    /// Of labels in the order of the file.
    pub fn of(ranges: Vec<Range>) -> Nested {
        let mut threads: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut refused = 0;
        for (index, range) in (0..).zip(&ranges) {
            let end_ns = range.end_ns.unwrap_or(range.start_ns);
            if Span::between(range.start_ns, end_ns).is_none() {
                refused += 1;
                continue;
            }
            let of_thread = threads.entry((range.process, range.thread)).or_default();
            of_thread.push((range.start_ns, index));
        }
        let end_ns = |index: u32| ranges[index as usize].end_ns.unwrap_or(i64::MAX);
        for of_thread in threads.values_mut() {
            // Of ranges that begin together the outer one is first.
            of_thread.sort_unstable_by(|a, b| {
                let outer = || end_ns(b.1).cmp(&end_ns(a.1));
                (a.0.cmp(&b.0)).then_with(outer).then(a.1.cmp(&b.1))
            });
        }
        Nested {
            ranges,
            threads,
            refused,
        }
    }
}

impl Profile {
    /// Writes the labels as markers, and finds the label of each call.
    pub(super) fn write_ranges(
        &mut self,
        nested: &Nested,
        new: &mut NewTrace,
    ) -> Result<LabelsOfCalls, Error> {
        let reason = "their times are impossible";
        self.ledger.add(LossKind::Labels, nested.refused, reason);
        // Texts as the labels have them.
        let mut known = vec![None; self.texts.len()];
        let mut in_label = vec![None; self.calls.len()];
        let mut calls: Vec<u32> = (0..self.calls.len() as u32).collect();
        // They are in order of time already.
        calls.sort_by_key(|call| {
            let call = &self.calls[*call as usize];
            (call.process, call.thread)
        });
        let mut calls = calls.into_iter().peekable();
        let (mut too_deep, mut unended) = (0, 0);
        for (&thread, of_thread) in &nested.threads {
            let place = |call: u32| {
                let call = &self.calls[call as usize];
                ((call.process, call.thread), call.span.start_ns)
            };
            while calls.next_if(|call| place(*call).0 < thread).is_some() {}
            let mut open: Vec<Open> = Vec::new();
            let in_order = of_thread.iter();
            let in_order = in_order.map(|(_, index)| &nested.ranges[*index as usize]);
            let mut ranges = in_order.peekable();
            loop {
                let next_call = calls
                    .peek()
                    .copied()
                    .filter(|call| place(*call).0 == thread);
                let next_range = ranges.peek().map(|range| range.start_ns);
                let call_first = match (next_call, next_range) {
                    (Some(call), Some(start_ns)) => place(call).1 < start_ns,
                    (Some(_), None) => true,
                    (None, Some(_)) => false,
                    (None, None) => break,
                };
                if let (true, Some(call)) = (call_first, next_call) {
                    calls.next();
                    let at_ns = place(call).1;
                    open.retain(|open| open.end_ns > at_ns);
                    let innermost = open.iter().rev().find(|open| open.labels_work);
                    in_label[call as usize] = innermost.map(|open| open.label);
                    continue;
                }
                let Some(range) = ranges.next() else { break };
                open.retain(|open| open.end_ns > range.start_ns);
                let parent = open.iter().rev().find(|open| open.domain == range.domain);
                let parent = parent.map(|open| open.label).filter(|_| !range.of_process);
                let text = match known[range.text.index()] {
                    Some(text) => text,
                    None => {
                        let text = self.texts.get(range.text).map_or("", |text| text);
                        {
                            let text = self.labels.text(text);
                            known[range.text.index()] = Some(text);
                            text
                        }
                    }
                };
                let label = self.labels.label(parent, text);
                unended += u64::from(range.end_ns.is_none());
                self.write_marker(range, label, new)?;
                let end_ns = range.end_ns.unwrap_or(i64::MAX);
                if range.of_process || end_ns == range.start_ns {
                    continue;
                }
                if open.len() == DEEPEST {
                    too_deep += 1;
                    continue;
                }
                open.push(Open {
                    end_ns,
                    domain: range.domain,
                    label,
                    labels_work: range.labels_work,
                });
            }
        }
        let reason = "they nest too deep";
        self.ledger.add(LossKind::LabelsOfWork, too_deep, reason);
        let reason = "they were open when the recording ended";
        self.ledger.add("ends of labels".into(), unended, reason);
        Ok(in_label)
    }

    fn write_marker(&self, range: &Range, label: LabelId, new: &mut NewTrace) -> Result<(), Error> {
        new.tables_mut().markers.push(Marker {
            process: range.process,
            scope: match range.of_process {
                true => MarkerScope::Process,
                false => MarkerScope::Thread,
            },
            label,
            queue: None,
            thread: range.thread,
            command_buffer: None,
            start_ns: Some(range.start_ns),
            duration_ns: range.end_ns.map(|end_ns| end_ns - range.start_ns),
            domain: range.domain.map(|text| self.shared(text)),
            category: range.category.map(|text| self.shared(text)),
            payload: range.payload.map(|text| self.shared(text)),
        });
        new.flush()
    }
}
