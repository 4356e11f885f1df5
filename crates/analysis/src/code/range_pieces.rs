//! Lists the time that submitting threads spent in ranges while devices were idle, piece by piece, for drawing, and the
//! line of code that represents each chain of ranges.

use super::idle_code::CodeSource;
use super::individual_samples::{IdleCause, StackLine};
use super::ranges::CodeRanges;
use super::{ALL_GAPS, each_idle_part};
use crate::gaps::{Cause, GapFinder};
use crate::stacks::{CodeFrame, line_text, own, text_of_line};
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::thresholds::RANGE_TOLD;
use gapscope_trace::Trace;
use gapscope_trace::ids::LabelId;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{MarkerScope, Table};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// The most pieces that are kept: the longest. A page draws no more, and their time is counted.
const MAX_PIECES: usize = 1 << 19;

/// A time in which a device was idle and the submitting thread was in one range, and in none inside of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangePiece {
    /// The time.
    pub interval: Interval,
    /// The thread that submitted the work after the gap.
    pub thread: HostThread,
    /// The chain of ranges that the thread was in, an index in [`IdleRanges::chains`].
    pub chain: u32,
    /// The device's index in [`gapscope_timeline::Timeline::gpus`].
    pub device: u32,
    /// The cause for which the device was idle.
    pub cause: Cause,
    /// The id of the label of the work that ended the gap; `None` for work without a label.
    pub label: Option<LabelId>,
}

/// A chain of nested ranges, which stands for a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeChain {
    /// The innermost range's frame, an index in [`IdleRanges::frames`].
    pub frame: u32,
    /// The chain around it; `None` for an outermost range.
    pub caller: Option<u32>,
    /// The line of code that represents the chain, an index in [`IdleRanges::lines`]; `None` where no time was spent in the
    /// chain itself.
    pub line: Option<u32>,
}

/// The time in ranges while devices were idle.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IdleRanges {
    /// The pieces, device after device and in order of gaps.
    pub pieces: Vec<RangePiece>,
    /// The causes that have idle time; their `samples` are pieces.
    pub causes: Vec<IdleCause>,
    /// The distinct frames.
    pub frames: Vec<CodeFrame>,
    /// The chains, each after the one around it.
    pub chains: Vec<RangeChain>,
    /// The lines of code.
    pub lines: Vec<StackLine>,
}

impl CodeSource {
    /// Returns what tells the code of a trace, without reading more than it must; `None` where the trace has neither samples nor
    /// ranges of threads that submit.
    pub fn of_trace(trace: &Trace) -> Option<CodeSource> {
        let tables = &trace.tables;
        if tables.samples.len() > 0 {
            return Some(CodeSource::Samples);
        }
        let (submissions, markers) = (&tables.submissions, &tables.markers);
        let submitters: FxHashSet<HostThread> = (submissions.process.iter().enumerate())
            .filter_map(|(row, process)| HostThread::from_row(*process, submissions.thread.at(row)))
            .collect();
        let of_submitter = |row: usize| {
            let thread = HostThread::from_row(markers.process[row], markers.thread.at(row));
            markers.scope[row] == MarkerScope::Thread
                && markers.duration_ns.at(row).is_some_and(|ns| ns > 0)
                && thread.is_some_and(|thread| submitters.contains(&thread))
        };
        (0..markers.len())
            .any(of_submitter)
            .then_some(CodeSource::Ranges)
    }
}

impl CodeRanges<'_> {
    /// Returns the time in ranges in all gaps.
    pub fn idle(&self, finder: &GapFinder) -> IdleRanges {
        let mut pieces = Pieces::default();
        let mut totals = [0_i64; Cause::ALL.len()];
        let (window, threshold_ns) = ALL_GAPS;
        each_idle_part(finder, window, threshold_ns, |part| {
            let total = &mut totals[part.cause as usize];
            *total = total.saturating_add(part.interval.length_ns());
            let label = self.timeline.label_of(part.after);
            self.each_in(part.thread, part.interval, |chain, interval| {
                pieces.push(RangePiece {
                    interval,
                    thread: part.thread,
                    chain,
                    device: part.device as u32,
                    cause: part.cause,
                    label,
                });
            });
        });
        let pieces = pieces.all;
        let mut sums = [(0_u64, 0_i64); Cause::ALL.len()];
        for piece in &pieces {
            let (count, total_ns) = &mut sums[piece.cause as usize];
            *count += 1;
            *total_ns = total_ns.saturating_add(piece.interval.length_ns());
        }
        let causes = Cause::ALL.into_iter().zip(totals).zip(sums);
        let causes = causes.filter(|((_, total_ns), _)| *total_ns > 0);
        let causes = causes.map(|((cause, total_ns), (samples, in_ranges_ns))| IdleCause {
            cause,
            total_ns,
            without_samples_ns: total_ns - in_ranges_ns,
            samples,
        });
        let causes = causes.collect();
        let (lines, line_of_chain) = self.lines(&pieces);
        let chains = self.nodes.all.iter().zip(line_of_chain);
        let chains = chains.map(|(node, line)| RangeChain {
            frame: node.frame,
            caller: (node.caller != NONE).then_some(node.caller),
            line,
        });
        IdleRanges {
            pieces,
            causes,
            frames: self.nodes.frames.clone(),
            chains: chains.collect(),
            lines,
        }
    }

    /// Returns the lines that represent the chains of pieces, and for each chain the index of its line. A line names the functions
    /// that it calls for at least [`RANGE_TOLD`] of its time.
    fn lines(&self, pieces: &[RangePiece]) -> (Vec<StackLine>, Vec<Option<u32>>) {
        let mut times: FxHashMap<u32, i64> = FxHashMap::default();
        for piece in pieces {
            let time = times.entry(piece.chain).or_default();
            *time = time.saturating_add(piece.interval.length_ns());
        }
        let mut chains: Vec<(u32, i64)> = times.into_iter().collect();
        chains.sort_unstable_by_key(|(chain, ns)| (Reverse(*ns), *chain));
        let mut of_chain = vec![None; self.nodes.all.len()];
        let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
        let mut lines: Vec<LineChains> = Vec::new();
        for (chain, ns) in chains {
            let frames = self.nodes.frames(chain);
            let Some(own) = own(&frames) else { continue };
            let next = lines.len() as u32;
            let line = *numbers.entry(line_text(&frames)).or_insert(next);
            if line == next {
                let chain = self.nodes.outwards(chain).nth(own);
                lines.push(LineChains {
                    frame: chain.map_or(0, |node| node.frame),
                    chains: Vec::new(),
                });
            }
            lines[line as usize].chains.push((frames, ns));
            of_chain[chain as usize] = Some(line);
        }
        let lines = lines.into_iter().map(|LineChains { frame, chains }| {
            let total_ns: i64 = chains.iter().map(|(_, ns)| ns).sum();
            let least_ns = (RANGE_TOLD * total_ns as f64) as i64;
            let told = chains.iter().filter(|(_, ns)| *ns >= least_ns);
            let told: Vec<&[CodeFrame]> = told.map(|(frames, _)| frames.as_slice()).collect();
            let text = match told.as_slice() {
                [] => line_text(&chains[0].0),
                told => text_of_line(told),
            };
            StackLine { text, frame }
        });
        (lines.collect(), of_chain)
    }
}

/// The chains of one line.
struct LineChains {
    /// The line's frame.
    frame: u32,
    /// The frames of each chain with its time, the greatest first.
    chains: Vec<(Vec<CodeFrame>, i64)>,
}

/// Pieces, of which the shortest are left out where there are too many.
#[derive(Debug, Default)]
struct Pieces {
    all: Vec<RangePiece>,
    least_ns: i64,
}

impl Pieces {
    /// Adds a piece, as a part of the last one where it goes on with it.
    fn push(&mut self, piece: RangePiece) {
        if let Some(last) = self.all.last_mut()
            && last.interval.end_ns == piece.interval.start_ns
            && *last
                == (RangePiece {
                    interval: last.interval,
                    ..piece
                })
        {
            last.interval.end_ns = piece.interval.end_ns;
            return;
        }
        if piece.interval.length_ns() < self.least_ns {
            return;
        }
        while self.all.len() >= MAX_PIECES {
            self.least_ns = (self.least_ns * 2).max(1_000);
            let least_ns = self.least_ns;
            self.all
                .retain(|piece| piece.interval.length_ns() >= least_ns);
        }
        self.all.push(piece);
    }
}
