//! Indexes the rows of a trace by id, and by the rows that they belong to, such as command buffers by their
//! submission.

use crate::track::{DrawnTable, ROW_BITS};
use gapscope_timeline::submit_calls::SubmitCalls;
use gapscope_trace::Trace;
use gapscope_trace::ids::{
    BindingSetId, BufferId, CommandBufferId, KernelId, LabelId, SubmissionId,
};
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::tables::Table;

/// The tables of work inside of command buffers. The two highest bits of a place (a table and a row in one number)
/// are an index into this list.
pub const WORK: [DrawnTable; 3] = [
    DrawnTable::Dispatch,
    DrawnTable::Transfer,
    DrawnTable::Opaque,
];

/// A row or place, with the row or id that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OwnedRow {
    /// The row or id that the other belongs to.
    owner: u32,
    row: u32,
}

/// The rows of a trace by id, and by the rows that they belong to.
#[derive(Debug)]
pub struct Index {
    pub kernels: IdIndex<KernelId>,
    pub labels: IdIndex<LabelId>,
    pub command_buffers: IdIndex<CommandBufferId>,
    pub submissions: IdIndex<SubmissionId>,
    pub buffers: IdIndex<BufferId>,
    /// Rows of host calls and of their submissions, sorted.
    of_calls: Vec<OwnedRow>,
    /// Rows of submissions and of their command buffers, sorted.
    of_submissions: Vec<OwnedRow>,
    /// Rows of submissions and places of work that is in no command buffer, sorted.
    direct: Vec<OwnedRow>,
    /// For each command buffer the place of its first timed work, or [`NONE`].
    firsts: Vec<u32>,
    /// Rows of submissions and of their dependencies, sorted.
    dependencies: Vec<OwnedRow>,
    /// Ids of sets of bindings and their rows, sorted.
    bindings: Vec<OwnedRow>,
}

impl Index {
    pub fn new(trace: &Trace, calls: &SubmitCalls) -> Index {
        let tables = &trace.tables;
        let mut index = Index {
            kernels: IdIndex::new(&tables.kernels.id),
            labels: IdIndex::new(&tables.labels.id),
            command_buffers: IdIndex::new(&tables.command_buffers.id),
            submissions: IdIndex::new(&tables.submissions.id),
            buffers: IdIndex::new(&tables.buffers.id),
            of_calls: Vec::new(),
            of_submissions: Vec::new(),
            direct: Vec::new(),
            firsts: vec![NONE; tables.command_buffers.len()],
            dependencies: Vec::new(),
            bindings: sorted(&tables.bindings.id, |id| Some(id.0 as usize)),
        };
        let submission = |id: &SubmissionId| index.submissions.get(*id);
        index.of_submissions = sorted(&tables.command_buffers.submission, submission);
        index.dependencies = sorted(&tables.dependencies.submission, submission);
        let rows = 0..tables.submissions.len();
        index.of_calls = rows
            .filter_map(|row| {
                Some(OwnedRow {
                    owner: calls.call(row)? as u32,
                    row: row as u32,
                })
            })
            .collect();
        index.of_calls.sort_unstable();
        index.find_work(trace);
        index
    }

    /// Finds the first work of each command buffer, and the work of submissions that is in none.
    fn find_work(&mut self, trace: &Trace) {
        let mut earliest = vec![i64::MAX; self.firsts.len()];
        for (number, source) in (0u32..).zip(WORK) {
            let Some(work) = source.work(trace) else {
                continue;
            };
            for row in 0..source.rows(trace) {
                let place = number << ROW_BITS | row as u32;
                let command_buffer = work.command_buffer.at(row);
                if let Some(row_of) = command_buffer.and_then(|id| self.command_buffers.get(id)) {
                    let start_ns = source.times(trace, row).map(|times| times.start_ns);
                    if let Some(start_ns) = start_ns.filter(|start_ns| *start_ns < earliest[row_of])
                    {
                        earliest[row_of] = start_ns;
                        self.firsts[row_of] = place;
                    }
                } else if let Some(id) = work.submission.at(row)
                    && let Some(submission) = self.submissions.get(id)
                {
                    let owner = submission as u32;
                    self.direct.push(OwnedRow { owner, row: place });
                }
            }
        }
        self.direct.sort_unstable();
    }

    /// Returns the rows of the submissions of a host call.
    pub fn submissions_of(&self, call: usize) -> impl Iterator<Item = usize> {
        owned_by(&self.of_calls, call)
    }

    /// Returns the rows of the command buffers of a submission.
    pub fn command_buffers_of(&self, submission: usize) -> impl Iterator<Item = usize> {
        owned_by(&self.of_submissions, submission)
    }

    /// Returns the work of a submission that is in no command buffer.
    pub fn direct_work_of(&self, submission: usize) -> impl Iterator<Item = (DrawnTable, usize)> {
        owned_by(&self.direct, submission).map(work)
    }

    /// Returns the rows of the dependencies of a submission.
    pub fn dependencies_of(&self, submission: usize) -> impl Iterator<Item = usize> {
        owned_by(&self.dependencies, submission)
    }

    /// Returns the rows of a set of bindings.
    pub fn bindings_of(&self, set: BindingSetId) -> impl Iterator<Item = usize> {
        owned_by(&self.bindings, set.0 as usize)
    }

    /// Returns the first timed work in a command buffer.
    pub fn first_work_of(&self, command_buffer: usize) -> Option<(DrawnTable, usize)> {
        let first = *self.firsts.get(command_buffer)?;
        (first != NONE).then(|| work(first as usize))
    }
}

/// Pairs each row with its owner, and sorts the pairs; rows without an owner are left out.
fn sorted<T>(rows: &[T], owner: impl Fn(&T) -> Option<usize>) -> Vec<OwnedRow> {
    let mut pairs: Vec<OwnedRow> = (rows.iter().zip(0..))
        .filter_map(|(value, row)| {
            Some(OwnedRow {
                owner: owner(value)? as u32,
                row,
            })
        })
        .collect();
    pairs.sort_unstable();
    pairs
}

/// Returns the table and row of a place.
fn work(place: usize) -> (DrawnTable, usize) {
    crate::track::place(&WORK, place as u32)
}

/// Returns the rows of an owner, among pairs that are sorted by owner.
fn owned_by(rows: &[OwnedRow], owner: usize) -> impl Iterator<Item = usize> {
    let owner = owner as u32;
    let from = rows.partition_point(|row| row.owner < owner);
    rows[from..]
        .iter()
        .take_while(move |row| row.owner == owner)
        .map(|row| row.row as usize)
}
