//! A profile as a gapscope trace.

use super::profile::{About, Gathered, Profile};
use super::{CommandBufferId, Sampling, host_now_ns};
use gapscope_trace::manifest::{
    Clock, ClockMethod, Device, Host, Loss, Manifest, Process, Queue, SamplingMode,
};
use gapscope_trace::tables::{
    CommandBuffer, Dispatch, Kernel, Label, NameSource, Submission, Table, Tables, Timing,
};
use gapscope_trace::{Trace, TraceWriter};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A trace could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Nothing that was recorded has a place in time: there are sums of labels at most.
    #[error(
        "no command buffer or dispatch of known time was recorded, so there is nothing to draw in time"
    )]
    NothingInTime,
    /// The folder cannot be written.
    #[error(transparent)]
    Write(#[from] gapscope_trace::Error),
}

impl Profile {
    /// Writes a gapscope trace to the folder `path`, which must not exist: `gapscope report` and `gapscope view` open
    /// it. It holds the command buffers and dispatches that are kept as rows and whose times are known on the host's
    /// clock; sums of labels ([`Profile::record`]) are counted as what it lacks. Nothing is forgotten.
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
    let mut tables = Tables::default();
    let mut losses = merged.ledger.clone();
    let mut labels = Names::default();
    let mut queues = Names::default();
    let mut kernels = Names::default();
    let mut command_buffers: FxHashMap<CommandBufferId, u64> = FxHashMap::default();
    let mut queue_of: FxHashMap<CommandBufferId, u32> = FxHashMap::default();
    for row in &merged.command_buffers {
        let entry = &row.entry;
        let id = tables.command_buffers.len() as u64;
        let queue = queues.id(&entry.queue);
        if let Some(command_buffer) = entry.id {
            command_buffers.insert(command_buffer, id);
            queue_of.insert(command_buffer, queue);
        }
        let label = (!entry.label.is_empty()).then(|| labels.id(&entry.label));
        let interval = row.interval();
        if let Some(begin_ns) = entry.submitted_ns {
            tables.submissions.push(Submission {
                id,
                queue,
                begin_ns: signed(begin_ns),
                end_ns: signed(begin_ns),
                command_buffers: 1,
                ..Submission::default()
            });
        }
        tables.command_buffers.push(CommandBuffer {
            id,
            queue,
            submission: id,
            start_ns: interval.map(|(start, _)| signed(start)),
            duration_ns: interval.map(|(start, end)| signed(end.saturating_sub(start))),
            seen_ns: entry.seen_ns.map(signed),
            timing: if interval.is_some() {
                Timing::Measured
            } else {
                Timing::Unknown
            },
            dispatches: entry.dispatches,
            label,
            name: (!entry.label.is_empty()).then(|| entry.label.to_string()),
            ..CommandBuffer::default()
        });
    }
    let mut outside = 0;
    for row in &merged.dispatches {
        let Some(id) = row
            .command_buffer
            .and_then(|id| command_buffers.get(&id).copied())
        else {
            outside += 1;
            continue;
        };
        let queue = row.command_buffer.and_then(|id| queue_of.get(&id).copied());
        let interval = row.interval();
        let [groups_x, groups_y, groups_z] = each(row.groups);
        let kernel = kernels.id_of(row.name(), row.group_size);
        tables.dispatches.push(Dispatch {
            command_buffer: Some(id),
            position: row.dispatch_index,
            queue: queue.unwrap_or(0),
            kernel,
            start_ns: interval.map(|(start, _)| signed(start)),
            duration_ns: row.duration_ns().map(signed),
            groups_x,
            groups_y,
            groups_z,
            label: (!row.cb_label.is_empty()).then(|| labels.id(&row.cb_label)),
            ..Dispatch::default()
        });
    }
    let unsubmitted = tables.command_buffers.len() - tables.submissions.len();
    losses.add(
        "submissions",
        unsubmitted as u64,
        "when the command buffer was submitted was not recorded",
    );
    losses.add(
        "dispatches",
        outside,
        "their command buffer was not recorded, so their place in time is not known",
    );
    let rows: u64 = merged
        .command_buffers
        .iter()
        .filter(|r| r.interval().is_some())
        .count() as u64;
    let summed: u64 = merged
        .labels
        .values()
        .filter_map(|a| a.entry())
        .map(|e| e.count)
        .sum();
    losses.add(
        "command buffers",
        summed.saturating_sub(rows),
        "only the sum of their times was recorded",
    );
    for (id, (name, group_size)) in kernels.names.iter().enumerate() {
        let [local_x, local_y, local_z] = each(*group_size);
        tables.kernels.push(Kernel {
            id: id as u32,
            name: if name.is_empty() {
                "unnamed".to_owned()
            } else {
                name.to_string()
            },
            name_source: NameSource::ObjectName,
            local_x,
            local_y,
            local_z,
            ..Kernel::default()
        });
    }
    for (id, (text, _)) in labels.names.iter().enumerate() {
        tables.labels.push(Label {
            id: id as u32,
            text: text.to_string(),
            parent: None,
        });
    }
    let Some((start_ns, end_ns)) = extent(&tables) else {
        return Err(TraceError::NothingInTime);
    };
    let mut manifest = manifest(&gathered.about, &queues, start_ns, end_ns);
    let loss = |loss: super::Loss| Loss {
        what: loss.what.into_owned(),
        count: loss.count,
        reason: loss.reason.into_owned(),
    };
    manifest.losses = losses.losses().into_iter().map(loss).collect();
    Ok(Trace { manifest, tables })
}

fn manifest(about: &About, queues: &Names, start_ns: i64, end_ns: i64) -> Manifest {
    let unix_ns = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as i64);
    let arguments: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let executable = std::env::current_exe().unwrap_or_default();
    let mut notes = vec![
        "The program measured this itself: host calls and dependencies are not known.".to_owned(),
    ];
    notes.extend(about.notes.iter().cloned());
    Manifest {
        gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
        command: arguments.clone(),
        sampling_mode: match about.sampling {
            Sampling::Dispatch => SamplingMode::Dispatch,
            Sampling::DispatchSerialised => SamplingMode::DispatchSerialised,
            Sampling::Pass => SamplingMode::Pass,
            Sampling::CommandBuffer | Sampling::None => SamplingMode::CommandBuffer,
        },
        start_ns,
        end_ns,
        start_unix_ns: unix_ns - (signed(host_now_ns()) - start_ns),
        host: Host {
            system: std::env::consts::OS.to_owned(),
            processor: std::env::consts::ARCH.to_owned(),
            cores: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        },
        processes: vec![Process {
            pid: std::process::id(),
            executable: executable.to_string_lossy().into_owned(),
            arguments,
            hook: "sdk".to_owned(),
            start_ns,
            ..Process::default()
        }],
        devices: vec![Device {
            api: about.device.api.clone(),
            name: about.device.name.clone(),
            driver: about.device.driver.clone(),
            clock: Clock {
                method: match (about.bounds, about.clock.pairs().len()) {
                    (Some(_), _) => ClockMethod::Brackets,
                    (None, 0) => ClockMethod::None,
                    (None, _) => ClockMethod::Calibrated,
                },
                error_ns: about.clock_error_ns().map(signed),
                samples: u32::try_from(about.clock_samples()).unwrap_or(u32::MAX),
                drift_ppm: None,
                nanoseconds_per_tick: about.clock.nanoseconds_per_tick().unwrap_or(0.0),
            },
            ..Device::default()
        }],
        queues: queues
            .names
            .iter()
            .enumerate()
            .map(|(id, (name, _))| Queue {
                id: id as u32,
                capabilities: vec!["compute".to_owned()],
                timestamp_bits: 64,
                name: (!name.is_empty()).then(|| name.to_string()),
                ..Queue::default()
            })
            .collect(),
        notes,
        ..Manifest::default()
    }
}

/// Texts, and kernels by text and size, with their ids.
#[derive(Default)]
struct Names {
    names: Vec<(Arc<str>, Option<[u32; 3]>)>,
    ids: FxHashMap<(Arc<str>, Option<[u32; 3]>), u32>,
}

impl Names {
    fn id(&mut self, text: &str) -> u32 {
        self.id_of(&Arc::from(text), None)
    }

    fn id_of(&mut self, text: &Arc<str>, size: Option<[u32; 3]>) -> u32 {
        let key = (Arc::clone(text), size);
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.names.push(key.clone());
        self.ids.insert(key, id);
        id
    }
}

/// From the first begin to the last end of what is known.
fn extent(tables: &Tables) -> Option<(i64, i64)> {
    let work = [
        (
            &tables.command_buffers.start_ns,
            &tables.command_buffers.duration_ns,
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

fn each(size: Option<[u32; 3]>) -> [Option<u32>; 3] {
    size.map_or([None; 3], |size| size.map(Some))
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}
