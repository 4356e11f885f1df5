//! The runs that are replayed together: that of one process, or those of the ranks of a distributed program.

use super::rank_part::RankPart;
use super::recorded::Recorded;
use super::{Change, Extent};
use crate::gaps::GapFinder;
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::Interval;

/// A rank of a distributed program, with what joins it to the others.
pub struct RankRun<'f, 'a> {
    /// The number of the rank.
    pub rank: u32,
    /// Its trace.
    pub finder: &'f GapFinder<'a>,
    /// The part of its run that is asked about.
    pub extent: Extent,
    /// Its kernels in collectives that all ranks wait for.
    pub parts: Vec<RankPart>,
    /// The greatest error within which times of its device compare with those of another rank.
    pub clock_error_ns: i64,
}

/// A run, laid out.
pub(super) struct Run<'f, 'a> {
    /// The number of its rank; `None` for a run that is replayed alone.
    pub(super) rank: Option<u32>,
    pub(super) finder: &'f GapFinder<'a>,
    pub(super) recorded: Recorded,
    pub(super) clock_error_ns: i64,
}

impl<'f, 'a> Run<'f, 'a> {
    /// Lays out the run of a trace.
    pub(super) fn new(
        finder: &'f GapFinder<'a>,
        window: Interval,
        most_moments: usize,
    ) -> Run<'f, 'a> {
        Run {
            rank: None,
            finder,
            recorded: Recorded::new(finder, window, most_moments, &[]),
            clock_error_ns: 0,
        }
    }

    /// Lays out the same part of the runs of ranks, of long ones so much from the start that they have about `most_moments` together.
    pub(super) fn of_ranks(
        ranks: &[RankRun<'f, 'a>],
        window: Interval,
        most_moments: usize,
    ) -> Vec<Run<'f, 'a>> {
        let most = most_moments / ranks.len().max(1);
        let lay_out = |window: Interval| -> Vec<Run<'f, 'a>> {
            let run = |rank: &RankRun<'f, 'a>| Run {
                rank: Some(rank.rank),
                finder: rank.finder,
                recorded: Recorded::new(rank.finder, window, most, &rank.parts),
                clock_error_ns: rank.clock_error_ns,
            };
            ranks.iter().map(run).collect()
        };
        let runs = lay_out(window);
        let ends = runs.iter().map(|run| run.recorded.window.end_ns);
        match ends.min().filter(|end_ns| *end_ns < window.end_ns) {
            // Ranks that are cut at different moments would lack each other.
            Some(end_ns) => {
                let mut runs = lay_out(Interval::new(window.start_ns, end_ns));
                runs.iter_mut()
                    .for_each(|run| run.recorded.facts.is_cut = true);
                runs
            }
            None => runs,
        }
    }

    pub(super) fn timeline(&self) -> &'a Timeline<'a> {
        self.finder.timeline()
    }

    /// Returns the changes that are made to the run.
    pub(super) fn changed_by<'c>(&self, changes: &'c [Change]) -> Vec<&'c Change> {
        let is_changed = |change: &&Change| change.rank.is_none() || change.rank == self.rank;
        changes.iter().filter(is_changed).collect()
    }
}
