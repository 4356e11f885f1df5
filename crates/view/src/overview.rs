//! The overview: all that the first drawing needs.

use crate::answers::cut_texts;
use crate::places::{Gpus, Group, process_group, queue_name, thread_name};
use crate::snapshot::Snapshot;
use crate::track::TrackId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gapscope_trace::TableSize;
use gapscope_trace::ids::{DeviceId, ProcessId, QueueId, ThreadId};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A track as the page is told of it.
#[derive(Debug, Clone, Serialize)]
pub struct Track {
    pub id: String,
    pub group: String,
    pub kind: &'static str,
    pub name: String,
    /// Absent where that takes an analysis.
    pub rows: Option<u64>,
    pub untimed: u64,
    pub queue: Option<QueueId>,
    pub process: Option<ProcessId>,
    pub thread: Option<ThreadId>,
    pub unit: Option<&'static str>,
    pub busy: Option<String>,
}

/// Puts overviews of traces together; `program` is what the ranks of one program and one clock are called as a whole.
pub fn together(traces: Vec<Value>, program: Option<&str>, file: Value) -> Value {
    json!({
        "protocol": 1,
        "gapscope": env!("CARGO_PKG_VERSION"),
        "file": file,
        "traces": traces,
        "together": program,
        "bins": crate::survey::BINS,
    })
}

/// What the page is told of a trace first.
pub fn overview(snapshot: &Snapshot, name: &str, sizes: &[TableSize]) -> Value {
    let manifest = &snapshot.trace.manifest;
    let (groups, tracks) = layout(snapshot);
    let tables: Vec<Value> = sizes
        .iter()
        .map(|size| json!({"name": size.table, "rows": size.rows, "bytes": size.bytes}))
        .collect();
    let errors = manifest.devices.iter().map(|device| device.clock.error_ns);
    let clock_error_ns = errors.reduce(|a, b| Some(a?.max(b?))).flatten();
    let remarks: Vec<String> = manifest
        .notes
        .iter()
        .chain(&snapshot.remarks)
        .map(|text| crate::texts::cut(text))
        .collect();
    let extent = snapshot.survey.extent;
    let (mut told, mut losses) = (json!(manifest), json!(manifest.losses));
    cut_texts(&mut told);
    cut_texts(&mut losses);
    json!({
        "name": name,
        "generation": snapshot.generation,
        "edition": snapshot.edition,
        "live": snapshot.live,
        "complete": manifest.complete,
        "origin_ns": snapshot.origin_ns.to_string(),
        "start_unix_ns": manifest.start_unix_ns.map(|ns| ns.to_string()),
        "duration_ns": (manifest.end_ns > manifest.start_ns).then(|| manifest.end_ns.saturating_sub(manifest.start_ns)),
        "extent": [extent.start_ns, extent.end_ns],
        "sampling_mode": manifest.sampling_mode,
        "clock_error_ns": clock_error_ns,
        "manifest": told,
        "tables": tables,
        "losses": losses,
        "remarks": remarks,
        "groups": groups,
        "tracks": tracks,
    })
}

/// The groups and tracks of a trace in the order in which they are drawn.
pub fn layout(snapshot: &Snapshot) -> (Vec<Group>, Vec<Track>) {
    let trace = &snapshot.trace;
    let manifest = &trace.manifest;
    let gpus = Gpus::of(manifest);
    let surveyed = &snapshot.survey.tracks;
    let submitted: BTreeSet<QueueId> = trace.tables.submissions.queue.iter().copied().collect();
    let mut queues: BTreeSet<QueueId> = manifest.queues.iter().map(|queue| queue.id).collect();
    queues.extend(&submitted);
    let mut processes: BTreeSet<ProcessId> = manifest
        .processes
        .iter()
        .map(|process| process.id)
        .collect();
    for track in surveyed {
        match track.id {
            TrackId::Work(queue)
            | TrackId::CommandBuffers(queue)
            | TrackId::Labels(queue)
            | TrackId::QueueLabels(queue) => {
                queues.insert(queue);
            }
            TrackId::Calls(of) | TrackId::ThreadLabels(of) => {
                processes.insert(of.process);
            }
            TrackId::Depth(_) | TrackId::Gaps(_) | TrackId::Memory(_) => {}
        }
    }
    let memory: BTreeSet<DeviceId> = trace.tables.memory.device.iter().copied().collect();
    let memory: BTreeSet<usize> = memory
        .into_iter()
        .map(|device| gpus.of_device(device))
        .collect();
    let (mut groups, mut tracks) = (Vec::new(), Vec::new());
    for gpu in 0..=gpus.count() {
        let before = tracks.len();
        let group = gpus.group(gpu);
        let mut worked = false;
        for queue in queues
            .iter()
            .copied()
            .filter(|queue| gpus.of_queue(manifest, *queue) == gpu)
        {
            let name = queue_name(manifest, queue);
            let kinds = [
                (TrackId::Work(queue), String::new()),
                (
                    TrackId::CommandBuffers(queue),
                    " · command buffers".to_owned(),
                ),
                (TrackId::Labels(queue), " · labels".to_owned()),
                (
                    TrackId::QueueLabels(queue),
                    " · labels set by the host".to_owned(),
                ),
            ];
            for (id, what) in kinds {
                if let Some(track) = surveyed_track(snapshot, id, &group, format!("{name}{what}")) {
                    worked |= matches!(id, TrackId::Work(_)) && track.rows > Some(0);
                    tracks.push(track);
                }
            }
            if submitted.contains(&queue) {
                let id = TrackId::Depth(queue);
                tracks.push(track(
                    id,
                    &group,
                    format!("{name} · submissions outstanding"),
                ));
            }
        }
        if worked {
            let id = TrackId::Gaps(gpu as u32);
            tracks.insert(before, track(id, &group, "gaps by cause".to_owned()));
        }
        if memory.contains(&gpu) && gpu < gpus.count() {
            let id = TrackId::Memory(gpu as u32);
            tracks.push(track(id, &group, "device memory allocated".to_owned()));
        }
        if tracks.len() > before {
            groups.push(group);
        }
    }
    for process in processes {
        let before = tracks.len();
        let group = process_group(manifest, process);
        for found in surveyed {
            let (thread, what) = match found.id {
                TrackId::Calls(of) if of.process == process => (of, ""),
                TrackId::ThreadLabels(of) if of.process == process => (of, " · labels"),
                _ => continue,
            };
            let name = thread_name(manifest, thread);
            tracks.extend(surveyed_track(
                snapshot,
                found.id,
                &group,
                format!("{name}{what}"),
            ));
        }
        // Calls and labels of one thread stand together.
        tracks[before..].sort_by_key(|track| (track.thread, track.kind));
        if tracks.len() > before {
            groups.push(group);
        }
    }
    (groups, tracks)
}

fn surveyed_track(snapshot: &Snapshot, id: TrackId, group: &Group, name: String) -> Option<Track> {
    let found = snapshot.survey.tracks.iter().find(|track| track.id == id)?;
    Some(Track {
        rows: Some(found.rows),
        untimed: found.untimed,
        busy: Some(STANDARD.encode(&found.busy)),
        ..track(id, group, name)
    })
}

fn track(id: TrackId, group: &Group, name: String) -> Track {
    let (queue, process, thread) = match id {
        TrackId::Work(queue)
        | TrackId::CommandBuffers(queue)
        | TrackId::Labels(queue)
        | TrackId::QueueLabels(queue)
        | TrackId::Depth(queue) => (Some(queue), None, None),
        TrackId::Calls(of) | TrackId::ThreadLabels(of) => (None, Some(of.process), of.thread),
        TrackId::Gaps(_) | TrackId::Memory(_) => (None, None, None),
    };
    Track {
        id: id.to_string(),
        group: group.id.clone(),
        kind: id.kind(),
        name,
        rows: None,
        untimed: 0,
        queue,
        process,
        thread,
        unit: match id {
            TrackId::Memory(_) => Some("bytes"),
            TrackId::Depth(_) => Some("count"),
            _ => None,
        },
        busy: None,
    }
}
