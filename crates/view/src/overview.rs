//! The overview: all that the first drawing needs.

use crate::answers::cut_texts;
use crate::code;
use crate::groups::Group;
use crate::snapshot::Snapshot;
use crate::survey::{Kinds, Surveyed};
use crate::texts::cut;
use crate::track::TrackId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gapscope_analysis::gaps::Cause;
use gapscope_timeline::counters::{self, Counter, CounterOwner};
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_trace::TableSize;
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
use gapscope_trace::tables::{CounterUnit, HostCallKind};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};

/// A track, as `PROTOCOL.md` has it.
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
    pub counter: Option<CounterFacts>,
    /// The kind of all calls of a thread that makes calls of one kind only.
    pub only_call: Option<HostCallKind>,
    pub busy: Option<String>,
}

/// What a counter counts.
#[derive(Debug, Clone, Serialize)]
pub struct CounterFacts {
    pub name: String,
    pub unit: CounterUnit,
    /// Where the values come from.
    pub source: String,
}

/// A kind of host call.
#[derive(Debug, Clone, Serialize)]
struct CallFacts {
    call: HostCallKind,
    /// Why a device idles while the thread that is to submit is in such a call; absent of polls, and where that is the
    /// program's own code.
    cause: Option<Cause>,
    waits: bool,
}

fn calls() -> Vec<CallFacts> {
    let facts = |call: &HostCallKind| CallFacts {
        call: *call,
        // What polls explain depends on what they found.
        cause: (!call.is_poll())
            .then(|| Cause::while_in(*call))
            .filter(|cause| *cause != Cause::HostLate),
        waits: call.is_wait(),
    };
    HostCallKind::ALL.iter().map(facts).collect()
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

/// The overview of one trace.
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
        .map(|text| cut(text))
        .collect();
    let extent = snapshot.survey().extent;
    let api = snapshot.vocabulary.words().api;
    let causes = Cause::ALL.map(|cause| cause.facts(api));
    let (mut facts, mut losses) = (json!(manifest), json!(manifest.losses));
    cut_texts(&mut facts);
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
        "manifest": facts,
        "tables": tables,
        "losses": losses,
        "remarks": remarks,
        "unread": snapshot.trace.unread,
        "causes": causes,
        "calls": calls(),
        "groups": groups,
        "tracks": tracks,
    })
}

/// The groups and tracks of a trace in the order in which they are drawn.
pub fn layout(snapshot: &Snapshot) -> (Vec<Group>, Vec<Track>) {
    let trace = &snapshot.trace;
    let manifest = &trace.manifest;
    let vocabulary = &snapshot.vocabulary;
    let words = vocabulary.words();
    let gpus = vocabulary.gpus();
    // What belongs to no known device comes last.
    let unknown = gpus.count();
    let surveyed = &snapshot.survey().tracks;
    let mut queues: BTreeSet<QueueId> = manifest.queues.iter().map(|queue| queue.id).collect();
    let mut processes: BTreeSet<ProcessId> = manifest
        .processes
        .iter()
        .map(|process| process.id)
        .collect();
    let mut of_process: HashMap<ProcessId, Vec<TrackId>> = HashMap::new();
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
                of_process.entry(of.process).or_default().push(track.id);
            }
            TrackId::Gaps(_) | TrackId::Counter(_) | TrackId::Samples(_) => {}
        }
    }
    let mut samples: HashMap<TrackId, u64> = HashMap::new();
    for thread in code::threads(trace) {
        *samples.entry(TrackId::Samples(thread)).or_default() += 1;
    }
    for id in samples.keys() {
        if let TrackId::Samples(of) = id {
            processes.insert(of.process);
            of_process.entry(of.process).or_default().push(*id);
        }
    }
    let counters = counters::listed(trace, gpus);
    for counter in &counters {
        if let CounterOwner::Queue(queue) = counter.owner {
            queues.insert(queue);
        }
    }
    // A trace may have thousands of devices, queues and threads: nothing is looked for in all of them.
    let surveyed: HashMap<TrackId, &Surveyed> = surveyed.iter().map(|t| (t.id, t)).collect();
    let mut counters_by_owner: HashMap<CounterOwner, Vec<&Counter>> = HashMap::new();
    for counter in &counters {
        let of_owner = counters_by_owner.entry(counter.owner).or_default();
        of_owner.push(counter);
    }
    let counters_of = |owner: CounterOwner, group: &Group| -> Vec<Track> {
        let own = counters_by_owner.get(&owner).into_iter().flatten();
        own.map(|counter| counter_track(vocabulary, counter, group))
            .collect()
    };
    let mut of_gpu: HashMap<usize, Vec<QueueId>> = HashMap::new();
    for queue in queues {
        let gpu = gpus.of_queue(queue).unwrap_or(unknown);
        of_gpu.entry(gpu).or_default().push(queue);
    }
    let (mut groups, mut tracks) = (Vec::new(), Vec::new());
    for gpu in 0..=unknown {
        let before = tracks.len();
        let group = Group::gpu(vocabulary, gpu);
        let mut worked = false;
        for queue in of_gpu.remove(&gpu).unwrap_or_default() {
            let name = cut(&vocabulary.queue(queue));
            let kinds = [
                (TrackId::Work(queue), String::new()),
                (
                    TrackId::CommandBuffers(queue),
                    format!(" · {}", words.command_buffer.many),
                ),
                (TrackId::Labels(queue), " · labels".to_owned()),
                (
                    TrackId::QueueLabels(queue),
                    " · labels set by the host".to_owned(),
                ),
            ];
            for (id, what) in kinds {
                if let Some(track) = surveyed_track(&surveyed, id, &group, format!("{name}{what}"))
                {
                    worked |= matches!(id, TrackId::Work(_)) && track.rows > Some(0);
                    tracks.push(track);
                }
            }
            tracks.extend(counters_of(CounterOwner::Queue(queue), &group));
        }
        if worked {
            let id = TrackId::Gaps(gpu as u32);
            tracks.insert(before, track(id, &group, "gaps by cause".to_owned()));
        }
        tracks.extend(counters_of(CounterOwner::Gpu(gpu), &group));
        if tracks.len() > before {
            groups.push(group);
        }
    }
    for process in processes {
        let before = tracks.len();
        let group = Group::process(vocabulary, process);
        for id in of_process.remove(&process).unwrap_or_default() {
            let (thread, what) = match id {
                TrackId::Calls(of) => (of, ""),
                TrackId::ThreadLabels(of) => (of, " · labels"),
                TrackId::Samples(of) => (of, " · code"),
                _ => continue,
            };
            let name = cut(&vocabulary.thread(thread.process, thread.thread));
            if let Some(rows) = samples.get(&id) {
                tracks.push(Track {
                    rows: Some(*rows),
                    ..track(id, &group, format!("{name}{what}"))
                });
                continue;
            }
            tracks.extend(surveyed_track(
                &surveyed,
                id,
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
    let host = Group::host();
    let of_host = counters_of(CounterOwner::Host, &host);
    if !of_host.is_empty() {
        groups.push(host);
        tracks.extend(of_host);
    }
    (groups, tracks)
}

fn counter_track(vocabulary: &Vocabulary, counter: &Counter, group: &Group) -> Track {
    let queue = match counter.owner {
        CounterOwner::Queue(queue) => Some(queue),
        CounterOwner::Gpu(_) | CounterOwner::Host => None,
    };
    let name = match queue {
        Some(queue) => format!("{} · {}", vocabulary.queue(queue), counter.name),
        None => counter.name.clone(),
    };
    Track {
        queue,
        counter: Some(CounterFacts {
            name: cut(&counter.name),
            unit: counter.unit,
            source: cut(&counter.source),
        }),
        ..track(TrackId::Counter(counter.key), group, cut(&name))
    }
}

fn surveyed_track(
    surveyed: &HashMap<TrackId, &Surveyed>,
    id: TrackId,
    group: &Group,
    name: String,
) -> Option<Track> {
    let found = surveyed.get(&id)?;
    Some(Track {
        rows: Some(found.rows),
        untimed: found.untimed,
        only_call: match found.calls {
            Kinds::Only(call) => Some(call),
            Kinds::None | Kinds::Several => None,
        },
        busy: Some(STANDARD.encode(&found.busy)),
        ..track(id, group, name)
    })
}

fn track(id: TrackId, group: &Group, name: String) -> Track {
    let (queue, process, thread) = match id {
        TrackId::Work(queue)
        | TrackId::CommandBuffers(queue)
        | TrackId::Labels(queue)
        | TrackId::QueueLabels(queue) => (Some(queue), None, None),
        TrackId::Calls(of) | TrackId::ThreadLabels(of) | TrackId::Samples(of) => {
            (None, Some(of.process), of.thread)
        }
        TrackId::Gaps(_) | TrackId::Counter(_) => (None, None, None),
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
        counter: None,
        only_call: None,
        busy: None,
    }
}
