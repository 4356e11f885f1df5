//! A profile as a gapscope trace.

mod manifest;
mod names;
#[cfg(test)]
mod tests;

use super::profile::{Gathered, Profile};
use super::rows::{CommandBufferRow, DispatchRow, PassRow};
use super::shard::Of;
use super::{CommandBufferId, Sampling};
use gapscope_trace::tables::{
    CommandBuffer, Dispatch, Kernel, Marker, MarkerScope, NameSource, OpaqueWorkKind,
    OpaqueWorkRow, Submission, Table, Tables, Timing,
};
use gapscope_trace::{Trace, TraceWriter};
use names::{Ids, Labels};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;
use std::sync::Arc;

/// A trace could not be written.
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
    /// Nothing that was recorded has a place in time: there are sums of labels at most.
    #[error(
        "no command buffer, pass or dispatch of known time was recorded, so there is nothing to draw in time"
    )]
    NothingInTime,
    /// The folder cannot be written.
    #[error(transparent)]
    Write(#[from] gapscope_trace::Error),
}

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
        let mut writer = TraceWriter::create(path.as_ref())?;
        *writer.tables_mut() = trace.tables;
        Ok(writer.finish(&trace.manifest)?)
    }
}

fn trace(gathered: &Gathered) -> Result<Trace, TraceError> {
    let merged = &gathered.merged;
    let mut builder = Builder::default();
    for row in &merged.command_buffers {
        builder.command_buffer(row);
    }
    let work = match gathered.about.sampling {
        Sampling::Pass => as_work(&merged.passes, &merged.dispatches),
        _ => FxHashMap::default(),
    };
    for row in &merged.passes {
        let is_work = |id| {
            work.get(&id)
                .is_some_and(|w| w.binary_search(&place(row)).is_ok())
        };
        builder.pass(row, row.entry.command_buffer.is_some_and(is_work), &work);
    }
    for row in &merged.dispatches {
        builder.dispatch(row, &work);
    }
    builder.name_kernels();
    let Builder { tables, labels, .. } = &mut builder;
    labels.put_into(&mut tables.labels);
    let (start_ns, end_ns) = extent(&builder.tables).ok_or(TraceError::NothingInTime)?;
    let mut losses = merged.ledger.clone();
    let tables = &builder.tables;
    losses.add(
        "submissions",
        (tables.command_buffers.len() - tables.submissions.len()) as u64,
        "when the command buffer was submitted was not recorded",
    );
    for (what, outside) in [
        ("dispatches", builder.homeless_dispatches),
        ("passes", builder.homeless_passes),
    ] {
        let reason = "their command buffer was not recorded, so their place is not known";
        losses.add(what, outside, reason);
    }
    let timed = merged.command_buffers.iter();
    let timed = timed.filter(|row| row.interval().is_some()).count() as u64;
    let counts = merged.times(Of::Label).values();
    let summed: u64 = counts.filter_map(|a| a.entry()).map(|e| e.count).sum();
    losses.add(
        "command buffers",
        summed.saturating_sub(timed),
        "only the sum of their times was recorded",
    );
    let queues = builder.queues.texts();
    let mut manifest = manifest::of(&gathered.about, queues, start_ns, end_ns);
    manifest.losses = manifest::losses(&losses);
    Ok(Trace {
        manifest,
        tables: builder.tables,
    })
}

/// Where the passes stand that are work of their own, by command buffer and in order: those whose only dispatch has
/// its time are that dispatch.
type PassesAsWork = FxHashMap<CommandBufferId, Vec<(u32, u64)>>;

/// A pass's place among those of its command buffer; empty passes have the first dispatch of the next.
fn place(row: &PassRow) -> (u32, u64) {
    (row.entry.first_dispatch, row.sequence)
}

fn as_work(passes: &[PassRow], dispatches: &[DispatchRow]) -> PassesAsWork {
    let timed = dispatches.iter().filter(|d| d.duration_ns().is_some());
    let timed: FxHashSet<_> = timed
        .filter_map(|d| Some((d.command_buffer?, d.dispatch_index)))
        .collect();
    let mut work = PassesAsWork::default();
    for row in passes {
        let entry = &row.entry;
        let Some(id) = entry.command_buffer else {
            continue;
        };
        if entry.dispatches != 1 || !timed.contains(&(id, entry.first_dispatch)) {
            work.entry(id).or_default().push(place(row));
        }
    }
    for places in work.values_mut() {
        places.sort_unstable();
    }
    work
}

/// A command buffer in the trace.
#[derive(Clone, Copy)]
struct Home {
    id: u64,
    queue: u32,
    label: Option<u32>,
}

#[derive(Default)]
struct Builder {
    tables: Tables,
    labels: Labels,
    queues: Ids<Arc<str>>,
    kernels: Ids<(Arc<str>, Option<[u32; 3]>)>,
    homes: FxHashMap<CommandBufferId, Home>,
    homeless_dispatches: u64,
    homeless_passes: u64,
}

impl Builder {
    fn command_buffer(&mut self, row: &CommandBufferRow) {
        let entry = &row.entry;
        let id = self.tables.command_buffers.len() as u64;
        let queue = self.queues.id(Arc::from(&*entry.queue));
        let label = self.labels.id(None, &entry.label);
        if let Some(command_buffer) = entry.id {
            let home = Home { id, queue, label };
            self.homes.insert(command_buffer, home);
        }
        if let Some(begin_ns) = entry.submitted_ns {
            self.tables.submissions.push(Submission {
                id,
                queue,
                begin_ns: signed(begin_ns),
                end_ns: signed(begin_ns),
                command_buffers: 1,
                ..Submission::default()
            });
        }
        let (start_ns, duration_ns) = times(row.interval());
        self.tables.command_buffers.push(CommandBuffer {
            id,
            queue,
            submission: id,
            start_ns,
            duration_ns,
            seen_ns: entry.seen_ns.map(signed),
            timing: match start_ns {
                Some(_) => Timing::Measured,
                None => Timing::Unknown,
            },
            dispatches: entry.dispatches,
            label,
            name: (!entry.label.is_empty()).then(|| entry.label.to_string()),
            ..CommandBuffer::default()
        });
    }

    fn home(&self, command_buffer: Option<CommandBufferId>) -> Option<Home> {
        self.homes.get(&command_buffer?).copied()
    }

    fn pass(&mut self, row: &PassRow, is_work: bool, work: &PassesAsWork) {
        let entry = &row.entry;
        let (Some(home), Some(command_buffer)) =
            (self.home(entry.command_buffer), entry.command_buffer)
        else {
            self.homeless_passes += 1;
            return;
        };
        let around = (home.label).or_else(|| self.labels.id(None, &entry.cb_label));
        let label = self.labels.id(around, &entry.label);
        let (start_ns, duration_ns) = times(row.interval());
        if is_work {
            let before = work[&command_buffer].partition_point(|p| *p < place(row));
            self.tables.opaque_work.push(OpaqueWorkRow {
                command_buffer: Some(home.id),
                position: entry.first_dispatch + before as u32,
                queue: home.queue,
                kind: OpaqueWorkKind::ComputePass,
                start_ns,
                duration_ns,
                label,
                ..OpaqueWorkRow::default()
            });
        } else if let (Some(label), false) = (label, entry.label.is_empty()) {
            self.tables.markers.push(Marker {
                scope: MarkerScope::CommandBuffer,
                label,
                queue: Some(home.queue),
                command_buffer: Some(home.id),
                start_ns,
                duration_ns,
                ..Marker::default()
            });
        }
    }

    fn dispatch(&mut self, row: &DispatchRow, work: &PassesAsWork) {
        let (Some(home), Some(command_buffer)) =
            (self.home(row.command_buffer), row.command_buffer)
        else {
            self.homeless_dispatches += 1;
            return;
        };
        // Where the operation names the kernel it is no label around it.
        let operation = if row.kernel.is_empty() {
            ""
        } else {
            &row.op_kind
        };
        let passes = work.get(&command_buffer);
        let index = row.dispatch_index;
        let before = passes.map_or(0, |p| p.partition_point(|(first, _)| *first <= index));
        let around = (home.label).or_else(|| self.labels.id(None, &row.cb_label));
        let kernel = (Arc::clone(row.name()), row.group_size);
        let [groups_x, groups_y, groups_z] = each(row.groups);
        self.tables.dispatches.push(Dispatch {
            command_buffer: Some(home.id),
            position: index + before as u32,
            queue: home.queue,
            kernel: self.kernels.id(kernel),
            start_ns: row.start_ns().map(signed),
            duration_ns: row.duration_ns().map(signed),
            groups_x,
            groups_y,
            groups_z,
            label: self.labels.id(around, operation),
            ..Dispatch::default()
        });
    }

    fn name_kernels(&mut self) {
        for (id, (name, group_size)) in self.kernels.texts().iter().enumerate() {
            let [local_x, local_y, local_z] = each(*group_size);
            self.tables.kernels.push(Kernel {
                id: id as u32,
                name: match name.is_empty() {
                    true => "unnamed".to_owned(),
                    false => name.to_string(),
                },
                name_source: NameSource::ObjectName,
                local_x,
                local_y,
                local_z,
                ..Kernel::default()
            });
        }
    }
}

/// From the first begin to the last end of what is known.
fn extent(tables: &Tables) -> Option<(i64, i64)> {
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
            Some(((*start)?, (*start)?.saturating_add((*duration)?)))
        })
    });
    let submitted = tables.submissions.begin_ns.iter().map(|at| (*at, *at));
    let extent = |(a, b): (i64, i64), (c, d): (i64, i64)| (a.min(c), b.max(d));
    let known = known.reduce(extent)?;
    Some(submitted.fold(known, extent))
}

/// Begin and duration.
fn times(interval: Option<(u64, u64)>) -> (Option<i64>, Option<i64>) {
    match interval {
        Some((start, end)) => (Some(signed(start)), Some(signed(end.saturating_sub(start)))),
        None => (None, None),
    }
}

fn each(size: Option<[u32; 3]>) -> [Option<u32>; 3] {
    size.map_or([None; 3], |size| size.map(Some))
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
