//! Defines [`AnalysedTrace`], a trace with the results of its analyses, each of which runs when its result is first
//! asked for.

use crate::snapshot::Snapshot;
use gapscope_analysis::code::{HostCode, IdleRanges};
use gapscope_analysis::dataflow::Dataflow;
use gapscope_analysis::gaps::{Cause, GapFinder};
use gapscope_analysis::warm_up::{FirstUses, warm_up};
use gapscope_analysis::{Findings, Options};
use gapscope_timeline::Timeline;
use gapscope_timeline::bound_bytes::BindingSets;
use gapscope_timeline::counters::{Counter, counters};
use std::cell::OnceCell;
use std::sync::Arc;

/// The most gaps that findings list; the longest are listed.
const MAX_LISTED_GAPS: usize = 1000;

/// A trace with everything that its analyses have computed so far.
pub struct AnalysedTrace<'a> {
    /// The name of the trace.
    pub name: &'a str,
    /// The part of the trace that is drawn.
    pub snapshot: Arc<Snapshot>,
    /// The timeline that the analyses read.
    pub timeline: &'a Timeline<'a>,
    /// Sentences about reading the timeline's tables.
    pub remarks: &'a [String],
    /// The fields from here on are empty until their analysis has run.
    bindings: OnceCell<BindingSets>,
    /// The times at which code was compiled, loaded or first run.
    first_uses: OnceCell<FirstUses>,
    /// The dependencies between dispatches and transfers by the buffers that they use.
    flow: OnceCell<Dataflow<'a>>,
    gaps: OnceCell<Gaps>,
    /// Describes single gaps.
    finder: OnceCell<GapFinder<'a>>,
    counters: OnceCell<Vec<Counter>>,
    found: OnceCell<Findings>,
    idle_ranges: OnceCell<Option<IdleRanges>>,
    /// The bytes of the answer to the request `findings`.
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
            idle_ranges: OnceCell::new(),
            findings: OnceCell::new(),
        }
    }

    pub fn bindings(&self) -> &BindingSets {
        self.bindings
            .get_or_init(|| BindingSets::new(self.timeline.trace))
    }

    pub fn first_uses(&self) -> &FirstUses {
        self.first_uses
            .get_or_init(|| FirstUses::new(self.timeline, &warm_up(self.timeline)))
    }

    /// Returns all findings.
    pub fn found(&self) -> &Findings {
        self.found.get_or_init(|| {
            let options = Options {
                longest: MAX_LISTED_GAPS,
                ..Options::default()
            };
            Findings::from_gaps(self.finder(), &options)
        })
    }

    /// Returns the time in ranges while devices were idle; `None` where the trace has samples, or no such ranges.
    pub fn idle_ranges(&self) -> Option<&IdleRanges> {
        let ranges = self.idle_ranges.get_or_init(|| idle_ranges(self.finder()));
        ranges.as_ref()
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
        self.gaps.get_or_init(|| Gaps::new(self.finder()))
    }
}

/// The parts of all gaps (times in which a GPU runs nothing), each with one cause, GPU after GPU and in order of
/// time. The vectors but `bounds` have one entry for each part.
#[derive(Debug, Default)]
pub struct Gaps {
    /// For each GPU the index of its first part, and then the number of all parts.
    pub bounds: Vec<usize>,
    pub start_ns: Vec<i64>,
    pub duration_ns: Vec<i64>,
    /// The cause of each part.
    pub causes: Vec<Cause>,
    /// For each part the index of the first part of the same gap.
    pub firsts: Vec<u32>,
}

impl Gaps {
    fn new(finder: &GapFinder) -> Gaps {
        let mut gaps = Gaps {
            bounds: vec![0],
            ..Gaps::default()
        };
        for gpu in 0..finder.timeline().gpus.len() {
            finder.each(gpu, |_, parts| {
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

/// Returns the time in ranges while devices were idle; `None` where the trace has samples, or no such ranges.
fn idle_ranges(finder: &GapFinder) -> Option<IdleRanges> {
    match HostCode::new(finder)? {
        HostCode::Samples(_) => None,
        HostCode::Ranges(ranges) => Some(ranges.idle(finder)),
    }
}
