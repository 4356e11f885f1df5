//! Joins the work of processes that share a number of a device and use the same correlations (the numbers of calls and their work) at the
//! same time, as a program and its child on one GPU do.
//!
//! Input are the calls and the work that have a correlation; output is the call of each piece of work, or that its process is not known. A
//! piece of work can be of a call of its kind that began before it: kernels are of launches, transfers of copies, nodes of graphs of launches of
//! graphs. Where each such call has one piece of work, they are paired in order of time: the first call gets the work that ran first.
//! Where work of some call is missing, a piece of work that calls of several processes could have launched is nobody's, unless each of
//! these processes has streams of its own, as other work says.

use super::join::{Calls, CollectedWork, Joined, Launches, SourceProcesses};
use crate::profile::Correlation;
use gapscope_model::SubmissionKind;
use gapscope_timeline_builder::{DeviceWorkKind, Function};
use gapscope_trace::ids::{ProcessId, QueueId};
use rustc_hash::{FxHashMap, FxHashSet};

/// What was found of the work that several processes may have launched.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The call of each piece of work, by the index of the work; `None` where the process is not known.
    pub(super) joined: FxHashMap<u32, Option<Joined>>,
    /// The number of pieces that could as well be another process's, as a call of that process came before them, too.
    pub(super) ambiguous: u64,
    /// The number of pieces whose correlation several calls of their process have.
    pub(super) in_process: u64,
    /// The pieces and calls that time alone does not tell apart.
    open: Vec<(Vec<Piece>, Vec<Call>)>,
}

/// A stream of the events of a device, by the number of that source.
type Stream = (u32, QueueId);

/// The kinds of work by which calls are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Kernel,
    Transfer,
    /// A launch of a graph, or a node of one.
    Graph,
    /// The kind of calls that are not known to launch anything.
    Other,
}

/// A call with a correlation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    start_ns: i64,
    index: u32,
    kind: Kind,
    process: ProcessId,
}

impl Call {
    fn joined(&self) -> Joined {
        Joined {
            process: self.process,
            call: Some(self.index),
        }
    }
}

/// The maximum number of calls before and after a call that are looked at for one that could have launched its work.
const MAX_SWAPPED: usize = 64;

/// A piece of work: its start, which may be unknown, and its index.
type Piece = (Option<i64>, u32);

impl Launches {
    /// Joins the work of sources that several processes share, as far as calls of several processes have its correlation.
    pub(super) fn join_shared(
        &self,
        works: &[CollectedWork],
        sources: &SourceProcesses,
        calls: &Calls,
        functions: &[Function],
    ) -> Shared {
        let mut found = Shared::default();
        let mut groups: FxHashMap<(u32, Correlation), Vec<(Kind, Piece)>> = FxHashMap::default();
        for (at, collected) in (0u32..).zip(works) {
            let correlation = collected.correlation;
            let Some(correlation) = correlation.filter(|_| sources.is_shared(collected.source))
            else {
                continue;
            };
            let work = &collected.work;
            let kind = match work.kind {
                _ if work.of_graph => Kind::Graph,
                DeviceWorkKind::Transfer { .. } => Kind::Transfer,
                _ => Kind::Kernel,
            };
            let start_ns = work.span.map(|span| span.start_ns);
            let group = groups.entry((collected.source, correlation)).or_default();
            group.push((kind, (start_ns, at)));
        }
        // Old versions of the profiler do not say which work is of a graph.
        let says_nodes = works.iter().any(|collected| collected.work.of_graph);
        for ((_, correlation), group) in groups {
            let candidates = self.with_correlation(correlation, calls, functions);
            if are_of_one_process(&candidates) {
                let Some(only) = candidates.first() else {
                    continue;
                };
                let is_used_again = self.again.contains_key(&(only.process, correlation));
                found.in_process += u64::from(is_used_again) * group.len() as u64;
                found.joined.extend(group.iter().map(|(_, (start_ns, at))| {
                    let call = self.call(only.process, correlation, *start_ns, calls);
                    let joined = Joined {
                        call,
                        ..only.joined()
                    };
                    (*at, Some(joined))
                }));
                continue;
            }
            for kind in [Kind::Kernel, Kind::Transfer, Kind::Graph] {
                let pieces = group.iter().filter(|(of, _)| *of == kind);
                let mut pieces: Vec<Piece> = pieces.map(|(_, piece)| *piece).collect();
                pieces.sort_unstable();
                let of_kind =
                    |call: &&Call| call.kind == kind || (call.kind == Kind::Graph && !says_nodes);
                let of_kind: Vec<Call> = candidates.iter().filter(of_kind).copied().collect();
                let of_kind = if of_kind.is_empty() {
                    &candidates
                } else {
                    &of_kind
                };
                found.give(&pieces, of_kind);
            }
        }
        found.give_by_streams(works);
        found
    }

    /// Returns the calls with a correlation in order of time: those that launch work, or else all.
    fn with_correlation(
        &self,
        correlation: Correlation,
        calls: &Calls,
        functions: &[Function],
    ) -> Vec<Call> {
        let mut found = Vec::new();
        for process in &self.processes {
            let uses = self.uses(*process, correlation).iter();
            found.extend(uses.map(|index| Call {
                start_ns: calls.start_ns(*index),
                index: *index,
                kind: match calls.launches(*index, functions) {
                    Some(SubmissionKind::Graph) => Kind::Graph,
                    Some(SubmissionKind::Transfer) => Kind::Transfer,
                    Some(_) => Kind::Kernel,
                    None => Kind::Other,
                },
                process: *process,
            }));
        }
        if found.iter().any(|call| call.kind != Kind::Other) {
            found.retain(|call| call.kind != Kind::Other);
        }
        found.sort_unstable();
        found
    }
}

impl Shared {
    /// Gives pieces of work of one kind to calls that could have launched them, of which there is at least one. Both are in order of time.
    fn give(&mut self, pieces: &[Piece], calls: &[Call]) {
        let fits = calls.len() == pieces.len()
            && (calls.iter().zip(pieces)).all(|(call, piece)| could_launch(call, piece));
        // A launch of a graph has any number of pieces of work.
        if fits && !calls.iter().any(|call| call.kind == Kind::Graph) {
            let ambiguous = (0..calls.len()).filter(|at| could_be_swapped(*at, pieces, calls));
            let ambiguous = ambiguous.count() as u64;
            self.ambiguous += ambiguous;
            let joined = calls.iter().zip(pieces);
            (self.joined).extend(joined.map(|(call, piece)| (piece.1, Some(call.joined()))));
            if ambiguous > 0 {
                self.open.push((pieces.to_vec(), calls.to_vec()));
            }
            return;
        }
        let is_of_one = are_of_one_process(calls);
        for piece in pieces {
            let before = calls.partition_point(|call| could_launch(call, piece));
            let before = &calls[..if piece.0.is_some() {
                before
            } else {
                calls.len()
            }];
            let joined = match before.last() {
                Some(latest) if is_of_one || are_of_one_process(before) => Some(latest),
                None if is_of_one => calls.first(),
                _ => None,
            };
            self.joined.insert(piece.1, joined.map(Call::joined));
            if joined.is_none() {
                self.open.push((vec![*piece], before.to_vec()));
            }
        }
    }

    /// Joins what is open by the streams: where each process whose call could have launched some work has streams of its own, the work is
    /// of the process of its stream.
    fn give_by_streams(&mut self, works: &[CollectedWork]) {
        let open = std::mem::take(&mut self.open);
        let is_open: FxHashSet<u32> = (open.iter())
            .flat_map(|(pieces, _)| pieces.iter().map(|(_, at)| *at))
            .collect();
        let stream = |at: u32| {
            let work = &works[at as usize];
            (work.source, work.work.queue)
        };
        // `None` stands for a stream that several processes use.
        let mut owners: FxHashMap<Stream, Option<ProcessId>> = FxHashMap::default();
        for (at, joined) in self.joined.iter().filter(|(at, _)| !is_open.contains(at)) {
            let process = joined.map(|joined| joined.process);
            let owner = owners.entry(stream(*at)).or_insert(process);
            *owner = owner.filter(|owner| Some(*owner) == process);
        }
        let of_streams: FxHashSet<(u32, ProcessId)> = (owners.iter())
            .filter_map(|((source, _), owner)| Some((*source, (*owner)?)))
            .collect();
        for (pieces, calls) in open {
            let joined: Option<Vec<(u32, Joined)>> = (pieces.iter())
                .map(|piece| {
                    let (source, _) = stream(piece.1);
                    let has_streams = |call: &Call| of_streams.contains(&(source, call.process));
                    let owner = owners.get(&stream(piece.1)).copied().flatten()?;
                    let of_owner = |call: &&Call| {
                        call.process == owner && (piece.0.is_none() || could_launch(call, piece))
                    };
                    let call = calls.iter().rfind(of_owner)?;
                    (calls.iter().all(has_streams)).then_some((piece.1, call.joined()))
                })
                .collect();
            let Some(joined) = joined else {
                continue;
            };
            let called: FxHashSet<Option<u32>> =
                joined.iter().map(|(_, joined)| joined.call).collect();
            if called.len() < joined.len() {
                continue;
            }
            if pieces.len() > 1 {
                let swapped = (0..pieces.len()).filter(|at| could_be_swapped(*at, &pieces, &calls));
                self.ambiguous -= swapped.count() as u64;
            }
            let joined = joined.into_iter().map(|(at, joined)| (at, Some(joined)));
            self.joined.extend(joined);
        }
    }
}

fn are_of_one_process(calls: &[Call]) -> bool {
    calls.windows(2).all(|two| two[0].process == two[1].process)
}

/// Returns true where a call began before a piece of work.
fn could_launch(call: &Call, piece: &Piece) -> bool {
    piece.0.is_some_and(|start_ns| call.start_ns <= start_ns)
}

/// Returns true where a piece of work, which is paired with the call at the same place, could as well be of a call of another process, which
/// then has its own work.
fn could_be_swapped(at: usize, pieces: &[Piece], calls: &[Call]) -> bool {
    let other = |call: &&Call| call.process != calls[at].process;
    let later = calls[at + 1..].iter().take(MAX_SWAPPED);
    let mut later = later.take_while(|call| could_launch(call, &pieces[at]));
    let earlier = calls[..at].iter().zip(pieces).rev().take(MAX_SWAPPED);
    let mut earlier = earlier.take_while(|(_, piece)| could_launch(&calls[at], piece));
    later.any(|call| other(&call)) || earlier.any(|(call, _)| other(&call))
}
