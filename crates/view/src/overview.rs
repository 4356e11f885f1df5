//! Makes the overview of a trace: its groups and tracks, and all else that the first drawing needs. A group is a GPU,
//! a process or the host; a track is a line of the drawing inside of a group, such as the work of one queue.

use crate::density_index::{CallKinds, TrackDensity};
use crate::protocol::LossLine;
use crate::protocol::{
    CallFacts, CounterFacts, Group, TableFacts, TraceOverview, Track, cut_texts,
};
use crate::snapshot::Snapshot;
use crate::stack_samples;
use crate::texts::{Texts, cut};
use crate::track::TrackId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gapscope_analysis::code::CodeSource;
use gapscope_analysis::gaps::Cause;
use gapscope_timeline::counters::{self, Counter, CounterOwner};
use gapscope_timeline::quantity;
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_trace::TableSize;
use gapscope_trace::ids::{ProcessId, QueueId};
use gapscope_trace::tables::HostCallKind;
use std::collections::{BTreeSet, HashMap};

/// Returns the facts about each kind of host call, and about each function that was called.
fn calls(snapshot: &Snapshot) -> Vec<CallFacts> {
    let facts = |name: &str, call: HostCallKind| CallFacts {
        name: name.to_owned(),
        call,
        // The cause that a poll explains depends on its result.
        cause: (!call.is_poll())
            .then(|| Cause::while_in(call))
            .filter(|cause| *cause != Cause::HostLate),
        waits: call.is_wait(),
    };
    let kinds = HostCallKind::ALL.iter();
    let kinds = kinds.map(|kind| facts(kind.as_str(), *kind));
    let functions = snapshot.called_functions();
    let functions = functions.map(|(name, kind)| facts(snapshot.texts.text(name), kind));
    kinds.chain(functions).collect()
}

/// Makes the overview of one trace.
pub fn overview(snapshot: &Snapshot, name: &str, sizes: &[TableSize]) -> TraceOverview {
    let manifest = &snapshot.trace.manifest;
    let (groups, tracks) = layout(snapshot);
    let tables = sizes.iter().map(|size| TableFacts {
        name: size.table,
        rows: size.rows,
        bytes: size.bytes,
    });
    let errors = manifest.devices.iter().map(|device| device.clock.error_ns);
    let remarks = manifest.notes.iter().chain(&snapshot.remarks);
    let extent = snapshot.density_index().extent;
    let api = snapshot.vocabulary.words().api;
    let losses = manifest.losses.iter().map(|loss| LossLine {
        text: quantity::loss(loss),
        loss: loss.clone(),
    });
    let losses: Vec<LossLine> = losses.collect();
    TraceOverview {
        name: name.to_owned(),
        generation: snapshot.generation,
        edition: snapshot.edition,
        live: snapshot.live,
        complete: manifest.complete,
        origin_ns: snapshot.origin_ns.to_string(),
        start_unix_ns: manifest.start_unix_ns.map(|ns| ns.to_string()),
        duration_ns: (manifest.end_ns > manifest.start_ns)
            .then(|| manifest.end_ns.saturating_sub(manifest.start_ns)),
        extent: [extent.start_ns, extent.end_ns],
        sampling_mode: manifest.sampling_mode,
        clock_error_ns: errors.reduce(|a, b| Some(a?.max(b?))).flatten(),
        manifest: cut_texts(manifest),
        tables: tables.collect(),
        losses: cut_texts(&losses),
        remarks: remarks.map(|text| cut(text)).collect(),
        unread: snapshot.trace.unread.clone(),
        causes: Cause::ALL.map(|cause| cause.facts(api)).to_vec(),
        transfer_names: Texts::of_transfers(),
        calls: calls(snapshot),
        groups,
        tracks,
        code: CodeSource::of_trace(&snapshot.trace),
        arranged: None,
    }
}

/// Returns the groups and tracks of a trace in the order in which they are drawn.
pub fn layout(snapshot: &Snapshot) -> (Vec<Group>, Vec<Track>) {
    let trace = &snapshot.trace;
    let manifest = &trace.manifest;
    let vocabulary = &snapshot.vocabulary;
    let words = vocabulary.words();
    let gpus = vocabulary.gpus();
    // Queues of no known device come last.
    let unknown = gpus.count();
    let densities = &snapshot.density_index().tracks;
    let mut queues: BTreeSet<QueueId> = manifest.queues.iter().map(|queue| queue.id).collect();
    let mut processes: BTreeSet<ProcessId> = manifest
        .processes
        .iter()
        .map(|process| process.id)
        .collect();
    let mut of_process: HashMap<ProcessId, Vec<TrackId>> = HashMap::new();
    for track in densities {
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
    for thread in stack_samples::threads(trace) {
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
    // A trace may have thousands of devices, queues and threads: nothing searches through all of them.
    let densities: HashMap<TrackId, &TrackDensity> = densities.iter().map(|t| (t.id, t)).collect();
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
                if let Some(track) = timed_track(&densities, id, &group, format!("{name}{what}")) {
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
            tracks.extend(timed_track(&densities, id, &group, format!("{name}{what}")));
        }
        // Calls and labels of one thread are neighbours.
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

/// Makes the track of a counter, whose values the page asks for later.
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

/// Makes a track with its busy shares; `None` where the trace has no rows for it.
fn timed_track(
    densities: &HashMap<TrackId, &TrackDensity>,
    id: TrackId,
    group: &Group,
    name: String,
) -> Option<Track> {
    let found = densities.get(&id)?;
    Some(Track {
        rows: Some(found.rows),
        untimed: found.untimed,
        only_call: match found.calls {
            CallKinds::Only(call) => Some(call),
            CallKinds::None | CallKinds::Several => None,
        },
        busy: Some(STANDARD.encode(&found.busy)),
        ..track(id, group, name)
    })
}

/// Makes a track without rows, with the queue, process and thread that its id names.
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
