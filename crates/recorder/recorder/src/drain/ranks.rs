//! Writes the trace of each rank (a numbered process of a distributed program, as `RANK` of torchrun or MPI) into a
//! folder of its own inside the recording's.

use super::Drain;
use crate::Error;
use crate::assembler::Assembler;
use gapscope_model::LossKind;
use gapscope_spool::Rank;
use gapscope_trace::manifest::{self, Manifest};
use gapscope_trace::{Parts, TraceWriter};
use std::path::{Path, PathBuf};

/// The trace of one rank of a distributed program.
#[derive(Debug)]
pub struct RankTrace {
    pub rank: Rank,
    pub assembler: Assembler,
    pub writer: TraceWriter,
    /// The number of windows (captured parts of the run) of this trace that have been refused.
    pub refused_windows: usize,
}

impl Drain {
    /// Returns the index of a rank's trace, which is made for a new rank. Returns `None` when its folder cannot be
    /// made; the rank's work then goes into the recording's own trace.
    pub(super) fn rank_trace(&mut self, rank: Rank) -> Option<usize> {
        let known = self.ranks.iter().position(|r| r.rank.rank == rank.rank);
        if known.is_some() {
            return known;
        }
        match TraceWriter::create(&rank_folder(self.folder(), rank)) {
            Ok(writer) => self.ranks.push(RankTrace {
                rank,
                assembler: Assembler::new(self.header.mode),
                writer,
                refused_windows: 0,
            }),
            Err(error) => {
                let reason = format!("they are in the recording's own: {error}");
                self.assembler.lose(LossKind::RankTraces, 1, reason);
                return None;
            }
        }
        Some(self.ranks.len() - 1)
    }

    /// Refuses windows of ranks, so that the program does not wait for them: a window is a trace of its own, which
    /// one of several ranks cannot have.
    pub(super) fn refuse_windows_of_ranks(&mut self) {
        for (at, rank) in self.ranks.iter_mut().enumerate() {
            while let Some(window) = rank.assembler.captures().get(rank.refused_windows) {
                if window.end_ns.is_none() {
                    break;
                }
                let (id, number) = (window.process, window.number);
                rank.refused_windows += 1;
                let reason = "a recording of several ranks has no captures";
                rank.assembler.lose(LossKind::Captures, 1, reason);
                for process in &self.processes {
                    if process.trace == Some(at) && process.id == id {
                        process.window_done(number, true);
                    }
                }
            }
        }
    }

    /// Writes the rows of all ranks so far, with their manifests, and returns the written parts in the order of the
    /// ranks' traces.
    pub(super) fn close_rank_parts(&mut self) -> Result<Vec<Parts>, Error> {
        let mut parts = Vec::with_capacity(self.ranks.len());
        for at in 0..self.ranks.len() {
            parts.push(self.ranks[at].writer.checkpoint()?);
            let manifest = self.rank_manifest(&self.ranks[at]);
            self.ranks[at].writer.write_manifest(&manifest)?;
        }
        Ok(parts)
    }

    /// Returns the manifest of a rank's trace.
    pub(super) fn rank_manifest(&self, rank: &RankTrace) -> Manifest {
        let mut manifest = self.manifest_of(&rank.assembler);
        manifest.rank = Some(manifest::Rank {
            rank: rank.rank.rank,
            local_rank: rank.rank.local_rank,
            world_size: rank.rank.world_size,
        });
        manifest
    }
}

/// Returns the folder of a rank's trace. Query engines take the rank of each row from such a name.
pub fn rank_folder(folder: &Path, rank: Rank) -> PathBuf {
    folder.join(format!("rank={}", rank.rank))
}
