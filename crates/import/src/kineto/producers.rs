//! Reads device work, calls and arrows that other producers of Chrome's JSON write: an event goes in, and what its
//! producer means by it comes out.
//!
//! | producer | device work | joined with its call by |
//! |---|---|---|
//! | Triton's Proton | category `kernel` with a `call_stack`, whose innermost name is the kernel's | nothing: the file has no calls |
//! | torch_npu and MindSpore on Ascend (`trace_view.json`) | events with a `Task Type` and a `Stream Id` | `connection_id`, which calls have in a list |
//! | gapscope's drawings without the trace behind them, such as those that another tool has saved again | categories `dispatch`, `transfer` and `opaque work` with a `position` | `submission`, which launches have too; the arrows of other calls; of work in a command buffer, the `submission` of that |
//! | Intel's unitrace (Level Zero, OpenCL) | category `gpu_op`; the name ends with the launch's shape, or the bytes of a copy | `id`, which an arrow from inside of the call has |

use super::category::{Category, Producer};
use super::event::Event;
use super::json::{self, bare, elements, members};
use super::number::whole;
use super::streams::Stream;
use super::work::correlation;
use crate::functions::class_of;
use crate::profile::Correlation;
use crate::transfers;
use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
use gapscope_trace::tables::{HostCall, HostCallKind, TransferKind};
use memchr::memmem::find;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The beginnings of Ascend's task types in which a stream waits, records an event or does nothing: no work.
const NO_WORK: [&str; 5] = ["EVENT_", "NOTIFY_", "Notify", "PLACE_HOLDER", "WRITE_VALUE"];
/// The beginnings of Ascend's task types of copies.
const COPIES: [&str; 4] = ["MEMCPY", "SDMA", "PCIE_DMA", "Memcpy"];

/// What is kept of the events of other producers.
#[derive(Debug, Default)]
pub(super) struct Producers {
    /// The numbers of devices by the processes that stand for them in files of unitrace and of Ascend, and those of the rows of
    /// unitrace's engines, in the order in which they come.
    devices: FxHashMap<Box<[u8]>, u32>,
    rows: FxHashMap<Box<[u8]>, u32>,
    /// The starts of unitrace's arrows on host threads, by thread: the time and the number of the work.
    pub(super) arrows: FxHashMap<(ProcessId, ThreadId), Vec<(i64, Correlation)>>,
    /// Tasks of Ascend that are no work.
    pub(super) waits: u64,
    /// Of gapscope's drawings: the number of the submission of each command buffer, and the number that stands at the end of each
    /// arrow, by the arrow's number.
    pub(super) submissions: FxHashMap<Correlation, Correlation>,
    /// The number of the work or command buffer of the latest slice, at which arrows end.
    pub(super) latest: Option<Correlation>,
    /// The calls of gapscope's drawings, by their index, with the number of the queue that they use.
    pub(super) drawn_calls: Vec<(usize, Option<u64>)>,
    /// The rows of calls of gapscope's drawings that wait for their queue, by the number of that.
    pub(super) drawn_rows: Vec<(u64, HostCall)>,
    /// The streams of queues of gapscope's drawings, by the queues' numbers, with the sources of their work.
    pub(super) drawn_queues: FxHashMap<u64, (QueueId, u32)>,
}

/// Added to the indexes of calls of gapscope's drawings that have no submission.
pub(super) const OTHER_CALLS: u64 = 1 << 60;

/// Added to the numbers of command buffers of gapscope's drawings, so that they are no numbers of submissions.
const COMMAND_BUFFERS: u64 = 1 << 62;
/// Added to the numbers of arrows of gapscope's drawings.
pub(super) const ARROWS: u64 = 1 << 61;

/// Returns a number of gapscope's drawings, which count from 0, as one that joins.
fn number(value: &[u8], base: u64) -> Option<Correlation> {
    let number = whole(value).and_then(|number| u64::try_from(number).ok());
    let number = number.filter(|number| *number < ARROWS);
    number.map(|number| Correlation(base + number + 1))
}

/// Returns the number of the submission in the arguments of gapscope's drawings.
pub(super) fn submission(args: &[u8]) -> Option<Correlation> {
    let mut members = members(args);
    let (_, value) = members.find(|(key, _)| *key == b"submission")?;
    number(value, 0)
}

/// Returns whether an event is a call of gapscope's drawings, and the number of the queue that it uses.
pub(super) fn drawn_queue(event: &Event) -> Option<Option<u64>> {
    if !matches!(event.category, b"launch" | b"host call") {
        return None;
    }
    let mut members = members(event.args);
    let queue = members.find(|(key, _)| *key == b"queue");
    Some(queue.and_then(|(_, value)| u64::try_from(whole(value)?).ok()))
}

/// Returns the kind that gapscope's drawing gives a call of a function that gapscope does not know by its name; `None` for calls
/// that submit, and for other calls.
pub(super) fn drawn_kind(event: &Event, name: &str) -> Option<HostCallKind> {
    if event.category != b"host call" || class_of(name).is_some() {
        return None;
    }
    let mut members = members(event.args);
    let (_, kind) = members.find(|(key, _)| *key == b"call")?;
    let kind = HostCallKind::from_text_or_unknown(&json::text(bare(kind)));
    (kind != HostCallKind::Submit).then_some(kind)
}

/// Returns the numbers of the submission and of the command buffer in the arguments of gapscope's drawings.
pub(super) fn drawn_place(args: &[u8]) -> [Option<Correlation>; 2] {
    let mut members = members(args);
    let value = members.find(|(key, _)| *key == b"command_buffer");
    let command_buffer = value.and_then(|(_, value)| number(value, COMMAND_BUFFERS));
    [submission(args), command_buffer]
}

/// The arguments of device work.
#[derive(Debug, Default)]
pub(super) struct Args<'a> {
    pub(super) correlation: Option<Correlation>,
    /// The device; `Some(None)` for one that is no number.
    device: Option<Option<u32>>,
    stream: Option<u32>,
    task_type: &'a [u8],
    pub(super) call_stack: &'a [u8],
}

impl<'a> Args<'a> {
    /// Reads the object of arguments of an event.
    pub(super) fn parse(args: &'a [u8]) -> Args<'a> {
        let mut parsed = Args::default();
        let small = |value| whole(value).and_then(|number| u32::try_from(number).ok());
        for (key, value) in members(args) {
            match key {
                b"id" | b"connection_id" => parsed.correlation = correlation(value),
                b"device_id" | b"Device Id" => parsed.device = Some(small(value)),
                b"stream_id" | b"Stream Id" => parsed.stream = small(value),
                b"Task Type" => parsed.task_type = bare(value),
                b"call_stack" => parsed.call_stack = value,
                _ => {}
            }
        }
        parsed
    }

    /// Returns whether a task of Ascend's is a wait, an event or a placeholder, and no work.
    pub(super) fn is_no_work(&self) -> bool {
        self.is_task_of(&NO_WORK)
    }

    /// Returns whether a task of Ascend's is a copy.
    pub(super) fn is_copy(&self) -> bool {
        self.is_task_of(&COPIES)
    }

    fn is_task_of(&self, starts: &[&str]) -> bool {
        let mut starts = starts.iter();
        starts.any(|start| self.task_type.starts_with(start.as_bytes()))
    }
}

/// Returns the category of an event that another producer than PyTorch's profiler wrote; `None` for other events.
pub(super) fn category_of(event: &Event) -> Option<Category> {
    let has = |key: &[u8]| find(event.args, key).is_some();
    match event.category {
        b"dispatch" | b"transfer" | b"opaque work" if has(b"\"position\"") => {
            Some(Category::OtherProducer(Producer::Gapscope))
        }
        b"command buffer" if has(b"\"command_buffer\"") => {
            Some(Category::OtherProducer(Producer::Gapscope))
        }
        b"launch" if has(b"\"submits\"") => Some(Category::Call),
        b"host call" if has(b"\"busy_ns\"") => Some(Category::Call),
        b"label" if has(b"\"scope\":\"thread\"") || has(b"\"scope\": \"thread\"") => {
            Some(Category::Annotation)
        }
        // Gaps are computed by gapscope, and the work has its labels itself.
        b"gap" if has(b"\"gap_ns\"") => Some(Category::DeviceAnnotation),
        b"label" if has(b"\"scope\"") => Some(Category::DeviceAnnotation),
        b"gpu_op" => Some(Category::OtherProducer(Producer::Unitrace)),
        b"kernel" if has(b"\"call_stack\"") => Some(Category::OtherProducer(Producer::Proton)),
        // Proton's bars of callers repeat the time of their kernels.
        b"call_path" if has(b"\"call_stack\"") => Some(Category::DeviceAnnotation),
        b"cpu_op" if is_function(event.name, b"ze") || is_function(event.name, b"cl") => {
            Some(Category::Call)
        }
        b"" if has(b"\"Task Type\"") && has(b"\"Stream Id\"") => {
            Some(Category::OtherProducer(Producer::Ascend))
        }
        b"" if has(b"\"connection_ids\"") => Some(Category::Call),
        _ => None,
    }
}

/// Returns whether an arrow of unitrace leads from a call to its work, by its category, or from work to the call that waits for
/// it; `None` for arrows of others. The category is `Flow_H2D_` with the number of the work and the rank, such as
/// `Flow_H2D_12_0`, or the same of OpenCL (`CL_Flow_H2D_12_0`).
pub(super) fn arrow_to_work(category: &[u8]) -> Option<bool> {
    let kind = category.strip_prefix(b"CL_").unwrap_or(category);
    match kind {
        b"data_flow" | b"cl_data_flow" => Some(true),
        b"data_flow_sync" | b"cl_data_flow_sync" => Some(false),
        _ if kind.starts_with(b"Flow_H2D_") => Some(true),
        _ if kind.starts_with(b"Flow_D2H_") => Some(false),
        _ => None,
    }
}

/// Returns whether a name is that of a function of an API, by the API's prefix.
pub(super) fn is_function(name: &[u8], prefix: &[u8]) -> bool {
    let rest = name.strip_prefix(prefix);
    rest.and_then(|rest| rest.first())
        .is_some_and(u8::is_ascii_uppercase)
}

/// Returns the number that joins a call of Ascend's runtime with its first work; `None` for other calls.
pub(super) fn connection(args: &[u8]) -> Option<Correlation> {
    let mut members = members(args);
    let (_, ids) = members.find(|(key, _)| *key == b"connection_ids")?;
    correlation(elements(ids).next()?)
}

impl Producers {
    /// Returns the process by which a file of unitrace or of Ascend names a device, by the device's number.
    pub(super) fn device_pid(&self, number: u32) -> Option<&[u8]> {
        let mut devices = self.devices.iter();
        let (pid, _) = devices.find(|(_, known)| **known == number)?;
        Some(pid)
    }

    /// Returns the stream of a piece of work.
    pub(super) fn stream(&mut self, event: &Event, producer: Producer, args: &Args) -> Stream {
        let small = |value| whole(value).and_then(|number| u32::try_from(number).ok());
        // Files of Ascend are of one device, and versions of Proton that name no device number streams alone: without a number all
        // is on the first device.
        let (device, stream) = match producer {
            // unitrace counts made-up processes of devices, and their rows, down from 2^32.
            Producer::Unitrace | Producer::Gapscope => {
                let next = self.devices.len() as u32;
                let device = *self.devices.entry(event.pid.into()).or_insert(next);
                let next = self.rows.len() as u32;
                let row = *self.rows.entry(event.tid.into()).or_insert(next);
                (Some(device), Some(row))
            }
            Producer::Ascend => {
                let device = args.device.unwrap_or(Some(0));
                if let Some(number) = device.filter(|_| !self.devices.contains_key(event.pid)) {
                    self.devices.insert(event.pid.into(), number);
                }
                (device, args.stream.or(small(event.tid)))
            }
            Producer::Proton => {
                // Versions write the stream as the thread, as an argument, or as `stream 7` in place of the process.
                let named = event.pid.strip_prefix(b"stream ").and_then(small);
                let stream = named.or(args.stream).or(small(event.tid));
                (args.device.unwrap_or(Some(0)), stream)
            }
        };
        Stream {
            device,
            context: 0,
            stream,
        }
    }
}

/// What the end of a name of unitrace says of a launch or a copy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) groups: [Option<u32>; 3],
    pub(super) local: [Option<u32>; 3],
    pub(super) bytes: Option<u64>,
}

/// Splits a name of unitrace, such as `gemm[SIMD32 {16; 1; 1} {128; 1; 1}]` or
/// `zeCommandListAppendMemoryCopy(M2D)[4096]`, into the name and what stands in the brackets.
pub(super) fn split_shape(name: &str) -> (&str, Shape) {
    let whole_name = name.trim_matches('"');
    // A kernel that is spread over the tiles of a device has a row for each.
    let of_tile = whole_name.strip_prefix("Tile #");
    let whole_name = of_tile
        .and_then(|rest| rest.split_once(": "))
        .map_or(whole_name, |(_, name)| name);
    let Some((name, inside)) = whole_name
        .strip_suffix(']')
        .and_then(|name| name.rsplit_once('['))
    else {
        return (whole_name, Shape::default());
    };
    let bytes = inside
        .split(' ')
        .next()
        .and_then(|bytes| bytes.parse().ok());
    let mut lists = inside.split('{').skip(1).map(|list| {
        let list = list.split('}').next().unwrap_or_default();
        let mut sizes = list.split(';').map(|size| size.trim().parse().ok());
        [(); 3].map(|()| sizes.next().flatten())
    });
    let (groups, local) = (lists.next(), lists.next());
    match (groups, local, bytes) {
        (Some(groups), Some(local), _) => {
            let shape = Shape {
                groups,
                local,
                bytes: None,
            };
            (name, shape)
        }
        (None, None, Some(bytes)) => {
            let shape = Shape {
                bytes: Some(bytes),
                ..Shape::default()
            };
            (name, shape)
        }
        _ => (whole_name, Shape::default()),
    }
}

/// Returns the kind of a copy, from a name of unitrace with its ends (`M2D`: from memory of the host to a device) or
/// of Ascend.
pub(super) fn copy_kind(name: &str) -> TransferKind {
    let ends = name
        .split_once('(')
        .map_or("", |(_, ends)| ends.trim_end_matches(')'));
    match ends {
        "M2D" | "H2D" => TransferKind::HostToDevice,
        "D2M" | "D2H" => TransferKind::DeviceToHost,
        "D2D" => TransferKind::Copy,
        _ if name.contains("Fill") => TransferKind::Fill,
        _ => transfers::kind(name),
    }
}

/// Decodes the percent signs in names of newer versions of unitrace. A name without them stays.
pub(super) fn decoded(name: &str) -> Cow<'_, str> {
    if !name.contains("%5B") && !name.contains("%20") {
        return Cow::Borrowed(name);
    }
    let bytes = name.as_bytes();
    let (mut decoded, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(code) => {
                decoded.push(code);
                at += 3;
            }
            None => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_unitrace_end_with_shapes_and_sizes() {
        let (name, shape) = split_shape("\"gemm<float>[SIMD32 {16; 2; 1} {128; 1; 1}]\"");
        assert_eq!(name, "gemm<float>");
        assert_eq!(shape.groups, [Some(16), Some(2), Some(1)]);
        assert_eq!(shape.local, [Some(128), Some(1), Some(1)]);
        let (name, shape) = split_shape("zeCommandListAppendMemoryCopy(M2D)[4096]");
        assert_eq!(name, "zeCommandListAppendMemoryCopy(M2D)");
        assert_eq!(shape.bytes, Some(4096));
        assert_eq!(copy_kind(name), TransferKind::HostToDevice);
        assert_eq!(split_shape("kernel[int]").0, "kernel[int]");
        assert_eq!(
            split_shape("Tile #1: gemm[SIMD16 {1; 1; 1} {8; 1; 1}]").0,
            "gemm"
        );
        assert_eq!(decoded("gemm%5BSIMD32%20%7B1%7D%5D"), "gemm[SIMD32 {1}]");
        assert_eq!(decoded("100%"), "100%");
    }

    #[test]
    fn arrows_of_unitrace_have_the_number_of_the_work_in_their_category() {
        for (category, leads) in [
            ("Flow_H2D_12_285", Some(true)),
            ("CL_Flow_H2D_12_285", Some(true)),
            ("Flow_D2H_12_285", Some(false)),
            ("CL_Flow_D2H_3_0", Some(false)),
            ("data_flow", Some(true)),
            ("ac2g", None),
        ] {
            assert_eq!(arrow_to_work(category.as_bytes()), leads, "{category}");
        }
    }
}
