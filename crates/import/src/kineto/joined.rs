//! Reads a file of PyTorch's profiler whose run another tool recorded too, and whose times of GPU work and calls count.
//!
//! [`Tracks`] are read first: the ranges of each thread, by which the other tool's launches are compared with the file.
//! [`add`] then adds the file's operators, functions of Python, annotations and memory to the other tool's profile. The
//! file's own calls and work are counted and left out.

use super::category::Category;
use super::collect::{Collector, is_annotation_of_2021};
use super::collectives;
use super::described_calls::DescribedCalls;
use super::document::{Document, Sink, Summary};
use super::event::Event;
use super::facts::{LeftOut, TracePart};
use super::join::rank_prefix;
use super::lanes::Lanes;
use super::metadata::Metadata;
use super::source::Source;
use super::{files, json};
use crate::Error;
use crate::functions::class_of;
use crate::offset::{Drift, Launch, segments};
use crate::output::{NewTrace, Output};
use crate::profile::{ApiCall, Correlation, DeviceWorkKind, Profile, Span};
use crate::since_1970::Times;
use gapscope_model::SubmissionKind;
use gapscope_model::cuda::base_name;
use gapscope_trace::build::TextId;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::manifest::Rank;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The ids of a file's counters begin with a multiple of this number, so that several files have different ids.
const COUNTERS_OF_A_FILE: u32 = 1 << 20;

/// A thread of the file.
#[derive(Debug, Clone)]
pub(crate) struct Track {
    /// The process and the thread as the file writes them, with a zero byte between them.
    pub key: Box<[u8]>,
    pub pid: u32,
    pub tid: u32,
    /// The times in which launches may lie, and the launches that the file has itself, by the file's clock.
    pub segments: Vec<Range<i64>>,
    pub launches: Vec<Launch>,
}

/// What is read of a file before it is joined.
#[derive(Debug, Clone)]
pub(crate) struct Tracks {
    pub tracks: Vec<Track>,
    pub rank: Option<Rank>,
    /// The moment from which the file's times count, in nanoseconds since 1970; `None` if the file does not say it.
    pub zero_unix_ns: Option<i64>,
}

/// Returns whether a file or folder holds Chrome's JSON.
pub(crate) fn recognises(path: &Path) -> bool {
    files::recognises(path)
}

/// Reads the tracks of a file.
///
/// # Errors
/// The file cannot be read or is not Chrome's JSON.
pub(crate) fn tracks(path: &Path) -> Result<Tracks, Error> {
    let mut reading = Reading::default();
    let summary = Document::new(Source::open(path)?).read(&mut reading)?;
    if let Some(content) = summary.foreign {
        return Err(Error::foreign(path, "Chrome's JSON", content));
    }
    Ok(reading.finish())
}

/// What is read of a thread.
struct Thread {
    /// As [`Track::key`].
    key: Box<[u8]>,
    /// The ranges, each with whether it is native code.
    ranges: Vec<(Span, bool)>,
    launches: Vec<Launch>,
}

/// The ranges of the threads of a file, while it is read.
#[derive(Default)]
struct Reading {
    lanes: Lanes,
    /// What is read of each lane.
    threads: Vec<Thread>,
    /// The names of functions that launch work, as the file writes them; `None` for other functions.
    functions: FxHashMap<Box<[u8]>, Option<Arc<str>>>,
    metadata: Metadata,
    times: Times,
}

impl Reading {
    /// Returns the function of a name that launches kernels or graphs.
    fn launching(&mut self, name: &[u8]) -> Option<Arc<str>> {
        if let Some(function) = self.functions.get(name) {
            return function.clone();
        }
        let text = json::text(name);
        let function = launches(&text).then(|| Arc::from(base_name(&text)));
        self.functions.insert(name.into(), function.clone());
        function
    }

    fn finish(self) -> Tracks {
        let lanes = &self.lanes;
        let tracks = lanes.all.iter().zip(self.threads);
        let tracks = tracks.map(|(lane, mut thread)| {
            thread.launches.sort_by_key(|launch| launch.span.start_ns);
            Track {
                key: thread.key,
                pid: lanes.processes[lane.process.0 as usize].pid,
                tid: lane.thread.0,
                segments: segments(thread.ranges),
                launches: thread.launches,
            }
        });
        // Times without a base count from 1970 or from the start of the machine, of which only the first is known.
        let is_since_1970 = self.times.shift_ns() != 0;
        Tracks {
            tracks: tracks.collect(),
            rank: self.metadata.rank,
            zero_unix_ns: self.metadata.base_ns.or(is_since_1970.then_some(0)),
        }
    }
}

/// Returns whether a function launches kernels or graphs.
pub(crate) fn launches(function: &str) -> bool {
    let kind = class_of(function).and_then(|class| class.submission_kind());
    matches!(kind, Some(SubmissionKind::Kernel | SubmissionKind::Graph))
}

impl Sink for Reading {
    type Error = Error;

    fn event(&mut self, event: &Event) -> Result<(), Error> {
        if event.phase != b'X' {
            return Ok(());
        }
        let event = &without_rank(event);
        if let Some(start_ns) = event.start_ns {
            self.times.add(start_ns, start_ns);
        }
        let category = Category::parse(event.category);
        let is_native = match category {
            Category::Operator if is_annotation_of_2021(event) => return Ok(()),
            Category::Operator => true,
            Category::Python => event.name.starts_with(b"<built-in"),
            Category::Call => false,
            _ => return Ok(()),
        };
        let times = event.start_ns.zip(event.end_ns());
        let Some(span) = times.and_then(|(start_ns, end_ns)| Span::checked(start_ns, end_ns))
        else {
            return Ok(());
        };
        let Some(lane) = self.lanes.index(event.pid, event.tid) else {
            return Ok(());
        };
        if self.threads.len() <= lane as usize {
            let key = [event.pid, b"\0", event.tid].concat();
            self.threads.push(Thread {
                key: key.into(),
                ranges: Vec::new(),
                launches: Vec::new(),
            });
        }
        if category == Category::Call {
            if let Some(function) = self.launching(event.name) {
                let launch = Launch { span, function };
                self.threads[lane as usize].launches.push(launch);
            }
        } else {
            self.threads[lane as usize].ranges.push((span, is_native));
        }
        Ok(())
    }

    fn member(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.metadata.member(key, value);
        Ok(())
    }

    fn progress(&mut self, _: &Source) -> Result<(), Error> {
        Ok(())
    }
}

/// Returns an event without the rank that merged files put before the names of processes.
fn without_rank<'a>(event: &Event<'a>) -> Event<'a> {
    let rest = rank_prefix(event.pid).map(|prefix| event.pid[prefix.len()..].trim_ascii());
    Event {
        pid: rest.unwrap_or(event.pid),
        ..*event
    }
}

/// A file whose place in the other tool's profile is known.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub path: PathBuf,
    /// The name of the file for notes.
    pub name: String,
    /// The number of the file among those of its trace.
    pub number: u32,
    /// What is added to the file's times, and what the drift of the clocks adds.
    pub shift_ns: i64,
    pub drift: Drift,
    /// The pids of processes in the profile, by the pids that the file writes.
    pub processes: FxHashMap<Box<[u8]>, u32>,
    /// The pids and thread ids in the profile, by [`Track::key`], of threads that have others in the file.
    pub threads: FxHashMap<Box<[u8]>, (u32, u32)>,
}

/// Adds the rows of a file to the profile and the trace of another tool.
///
/// # Errors
/// The file cannot be read, or the trace cannot be written.
pub(crate) fn add(
    file: &Placed,
    mut profile: Profile,
    new: NewTrace,
    bytes: (u64, u64),
    output: &Output,
) -> Result<(Profile, NewTrace), Error> {
    let span_ns = profile.rows_span_ns();
    let part = TracePart {
        bytes,
        shift_ns: Some(file.shift_ns),
        drift: file.drift,
        ..TracePart::default()
    };
    let mut by_pid = FxHashMap::default();
    for (written, pid) in &file.processes {
        by_pid.insert(written.clone(), profile.inventory.process(*pid));
    }
    let threads = file.threads.iter().map(|(key, (pid, tid))| {
        let place = (profile.inventory.process(*pid), ThreadId(*tid));
        (key.clone(), place)
    });
    let threads = threads.collect();
    let pids = profile.inventory.processes().map(|(_, pid)| pid).collect();
    let known_span_ns = profile.inventory.span_ns();
    let mut collector = Collector::new(output, new, part, &[]);
    collector.left_out = Some(LeftOut::default());
    collector.main = by_pid.values().copied().min().unwrap_or(ProcessId(0));
    collector.lanes = Lanes::placed(pids, by_pid, threads);
    collector
        .counters
        .begin_with((file.number + 1) * COUNTERS_OF_A_FILE);
    collector.profile = profile;
    let mut joining = Joining {
        collector,
        span_ns,
        foreign: 0,
        outside: 0,
    };
    let summary = Document::new(Source::open(&file.path)?).read(&mut joining)?;
    joining.collector.pair_ranges_by_time()?;
    joining.describe(&summary, &file.name);
    let Collector {
        mut profile, new, ..
    } = joining.collector;
    // What the other tool did not record is no part of the trace's time.
    profile.inventory.keep_span(known_span_ns);
    Ok((profile, new))
}

/// Passes the events that the other tool does not have to the collector, and counts those that are left out.
struct Joining<'o, 'p> {
    collector: Collector<'o, 'p>,
    /// The time of the other tool's rows.
    span_ns: Range<i64>,
    /// The events of processes that the other tool did not record.
    foreign: u64,
    /// The events before and after the other tool's rows.
    outside: u64,
}

impl Joining<'_, '_> {
    /// Returns whether a range is to be added, and counts it if it is not.
    fn takes(&mut self, event: &Event) -> bool {
        if event.phase == b'X' {
            match self.collector.category(event) {
                // The collector counts them.
                category if category == Category::Call || category.is_work() => return true,
                Category::Operator | Category::Python | Category::Annotation | Category::Other => {
                    return self.is_in_time(event) && self.is_of_the_run(event);
                }
                _ => {}
            }
            return false;
        }
        match event.phase {
            b's' | b't' | b'f' => Category::parse(event.category) != Category::LaunchFlow,
            b'M' => true,
            _ if matches!(event.pid, b"Traces" | b"") => false,
            _ => self.is_in_time(event) && self.is_of_the_run(event),
        }
    }

    fn is_of_the_run(&mut self, event: &Event) -> bool {
        let is_known = self.collector.lanes.has_process(event.pid);
        self.foreign += u64::from(!is_known);
        is_known
    }

    fn is_in_time(&mut self, event: &Event) -> bool {
        let start_ns = event.start_ns.and_then(|ns| self.collector.on_clock(ns));
        let Some(start_ns) = start_ns else {
            // The collector counts impossible times.
            return true;
        };
        let end_ns = start_ns.saturating_add(event.duration_ns.unwrap_or(0));
        let is_inside = start_ns < self.span_ns.end && end_ns > self.span_ns.start;
        self.outside += u64::from(!is_inside);
        is_inside
    }

    /// Completes what was collected, and counts and notes what was left out.
    fn describe(&mut self, summary: &Summary, file: &str) {
        let collector = &mut self.collector;
        collector.lanes.name_all();
        collector.finish_ranges();
        collector.add_collectives_of_calls();
        collector.count_unread(summary);
        collector.add_steps_of_other_threads();
        collector.add_labels_of_backward_passes();
        collector.profile.drop_stray_devices();
        let LeftOut { calls, work } = collector.left_out.unwrap_or_default();
        let inventory = &mut collector.profile.inventory;
        for lane in &collector.lanes.all {
            if let Some(name) = &lane.name {
                inventory.thread(lane.process, lane.thread, name);
            }
        }
        let device = |number| inventory.known_device(collector.main, number);
        let tables = collector.new.tables_mut();
        collector.counters.push_into(device, tables);
        let reason = "they are of processes that Nsight Systems did not record";
        inventory.lose("ranges of PyTorch's profiler", self.foreign, reason);
        let reason = "they are before or after what Nsight Systems recorded";
        inventory.lose("ranges of PyTorch's profiler", self.outside, reason);
        if calls + work > 0 {
            inventory.note(format!(
                "{file} has calls ({calls}) and GPU work ({work}) of its own, which are left out: those of Nsight Systems count."
            ));
        }
        collector.note_python();
    }
}

impl Collector<'_, '_> {
    /// Adds a range around each call of the other tool's that launched a kernel of NCCL inside of an operator that describes
    /// the collective. Where NCCL's own ranges were recorded, they say it.
    fn add_collectives_of_calls(&mut self) {
        let described = DescribedCalls::take(self);
        let Profile {
            recorded,
            inventory,
            ..
        } = &self.profile;
        let is_of_nccl = |text: TextId| inventory.labels.text_of(text) == collectives::DOMAIN;
        let mut ranges = recorded.ranges.iter();
        if described.is_empty() || ranges.any(|range| range.domain.is_some_and(is_of_nccl)) {
            return;
        }
        let kernels = recorded
            .work
            .iter()
            .filter_map(|(process, correlation, work)| {
                let DeviceWorkKind::Kernel { kernel, .. } = work.kind else {
                    return None;
                };
                let name = inventory.kernel_name(kernel)?;
                let is_of_nccl = name.starts_with("nccl");
                correlation.filter(|_| is_of_nccl).map(|id| (*process, id))
            });
        let launches: FxHashSet<(ProcessId, Correlation)> = kernels.collect();
        let calls = recorded.calls.iter().filter_map(|(process, call)| {
            let is_launch = launches.contains(&(*process, call.correlation?));
            let payload = described.around(*process, call).filter(|_| is_launch)?;
            Some((*process, *call, payload))
        });
        let calls: Vec<(ProcessId, ApiCall, &str)> = calls.collect();
        for (process, call, payload) in calls {
            self.add_collective(process, call, payload);
        }
    }
}

impl Sink for Joining<'_, '_> {
    type Error = Error;

    fn event(&mut self, event: &Event) -> Result<(), Error> {
        let event = &without_rank(event);
        match self.takes(event) {
            true => self.collector.event(event),
            false => Ok(()),
        }
    }

    fn member(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.collector.member(key, value)
    }

    fn progress(&mut self, source: &Source) -> Result<(), Error> {
        self.collector.progress(source)
    }
}
