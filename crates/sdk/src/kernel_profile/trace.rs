//! Writes a profile as a gapscope trace. Command buffers come first, since passes and dispatches find their place
//! (queue and position) by them; what has no place is a loss.

mod builder;
mod manifest;
mod pass_order;
#[cfg(test)]
mod tests;

use super::Profile;
use super::contents::ProfileContents;
use super::shard::TimedKind;
use builder::Builder;
use gapscope_model::LossKind;
use gapscope_trace::tables::{Table, Tables};
use gapscope_trace::{Trace, TraceWriter};
use pass_order::PassesAsWork;
use std::path::Path;

/// An error of writing a trace.
///
/// ```
/// use gapscope_sdk::kernel_profile::{Profile, TraceError};
///
/// let nothing = Profile::new().write_trace("empty.gapscope");
/// assert!(matches!(nothing, Err(TraceError::NothingInTime)));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// No recorded entry has a place in time: at most there are sums of labels.
    #[error(
        "no command buffer, pass or dispatch of known time was recorded, so there is nothing to draw in time"
    )]
    NothingInTime,
    /// The folder cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// An error of writing the files of a trace, whose text says what failed and where.
///
/// ```
/// use gapscope_sdk::kernel_profile::{TraceError, WriteError};
///
/// fn said(why: WriteError) -> String {
///     TraceError::from(why).to_string()
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct WriteError(gapscope_trace::Error);

impl Profile {
    /// Writes a gapscope trace to the folder `path`, which must not exist: `gapscope report` and `gapscope view` open
    /// it. It holds what is kept as rows: command buffers, their dispatches, and their passes, as work where only
    /// passes were timed, and else as markers. Sums of labels ([`Profile::record`]) are counted as what it lacks.
    /// Nothing is forgotten.
    ///
    /// # Errors
    /// There is nothing to write, or the folder exists or cannot be written.
    ///
    /// ```
    /// use gapscope_sdk::kernel_profile::{CommandBufferEntry, Profile};
    ///
    /// # let folder = std::env::temp_dir().join(format!("gapscope-doc-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).unwrap();
    /// # let path = folder.join("profile.gapscope");
    /// let profile = Profile::new();
    /// profile.record_command_buffer(CommandBufferEntry {
    ///     label: "step".into(),
    ///     start_ns: Some(1_000),
    ///     end_ns: Some(2_000),
    ///     ..CommandBufferEntry::default()
    /// });
    /// profile.write_trace(&path).unwrap(); // gapscope report profile.gapscope
    /// # std::fs::remove_dir_all(&folder).unwrap();
    /// ```
    pub fn write_trace(&self, path: impl AsRef<Path>) -> Result<(), TraceError> {
        let trace = trace(&self.gather())?;
        let mut writer = TraceWriter::create(path.as_ref()).map_err(WriteError)?;
        *writer.tables_mut() = trace.tables;
        Ok(writer.finish(&trace.manifest).map_err(WriteError)?)
    }
}

/// Returns the trace of a profile's content.
fn trace(contents: &ProfileContents) -> Result<Trace, TraceError> {
    let merged = &contents.merged;
    let mut builder = Builder::default();
    for row in &merged.command_buffers {
        builder.command_buffer(row);
    }
    let work = PassesAsWork::collect(contents);
    for row in &merged.passes {
        builder.pass(row, &work);
    }
    for row in &merged.scopes {
        builder.scope(row);
    }
    for row in &merged.dispatches {
        builder.dispatch(row, &work);
    }
    builder.finish();
    let extent = Extent::covering(&builder.tables).ok_or(TraceError::NothingInTime)?;
    let mut losses = merged.ledger.clone();
    let tables = &builder.tables;
    losses.add(
        LossKind::Submissions,
        (tables.command_buffers.len() - tables.submissions.len()) as u64,
        "when the command buffer was submitted was not recorded",
    );
    for (kind, unplaced) in [
        (LossKind::Dispatches, builder.unplaced_dispatches),
        (LossKind::Passes, builder.unplaced_passes),
        (LossKind::Scopes, builder.unplaced_scopes),
    ] {
        let reason = "their command buffer was not recorded, so their place is not known";
        losses.add(kind, unplaced, reason);
    }
    let timed = merged.command_buffers.iter();
    let timed = timed.filter(|row| row.interval().is_some()).count() as u64;
    let counts = merged.times(TimedKind::Label).values();
    let summed: u64 = counts.filter_map(|a| a.entry()).map(|e| e.count).sum();
    losses.add(
        LossKind::CommandBuffers,
        summed.saturating_sub(timed),
        "only the sum of their times was recorded",
    );
    let manifest = manifest::build(&contents.info, &builder.queues, extent, losses.losses());
    Ok(Trace {
        manifest,
        tables: builder.tables,
        unread: Vec::new(),
    })
}

/// The interval from the first start to the last end.
#[derive(Clone, Copy)]
struct Extent {
    start_ns: i64,
    end_ns: i64,
}

impl Extent {
    /// Returns the interval of all work with known times and of all submissions; `None` without such work.
    fn covering(tables: &Tables) -> Option<Extent> {
        let work = [
            (
                &tables.command_buffers.start_ns,
                &tables.command_buffers.duration_ns,
            ),
            (
                &tables.opaque_work.start_ns,
                &tables.opaque_work.duration_ns,
            ),
            (&tables.dispatches.start_ns, &tables.dispatches.duration_ns),
        ];
        let known = work.iter().flat_map(|(starts, durations)| {
            let rows = starts.iter().zip(durations.iter());
            rows.filter_map(|(start, duration)| {
                let start_ns = start?;
                let end_ns = start_ns.saturating_add(duration?);
                Some(Extent { start_ns, end_ns })
            })
        });
        let known = known.reduce(Extent::hull)?;
        let submitted = tables.submissions.start_ns.iter().map(|at| Extent {
            start_ns: *at,
            end_ns: *at,
        });
        Some(submitted.fold(known, Extent::hull))
    }

    /// Returns the interval from the earlier start to the later end.
    fn hull(self, other: Extent) -> Extent {
        Extent {
            start_ns: self.start_ns.min(other.start_ns),
            end_ns: self.end_ns.max(other.end_ns),
        }
    }
}

/// Converts a time to the type of tables.
fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
