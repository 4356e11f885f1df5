//! Says which counts of a trace's rows are not the counts of what ran, because part of it, or all, was not recorded. Input
//! are the rows and the losses of a trace; output is a list of counts, each with a lower bound and a reason.

use crate::Timeline;
use crate::lost_work::{LostWork, losses_inside, losses_of_work};
use gapscope_trace::LossKind;
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::{OpaqueWorkKind, Table};
use schemars::JsonSchema;
use serde::Serialize;

/// A count of things that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Count {
    /// Dispatches.
    #[serde(rename = "dispatch_count")]
    Dispatches,
    /// Command buffers.
    #[serde(rename = "command_buffer_count")]
    CommandBuffers,
    /// Submissions.
    #[serde(rename = "submission_count")]
    Submissions,
    /// Transfers.
    #[serde(rename = "transfer_count")]
    Transfers,
}

/// A count that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnknownCount {
    /// Which count of the report.
    pub count: Count,
    /// How many there are at least; null where none was recorded.
    pub at_least: Option<u64>,
    /// True where some of them were lost, and not only counted in another way.
    #[serde(skip)]
    pub is_lost: bool,
    /// Why the count is not known, as a phrase.
    pub because: String,
}

/// Returns the counts of a trace that are not known, each at most once. Where work is selected, these are the counts of which
/// nothing was recorded.
pub fn unknown_counts(timeline: &Timeline) -> Vec<UnknownCount> {
    let trace = timeline.trace;
    let tables = &trace.tables;
    let dispatches = timeline.dispatches.count() as u64;
    let transfers = tables.transfers.len() as u64;
    let command_buffers = tables.command_buffers.len() as u64;
    let submissions = timeline.submission_count();
    let has_work = dispatches + transfers + command_buffers + tables.opaque_work.len() as u64 > 0;
    let mut unknown = Vec::new();
    let mut add = |count, rows: u64, (because, is_lost): (String, bool)| {
        unknown.push(UnknownCount {
            count,
            at_least: (rows > 0).then_some(rows),
            is_lost,
            because,
        });
    };
    // Of what a file of another tool lacks, nobody knows whether the tool would have written it.
    let manifest = &trace.manifest;
    let is_imported = manifest
        .processes
        .iter()
        .any(|process| process.other_tool().is_some());
    let lost = |kinds: &[LossKind]| {
        let loss = losses_inside(manifest).find(|loss| kinds.contains(&loss.kind))?;
        Some((loss.reason.to_string(), true))
    };
    if !has_work && submissions == 0 && is_imported {
        let is_lost = losses_of_work(manifest).any(|(_, lost)| lost == LostWork::Pieces);
        let because = match is_lost {
            true => "the file has no rows of the GPU work that its calls launched",
            false => "the file has no GPU work and no calls that launch any",
        };
        for count in [
            Count::Dispatches,
            Count::CommandBuffers,
            Count::Submissions,
            Count::Transfers,
        ] {
            add(count, 0, (because.to_owned(), is_lost));
        }
        return unknown;
    }
    let mut opaque = tables.opaque_work.kind.iter();
    let whole_graphs = (opaque.any(|kind| *kind == OpaqueWorkKind::Graph))
        .then(|| ("graphs were recorded as a whole".to_owned(), false));
    // Calls would tell that there are none.
    let none_of = |rows: u64| {
        (rows == 0 && submissions == 0 && is_imported)
            .then(|| "the file has none, and no calls that would launch some".to_owned())
            .map(|because| (because, false))
    };
    use LossKind::*;
    let in_all = [
        CommandBuffers,
        CommandBufferContents,
        SecondaryContents,
        CudaActivities,
        CudaActivitiesAtSuddenEnd,
        DroppedCudaActivities,
        GpuIntervals,
    ];
    let kinds = [&in_all[..], &[Dispatches, DispatchRows, UnlistedDispatches]].concat();
    if let Some(because) = lost(&kinds)
        .or(whole_graphs.clone())
        .or(none_of(dispatches))
    {
        add(Count::Dispatches, dispatches, because);
    }
    let kinds = [
        &in_all[..],
        &[Transfers, Copies, CopiesBetweenDevices, Fills],
    ]
    .concat();
    if let Some(because) = lost(&kinds).or(whole_graphs).or(none_of(transfers)) {
        add(Count::Transfers, transfers, because);
    }
    let no_calls = (submissions == 0 && has_work)
        .then(|| "the trace does not have the calls that submitted the work".to_owned())
        .map(|because| (because, false));
    let without_submissions = no_calls
        .clone()
        .or_else(|| lost(&[HostCallsOfWork, Submissions]));
    if let Some(because) = without_submissions {
        add(Count::Submissions, submissions, because);
    }
    // Launches of CUDA and HIP without graphs are in no command buffer.
    let launches = manifest
        .devices
        .iter()
        .all(|device| matches!(device.api, Api::Cuda | Api::Hip));
    let without_command_buffers = match (command_buffers, has_work) {
        (0, true) if !launches => {
            let because = "the trace does not say in which command buffers the work was";
            Some((because.to_owned(), false))
        }
        (0, true) => no_calls,
        _ => None,
    };
    let kinds = [
        CommandBuffers,
        CommandBufferRows,
        GraphLaunches,
        CudaActivities,
        CudaActivitiesAtSuddenEnd,
        DroppedCudaActivities,
    ];
    if let Some(because) = without_command_buffers.or_else(|| lost(&kinds)) {
        add(Count::CommandBuffers, command_buffers, because);
    }
    unknown.retain(|unknown| unknown.at_least.is_none() || !timeline.is_filtered());
    unknown
}

impl Count {
    /// Returns the count of a table's rows; `None` for tables whose rows are not counted.
    pub fn of_table(table: &str) -> Option<Count> {
        use gapscope_trace::tables::{CommandBuffers, Dispatches, Submissions, Transfers};
        match table {
            Dispatches::NAME => Some(Count::Dispatches),
            CommandBuffers::NAME => Some(Count::CommandBuffers),
            Submissions::NAME => Some(Count::Submissions),
            Transfers::NAME => Some(Count::Transfers),
            _ => None,
        }
    }
}
