//! Groups the NVTX ranges (named spans) that NCCL writes on each thread, as the calls of a group (`ncclGroupStart` to
//! `ncclGroupEnd`) are launched together at its end: a trace goes in, [`Ranges`] come out.

use super::nccl::{Call, DOMAIN, Member, Range};
use gapscope_timeline::collectives::kind_of;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::Trace;
use gapscope_trace::ids::{LabelId, ProcessId, ThreadId};
use gapscope_trace::tables::{MarkerScope, Table};
use std::collections::{BTreeMap, HashMap};

/// Calls of NCCL that are launched together.
#[derive(Debug)]
pub(super) struct Group {
    /// The range in which the calls are launched: the call's own, or that of `ncclGroupEnd`.
    launched_in: Interval,
    pub(super) calls: Vec<Call>,
}

/// A call of a collective on the host.
#[derive(Debug)]
pub(super) struct HostCall {
    pub(super) process: ProcessId,
    /// The time inside the call.
    pub(super) interval: Interval,
    pub(super) call: Call,
}

/// The ranges of NCCL in a trace, in groups.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// The groups of each thread, in order of time.
    groups: HashMap<(ProcessId, ThreadId), Vec<Group>>,
    /// Calls on the host, in order of time: those of NCCL's ranges, and other labels with the name of a collective.
    pub(super) calls: Vec<HostCall>,
    /// The communicators (groups of ranks) that each process made, one entry for each call.
    made: BTreeMap<ProcessId, Vec<Member>>,
    /// The communicators that each process ended, whose ranges may say more of them.
    ended: BTreeMap<ProcessId, Vec<Member>>,
    /// The communicators that the calls of each process say that it belongs to.
    called: BTreeMap<ProcessId, BTreeMap<Option<u64>, Member>>,
}

impl Ranges {
    /// Reads the markers of a trace: ranges of NCCL on a thread are grouped; other labels count as calls by their
    /// names.
    pub(super) fn new(trace: &Trace) -> Ranges {
        let (rows, labels) = (&trace.tables.markers, &trace.tables.labels);
        let names: HashMap<LabelId, &str> = (labels.id.iter().zip(&labels.text))
            .filter(|(_, text)| text.starts_with("nccl"))
            .map(|(id, text)| (*id, &**text))
            .collect();
        let mut ranges = Ranges::default();
        let mut by_thread: BTreeMap<(ProcessId, ThreadId), Vec<(Interval, Range)>> =
            BTreeMap::new();
        for row in 0..rows.len() {
            let (Some(name), None) = (names.get(&rows.label[row]), rows.command_buffer.at(row))
            else {
                continue;
            };
            let Some(interval) =
                Interval::from_row(rows.start_ns.at(row), rows.duration_ns.at(row))
            else {
                continue;
            };
            let process = rows.process[row];
            let own = rows.domain[row].as_deref() == Some(DOMAIN);
            let payload = rows.payload[row].as_deref().unwrap_or_default();
            match (Range::from_name(name, payload), rows.thread.at(row)) {
                (Some(range), Some(thread)) if own && rows.scope[row] == MarkerScope::Thread => {
                    let of_thread = by_thread.entry((process, thread)).or_default();
                    of_thread.push((interval, range));
                }
                _ => ranges.label(process, interval, name),
            }
        }
        for (of, mut all) in by_thread {
            // The outer one of ranges that begin together comes first.
            all.sort_by_key(|(interval, _)| (interval.start_ns, -interval.end_ns));
            ranges.thread(of, all);
        }
        ranges.calls.sort_by_key(|call| call.interval);
        ranges
    }

    /// Adds a label that is none of NCCL's own ranges.
    fn label(&mut self, process: ProcessId, interval: Interval, name: &str) {
        if let Some(kind) = kind_of(name) {
            self.calls.push(HostCall {
                process,
                interval,
                call: Call {
                    kind,
                    ..Call::default()
                },
            });
        }
    }

    /// Adds the ranges of one thread, in order of time. A call outside of a group is a group of its own.
    fn thread(&mut self, of: (ProcessId, ThreadId), all: Vec<(Interval, Range)>) {
        let mut groups = Vec::new();
        let (mut depth, mut open, mut end_ns) = (0u32, Vec::new(), i64::MIN);
        for (interval, range) in all {
            // Calls of NCCL inside of its own functions belong to these.
            if interval.start_ns < end_ns {
                continue;
            }
            end_ns = interval.end_ns;
            match range {
                Range::GroupStart => depth += 1,
                Range::GroupEnd => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        groups.push(Group {
                            launched_in: interval,
                            calls: std::mem::take(&mut open),
                        });
                    }
                }
                Range::Call(call) => {
                    if let Some(member) = call.member {
                        let called = self.called.entry(of.0).or_default();
                        called.entry(member.communicator).or_insert(member);
                    }
                    self.calls.push(HostCall {
                        process: of.0,
                        interval,
                        call,
                    });
                    match depth {
                        0 => groups.push(Group {
                            launched_in: interval,
                            calls: vec![call],
                        }),
                        _ => open.push(call),
                    }
                }
                Range::Made(member) => self.made.entry(of.0).or_default().push(member),
                Range::Ended(member) => self.ended.entry(of.0).or_default().push(member),
            }
        }
        self.groups.insert(of, groups);
    }

    /// Returns the group in which a thread launched something at a time, with its number among those of the thread.
    pub(super) fn launched_at(
        &self,
        thread: (ProcessId, ThreadId),
        at_ns: i64,
    ) -> Option<(usize, &Group)> {
        let groups = self.groups.get(&thread)?;
        let after = groups.partition_point(|group| group.launched_in.start_ns <= at_ns);
        let at = after.checked_sub(1)?;
        let group = &groups[at];
        // A call that ends with its launch may have the same nanosecond.
        (at_ns <= group.launched_in.end_ns).then_some((at, group))
    }

    /// Returns the places of a process in its communicators.
    pub(super) fn members(&self, process: ProcessId) -> impl Iterator<Item = &Member> {
        let made = self.made.get(&process).into_iter().flatten();
        let called = self.called.get(&process).into_iter();
        made.chain(self.ended.get(&process).into_iter().flatten())
            .chain(called.flat_map(BTreeMap::values))
    }

    /// Returns the communicators that a process made.
    pub(super) fn made(&self, process: ProcessId) -> &[Member] {
        self.made.get(&process).map_or(&[], Vec::as_slice)
    }
}
