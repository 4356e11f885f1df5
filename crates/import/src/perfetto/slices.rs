//! Converts track events to rows: slices (intervals on a track) of host threads to calls and markers, slices of GPUs
//! to work, and values to counters. [`Slices::add`] takes events in the order of the file, then [`Slices::complete`].

use super::build::{Builder, OwnCall};
use super::first_pass::TrackPlace;
use super::track_event::{Detail, Event, GpuCategory, Step, gpu_category};
use super::work::{CommandBufferKey, Work, WorkRow};
use crate::inventory::KernelFacts;
use crate::{doubtful_times, functions, transfers};
use gapscope_model::Span;
use gapscope_timeline_builder::{TransferFacts, WorkPlace, rows};
use gapscope_trace::LossKind;
use gapscope_trace::ids::*;
use gapscope_trace::tables::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A slice that has begun and not ended.
struct OpenSlice {
    event: Event,
    /// The label of the slice, nested in the labels of the slices around it; `None` if the slice is no marker.
    label: Option<LabelId>,
}

/// The state of all tracks: the slices that are open, and the sums of counters.
#[derive(Default)]
pub(super) struct Slices {
    /// The open slices of each track, outermost first.
    open: FxHashMap<u64, Vec<OpenSlice>>,
    /// Slices that overlap others without nesting, by category and id.
    overlapping: FxHashMap<(Arc<str>, u64), Vec<OpenSlice>>,
    /// The events of tracks that several sequences write, which are sorted at the end of the file.
    waiting: Vec<Event>,
    /// The place of each track that was met.
    places: FxHashMap<u64, TrackPlace>,
    /// The submissions of flows whose call was already read.
    taken: FxHashSet<SubmissionId>,
    /// The sums of counters that are written as differences.
    sums: FxHashMap<u64, f64>,
}

impl Slices {
    /// Adds an event, or keeps it back when its track's events are unordered.
    pub fn add(&mut self, event: Event, builder: &mut Builder) {
        if builder.first_pass.has_many_writers(event.track) {
            self.waiting.push(event);
        } else {
            self.apply(event, builder);
        }
    }

    /// Reads the events that were kept back, and counts the slices that never ended as a loss.
    pub fn complete(&mut self, builder: &mut Builder) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_by_key(|event| event.at_ns);
        for event in waiting {
            self.apply(event, builder);
        }
        let open = self.open.values().chain(self.overlapping.values());
        let open: usize = open.map(Vec::len).sum();
        let reason = "the file ends before they do";
        builder.inventory.lose("slices", open as u64, reason);
    }

    /// Opens, ends or completes a slice, or writes a value of a counter.
    fn apply(&mut self, event: Event, builder: &mut Builder) {
        let reason = "values beside those of the event's own counter are not read";
        let extra = event.extra_values;
        builder.inventory.lose("values of counters", extra, reason);
        match event.step {
            Step::Begin => {
                let label = self.label(&event, builder);
                let open = self.open.entry(event.track).or_default();
                open.push(OpenSlice { event, label });
            }
            Step::BeginAsync(id) => {
                let label = self.label(&event, builder);
                let key = (event.category.clone(), id);
                let open = self.overlapping.entry(key).or_default();
                open.push(OpenSlice { event, label });
            }
            Step::End => {
                let open = self.open.get_mut(&event.track).and_then(Vec::pop);
                self.end(open, event.is_timed.then_some(event.at_ns), builder);
            }
            Step::EndAsync(id) => {
                let open = self.overlapping.get_mut(&(event.category.clone(), id));
                let open = open.and_then(Vec::pop);
                self.end(open, event.is_timed.then_some(event.at_ns), builder);
            }
            Step::Instant => self.whole(event, 0, builder),
            Step::Complete(duration_ns) => self.whole(event, duration_ns, builder),
            Step::Counter(value) => self.counter(&event, value, builder),
            Step::Other => {
                let reason = "they are of a kind that gapscope does not know";
                builder.inventory.lose("track events", 1, reason);
            }
        }
    }

    /// Returns the process, thread and names of a track.
    fn place(&mut self, track: u64, builder: &Builder) -> &TrackPlace {
        let place = self.places.entry(track);
        place.or_insert_with(|| builder.first_pass.place(track))
    }

    /// Returns the label of a slice that becomes a marker; `None` for other slices.
    fn label(&mut self, event: &Event, builder: &mut Builder) -> Option<LabelId> {
        let open = self.open.get(&event.track);
        let around = open.and_then(|open| open.iter().rev().find_map(|open| open.label));
        let around = around.filter(|_| !matches!(event.step, Step::BeginAsync(_)));
        let is_call = event.category.as_ref() == "host call"
            || event.category.as_ref() == "launch"
            || event.category.as_ref() == "gap"
            || event.category.as_ref() == "command buffer"
            || gpu_category(&event.category).is_some()
            || self.place(event.track, builder).is_gpu
            || functions::host_call_kind(&event.name).is_some();
        if is_call {
            return None;
        }
        // gapscope's own exports contain the whole path of a label.
        match event.text("label").filter(|_| &*event.category == "label") {
            Some(path) => Some(builder.label_of_path(&path.clone())),
            None => Some(builder.inventory.labels.named(around, &event.name)),
        }
    }

    /// Ends an open slice; one without a start is a loss. `end_ns` is `None` where it is not known.
    fn end(&mut self, open: Option<OpenSlice>, end_ns: Option<i64>, builder: &mut Builder) {
        let Some(open) = open else {
            let reason = "the file has no start of them";
            builder.inventory.lose("slices", 1, reason);
            return;
        };
        let end_ns = end_ns.filter(|end_ns| *end_ns >= open.event.at_ns);
        self.slice(open.event, open.label, end_ns, builder);
    }

    /// Writes a slice that one event states, or an instant with the duration 0.
    fn whole(&mut self, event: Event, duration_ns: i64, builder: &mut Builder) {
        let label = self.label(&event, builder);
        let end_ns = event.at_ns.checked_add(duration_ns);
        let end_ns = end_ns.filter(|_| duration_ns >= 0);
        self.slice(event, label, end_ns, builder);
    }

    /// Writes a complete slice as GPU work, a submission, a host call or a marker. `end_ns` is `None` where the file has no
    /// possible end: work of a GPU is known without its times, and any other slice is a loss.
    fn slice(
        &mut self,
        event: Event,
        label: Option<LabelId>,
        end_ns: Option<i64>,
        builder: &mut Builder,
    ) {
        // Gaps are findings of gapscope and were not measured.
        if &*event.category == "gap" {
            return;
        }
        let fingerprint = end_ns.and_then(|end_ns| event.fingerprint(end_ns));
        if fingerprint.is_some_and(|fingerprint| builder.is_repeated(fingerprint)) {
            return;
        }
        let place = self.place(event.track, builder).clone();
        let Some(process) = builder.process(place.pid) else {
            return;
        };
        let end_ns = end_ns.filter(|_| event.is_timed);
        let category = gpu_category(&event.category);
        if category.is_some() || place.is_gpu {
            let span = end_ns.map(|end_ns| Span::between(event.at_ns, end_ns));
            return builder.gpu_slice(&event, span, process, &place, category);
        }
        let Some(end_ns) = end_ns else {
            return builder
                .inventory
                .lose("slices", 1, doubtful_times::IMPOSSIBLE);
        };
        builder.inventory.spans(event.at_ns, end_ns);
        let thread = place.tid.map(|tid| builder.thread(process, place.pid, tid));
        match &*event.category {
            "command buffer" if event.unsigned("command_buffer").is_some() => {
                return builder.own_command_buffer(&event, end_ns, process, &place);
            }
            "launch" => {
                let function =
                    (&*event.name != HostCallKind::Submit.as_str()).then(|| event.name.clone());
                if self.submission(&event, end_ns, process, thread, function.clone(), builder) {
                    return;
                }
                let own_queue = own_queue(&event, place.pid);
                let class = functions::class_of(&event.name);
                let is_put_on_queue = class.is_some_and(|class| class.is_put_on_stream());
                let kind = submits(&event).filter(|_| is_put_on_queue);
                if let (Some(kind), Some(queue)) = (kind, own_queue) {
                    let id = builder.first_pass.new_submission();
                    let row = Submission {
                        id,
                        process,
                        queue: QueueId(0),
                        kind,
                        thread,
                        start_ns: event.at_ns,
                        duration_ns: end_ns - event.at_ns,
                        command_buffers: 0,
                        function,
                    };
                    return builder.own_call(queue, OwnCall::PutOnQueue(Box::new(row)));
                }
                return builder.own_host_call(&event, end_ns, process, thread, place.pid);
            }
            "host call" => {
                self.submission(&event, end_ns, process, thread, None, builder);
                return builder.own_host_call(&event, end_ns, process, thread, place.pid);
            }
            _ => {}
        }
        builder.inventory.calls(process, &event.name);
        let function = Some(event.name.clone());
        let submitted = self.submission(&event, end_ns, process, thread, function.clone(), builder);
        if let Some(label) = label {
            return builder.marker(&event, end_ns, process, thread, label);
        }
        let kind = functions::host_call_kind(&event.name).unwrap_or(HostCallKind::OtherCall);
        if submitted && kind == HostCallKind::Launch {
            return;
        }
        let span = Span::between(event.at_ns, end_ns);
        let row = rows::one_host_call(process, thread, kind, span, function);
        let bytes = event.unsigned("bytes");
        rows::host_call(builder.trace.tables_mut(), HostCall { bytes, ..row });
    }

    /// Adds the submission of a call that submitted work, and returns whether it did: the event names render stages,
    /// or a flow (an arrow between slices) leads from it to GPU work. The first call of a flow counts.
    fn submission(
        &mut self,
        event: &Event,
        end_ns: i64,
        process: ProcessId,
        thread: Option<ThreadId>,
        function: Option<Arc<str>>,
        builder: &mut Builder,
    ) -> bool {
        let stage = event.submitted.first();
        let launched = stage.and_then(|stage| builder.first_pass.launched.get(stage));
        let launched = launched.copied().or_else(|| {
            let mut flows = event.flows.iter();
            let flow = flows.find_map(|flow| builder.first_pass.flows.get(flow))?;
            self.taken.insert(*flow).then_some(*flow)
        });
        let Some(id) = launched else { return false };
        let command_buffers = match (submits(event), &function) {
            (Some(_), _) => event.unsigned("command_buffers").unwrap_or(0) as u32,
            (None, None) => event.submitted.len() as u32,
            (None, Some(_)) => 0,
        };
        let call = Submission {
            id,
            process,
            queue: QueueId(0),
            kind: submits(event).unwrap_or_default(),
            thread,
            start_ns: event.at_ns,
            duration_ns: end_ns - event.at_ns,
            command_buffers,
            function,
        };
        let pid = self.place(event.track, builder).pid;
        builder.submitted_by_call(call, own_queue(event, pid));
        true
    }

    /// Writes a value of a track's counter, in its unit.
    fn counter(&mut self, event: &Event, value: f64, builder: &mut Builder) {
        let place = self.place(event.track, builder).clone();
        let track = place.counter.unwrap_or_default();
        let value = match track.incremental {
            true => {
                let sum = self.sums.entry(event.track).or_default();
                *sum += value;
                *sum
            }
            false => value,
        };
        let value = value * track.multiplier.unwrap_or(1) as f64;
        if !value.is_finite() {
            let reason = "they are not numbers";
            builder.inventory.lose("values of counters", 1, reason);
            return;
        }
        let unit = track
            .unit_name
            .as_deref()
            .map(CounterUnit::from_text_or_unknown);
        let unit = unit.unwrap_or(match track.unit {
            2 => CounterUnit::Count,
            3 => CounterUnit::Bytes,
            _ => CounterUnit::Unknown,
        });
        let name = match &track.unit_name {
            Some(name) if unit == CounterUnit::Unknown => format!("{} [{name}]", place.name),
            _ => place.name.to_string(),
        };
        builder.counter_value(&name, unit, None, event.at_ns, None, value);
    }
}

impl Builder {
    /// Writes a value of a counter that holds from `start_ns` on, or the mean over a duration that starts there.
    pub(super) fn counter_value(
        &mut self,
        name: &str,
        unit: CounterUnit,
        device: Option<DeviceId>,
        start_ns: i64,
        duration_ns: Option<i64>,
        value: f64,
    ) {
        let counter = self.inventory.counter(name, unit, device, None);
        let end_ns = start_ns.saturating_add(duration_ns.unwrap_or(0));
        self.inventory.spans(start_ns, end_ns);
        self.trace.tables_mut().counter_values.push(CounterValue {
            counter,
            start_ns,
            duration_ns,
            value,
        });
    }

    /// Writes a slice as a marker. Labels of gapscope's own exports have their scope.
    fn marker(
        &mut self,
        event: &Event,
        end_ns: i64,
        process: ProcessId,
        thread: Option<ThreadId>,
        label: LabelId,
    ) {
        let own = event.text("scope").filter(|_| &*event.category == "label");
        let scope = match own {
            Some(scope) => MarkerScope::from_text_or_unknown(scope),
            None if thread.is_some() => MarkerScope::Thread,
            None => MarkerScope::Process,
        };
        let payload = if own.is_some() { None } else { event.payload() };
        let domain = Some(event.category.clone()).filter(|c| !c.is_empty() && own.is_none());
        let duration_ns = Some(end_ns - event.at_ns);
        let row = rows::marker_row(process, scope, label, Some(event.at_ns), duration_ns);
        let row = Marker {
            thread,
            domain,
            payload,
            ..row
        };
        rows::marker(self.trace.tables_mut(), row);
    }

    /// Adds a command buffer of gapscope's own exports.
    fn own_command_buffer(
        &mut self,
        event: &Event,
        end_ns: i64,
        process: ProcessId,
        place: &TrackPlace,
    ) {
        let key = CommandBufferKey {
            pid: 0,
            submission: event.unsigned("submission").map(|number| number as u32),
            handle: event.unsigned("command_buffer").unwrap_or(0),
        };
        let label = event.text("label").cloned();
        let label = label.map(|path| self.label_of_path(&path));
        let name = (&*event.name != "command buffer").then(|| event.name.clone());
        let queue = |builder: &mut Builder| {
            let device = builder.numbered_device(process, None, None);
            builder.queue(device, event.track, &place.name)
        };
        self.timed_command_buffer(key, queue, (event.at_ns, end_ns), name, label);
    }

    /// Adds a host call of gapscope's own exports.
    fn own_host_call(
        &mut self,
        event: &Event,
        end_ns: i64,
        process: ProcessId,
        thread: Option<ThreadId>,
        pid: u32,
    ) {
        let number = |name| match event.detail(name) {
            Some(Detail::Integer(number)) => Some(*number),
            _ => None,
        };
        // Older exports name a call after its kind, and newer ones after its function.
        let kind = match (&*event.category, event.text("call")) {
            ("launch", _) => HostCallKind::Launch,
            (_, kind) => HostCallKind::from_text_or_unknown(kind.unwrap_or(&event.name)),
        };
        let function = Some(event.name.clone()).filter(|name| &**name != kind.as_str());
        let span = Span::between(event.at_ns, end_ns);
        let row = rows::one_host_call(process, thread, kind, span, function);
        let count = event.unsigned("count");
        let row = HostCall {
            count: count
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(1),
            busy_ns: number("busy_ns").unwrap_or(row.busy_ns),
            bytes: event.unsigned("bytes"),
            result: number("result").map_or(0, |result| result as i32),
            ..row
        };
        if row.call == HostCallKind::Launch {
            let reason = "they were launched, and the file has no rows of what the device did";
            self.inventory.lose(LossKind::Dispatches, 1, reason);
        }
        match own_queue(event, pid) {
            Some(queue) => self.own_call(queue, OwnCall::Row(row)),
            None => rows::host_call(self.trace.tables_mut(), row),
        }
    }

    /// Adds GPU work that a profiler wrote as a slice of a track: a transfer by its category, or else by its name; a
    /// dispatch otherwise.
    fn gpu_slice(
        &mut self,
        event: &Event,
        span: Option<Span>,
        process: ProcessId,
        place: &TrackPlace,
        category: Option<GpuCategory>,
    ) {
        let transfer = match category {
            Some(category) => category == GpuCategory::Transfer,
            None => transfers::is_transfer(&event.name),
        };
        let kind = transfers::kind(&event.name);
        let (gpu, gpu_name) = gpu_of(event, transfer.then_some(kind));
        let device = self.numbered_device(process, gpu, gpu_name);
        let queue = self.queue(device, event.track, &place.name);
        // Files that were made of PyTorch's name the streams of CUDA so.
        if category.is_some() && place.name.starts_with("stream ") {
            self.streams.insert(queue);
        }
        let mut flows = event.flows.iter();
        let submission = flows
            .find_map(|flow| self.first_pass.flows.get(flow))
            .copied();
        if let Some(submission) = submission {
            let kind = match transfer {
                true => SubmissionKind::Transfer,
                false => SubmissionKind::Kernel,
            };
            self.submitted_work(submission, queue, kind);
        } else {
            let reason = "the file does not say which calls submitted them";
            self.inventory.lose(LossKind::HostCallsOfWork, 1, reason);
        }
        let place = WorkPlace {
            submission,
            ..WorkPlace::new(queue, span)
        };
        if transfer {
            let facts = TransferFacts {
                kind,
                bytes: event.unsigned("bytes").or(event.unsigned("copy_bytes")),
                ..TransferFacts::default()
            };
            self.works.push(Work {
                place,
                span,
                command_buffer: None,
                own_submission: None,
                row: WorkRow::Transfer(facts),
            });
            return;
        }
        let list = |name| match event.detail(name) {
            Some(Detail::List(sizes)) => {
                let size = |axis: usize| u32::try_from(*sizes.get(axis)?).ok();
                [size(0), size(1), size(2)]
            }
            _ => [None; 3],
        };
        let number = |names: &[&str]| {
            let found = names.iter().find_map(|name| event.unsigned(name))?;
            u32::try_from(found).ok()
        };
        let name = self.inventory.labels.text(&event.name);
        let (mut groups, mut local) = (list("grid"), list("block"));
        // rocprofv3 writes the products of the sizes in x, y and z, and counts the grid in work-items.
        let products = [number(&["grid_size"]), number(&["workgroup_size"])];
        if let [Some(items), Some(threads @ 1..)] = products {
            self.inventory.note(PRODUCTS);
            local = [Some(threads), Some(1), Some(1)];
            // Work-items of a part of a workgroup in two directions would make more workgroups than this quotient.
            if items.is_multiple_of(threads) {
                groups = [Some(items / threads), Some(1), Some(1)];
            }
        }
        let kernel = self.inventory.kernel(KernelFacts {
            local,
            registers: number(&["registers per thread", "VGPR_Count"]),
            local_bytes: number(&["private_segment_size", "Scratch_Size"]),
            // Files of Kineto have only the sum of static and dynamic memory.
            static_shared_bytes: number(&["LDS_Block_Size", "group_segment_size"]),
            ..KernelFacts::new(process, name)
        });
        self.works.push(Work {
            place,
            span,
            command_buffer: None,
            own_submission: None,
            row: WorkRow::Dispatch(kernel, groups),
        });
    }
}

/// Returns the kind of work that a call of gapscope's own exports submits; `None` for other slices.
fn submits(event: &Event) -> Option<SubmissionKind> {
    let text = event
        .text("submits")
        .filter(|_| &*event.category == "launch");
    text.map(|text| SubmissionKind::from_text_or_unknown(text))
}

/// Returns the queue that a call of gapscope's own exports names, with its process; `None` for other slices.
fn own_queue(event: &Event, pid: u32) -> Option<(u32, u64)> {
    let is_own = matches!(&*event.category, "launch" | "host call");
    Some((pid, event.unsigned("queue").filter(|_| is_own)?))
}

/// The note on launch sizes of rocprofv3.
const PRODUCTS: &str = "rocprofv3 writes the products of the sizes of grids and workgroups into Perfetto files: they stand in x.";

/// Returns the number of the GPU that ran a slice, and its name where that is a text such as `Agent-4`. `transfer` is
/// the kind of a transfer, whose agents are its two ends.
fn gpu_of(event: &Event, transfer: Option<TransferKind>) -> (Option<u32>, Option<&str>) {
    let ends = match transfer {
        Some(TransferKind::DeviceToHost) => ["src_agent", "dst_agent"],
        _ => ["dst_agent", "src_agent"],
    };
    let names = ["device", "agent", "gpu"].into_iter().chain(ends);
    let mut details = names.filter_map(|name| event.detail(name));
    let Some(detail) = details.next() else {
        return (None, None);
    };
    let Detail::Text(text) = detail else {
        let number = detail.unsigned();
        return (number.and_then(|number| u32::try_from(number).ok()), None);
    };
    let digits = text.split(|c: char| !c.is_ascii_digit());
    let number = digits.rev().find(|digits| !digits.is_empty());
    (number.and_then(|number| number.parse().ok()), Some(text))
}
