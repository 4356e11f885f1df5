//! Tests what becomes of times in Perfetto's files that cannot be true, by packets that the test writes.

use crate::imported::{import_bytes, loss, noted};
use gapscope_trace::Trace;
use gapscope_trace::tables::{Table, TransferKind};

/// A message of Protocol Buffers that is being written.
#[derive(Default)]
pub struct Message(pub Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub fn number(mut self, field: u64, number: u64) -> Message {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    pub fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    pub fn message(self, field: u64, inner: Message) -> Message {
        self.bytes(field, &inner.0)
    }
}

const NOW: u64 = 5_000_000_000_000;

/// A packet of an event of a track: a start (1) or an end (2).
fn event(at_ns: u64, kind: u64, track: u64, name: &str) -> Message {
    let category = if track == 1 { "kernel" } else { "python" };
    let event = Message::default().number(9, kind).number(11, track);
    let event = match kind {
        1 => event
            .bytes(22, category.as_bytes())
            .bytes(23, name.as_bytes()),
        _ => event,
    };
    Message::default()
        .number(8, at_ns)
        .number(10, 1)
        .message(11, event)
}

/// A file with a thread (track 2) and a stream of a GPU (track 1), and the spans of kernels and functions.
pub fn file(kernels: &[(u64, u64)], functions: &[(u64, u64)]) -> Trace {
    let mut packets = Vec::new();
    for (id, name) in [(1, "stream 7"), (2, "main")] {
        let thread = Message::default().number(1, 100).number(2, 100 + id);
        let track = Message::default()
            .number(1, id)
            .bytes(2, name.as_bytes())
            .message(4, thread);
        packets.push(Message::default().number(10, 1).message(60, track));
    }
    for (track, spans) in [(1, kernels), (2, functions)] {
        for (start_ns, end_ns) in spans {
            packets.push(event(*start_ns, 1, track, "work"));
            packets.push(event(*end_ns, 2, track, ""));
        }
    }
    let file = packets
        .into_iter()
        .fold(Message::default(), |file, packet| file.message(1, packet));
    import_bytes("run.pftrace", &file.0).unwrap().trace
}

/// A file with so many kernels of a stream, each of which names the GPU that `device` gives for its number.
pub fn on_devices(count: u64, device: impl Fn(u64) -> u64) -> Trace {
    let thread = Message::default().number(1, 100).number(2, 101);
    let track = Message::default()
        .number(1, 1)
        .bytes(2, b"stream 7")
        .message(4, thread);
    let mut packets = vec![Message::default().number(10, 1).message(60, track)];
    for at in 0..count {
        let annotation = Message::default()
            .bytes(10, b"device")
            .number(3, device(at));
        let begin = Message::default()
            .number(9, 1)
            .number(11, 1)
            .bytes(22, b"kernel")
            .bytes(23, b"work")
            .message(4, annotation);
        let start_ns = NOW + at * 100;
        let begin = Message::default()
            .number(8, start_ns)
            .number(10, 1)
            .message(11, begin);
        packets.extend([begin, event(start_ns + 50, 2, 1, "")]);
    }
    let file = packets
        .into_iter()
        .fold(Message::default(), |file, packet| file.message(1, packet));
    import_bytes("run.pftrace", &file.0).unwrap().trace
}

#[test]
fn impossible_times_of_work_are_unknown_and_other_slices_are_lost() {
    let at = |number: u64| (NOW + number * 100, NOW + number * 100 + 50);
    for (odd, what) in [
        ((0, NOW + 350), "start"),
        ((NOW + 300, 0), "end"),
        ((NOW + 300, NOW + 200), "order"),
    ] {
        let spans = [at(1), at(2), odd, at(4)];
        let trace = file(&spans, &spans);
        let tables = &trace.tables;
        let timed: Vec<bool> = tables
            .dispatches
            .start_ns
            .iter()
            .map(|start| start.is_some())
            .collect();
        assert_eq!(timed, [true, true, false, true], "{what}");
        assert_eq!(tables.markers.start_ns.iter().count(), 3, "{what}");
        assert_eq!(loss(&trace, "times that are impossible"), 2, "{what}");
        assert_eq!(trace.manifest.start_ns, NOW.cast_signed() + 100, "{what}");
    }
}

#[test]
fn times_that_count_from_zero_are_believed() {
    let spans = [(0, 50), (100, 150), (900, 950)];
    let trace = file(&spans, &spans);
    assert_eq!(trace.tables.dispatches.start_ns.iter().flatten().count(), 3);
    assert_eq!(trace.tables.markers.start_ns.iter().count(), 3);
}

/// How many dispatches have no times.
fn untimed(trace: &Trace) -> usize {
    let starts = trace.tables.dispatches.start_ns.iter();
    starts.filter(|start| start.is_none()).count()
}

#[test]
fn work_of_a_stream_that_contradicts_its_neighbours_has_no_times() {
    let at = |number: u64| (NOW + number * 10_000, NOW + number * 10_000 + 8_000);
    let regular: Vec<_> = (0..12).map(at).collect();
    assert_eq!(untimed(&file(&regular, &[])), 0);
    let mut long = regular.clone();
    long[3].1 = NOW + 115_000;
    let trace = file(&long, &[]);
    assert_eq!(untimed(&trace), 1);
    assert!(noted(&trace, "after later work of the same stream"));
    let mut together = regular.clone();
    for (span, longer) in together[..4].iter_mut().zip(0..) {
        *span = (NOW, NOW + 8_000 + longer);
    }
    let trace = file(&together, &[]);
    assert_eq!(untimed(&trace), 4);
    assert!(noted(&trace, "in the same nanosecond"));
    let no_length: Vec<_> = regular.iter().map(|(start, _)| (*start, *start)).collect();
    assert_eq!(untimed(&file(&no_length, &[])), 12);
}

#[test]
fn work_of_rocprof_sys_is_read_with_its_calls() {
    let thread = Message::default().number(1, 100).number(2, 102);
    let track = |id: u64, name: &str| Message::default().number(1, id).bytes(2, name.as_bytes());
    let tracks = [
        track(1, "GPU Kernel Dispatch [0] Queue 1"),
        track(2, "main").message(4, thread),
        track(3, "GPU Memory Copy to Agent [0] Thread 0"),
    ];
    let slice = |track: u64, at_ns: u64, category: &str, name: &str, flow: u64| {
        let begin = Message::default()
            .number(9, 1)
            .number(11, track)
            .number(36, flow)
            .bytes(22, category.as_bytes())
            .bytes(23, name.as_bytes());
        let begin = Message::default()
            .number(8, at_ns)
            .number(10, 1)
            .message(11, begin);
        [begin, event(at_ns + 50, 2, track, "")]
    };
    let slices = [
        slice(2, NOW, "rocm_hip_api", "hipLaunchKernel", 7),
        slice(1, NOW + 100, "rocm_kernel_dispatch", "vecadd", 7),
        slice(2, NOW + 200, "rocm_hip_api", "hipMemcpyAsync", 8),
        slice(
            3,
            NOW + 300,
            "rocm_memory_copy",
            "MEMORY_COPY_DEVICE_TO_HOST",
            8,
        ),
    ];
    let tracks = tracks.map(|track| Message::default().number(10, 1).message(60, track));
    let file = tracks
        .into_iter()
        .chain(slices.into_iter().flatten())
        .fold(Message::default(), |file, packet| file.message(1, packet));
    let trace = import_bytes("run.proto", &file.0).unwrap().trace;
    let tables = &trace.tables;
    let dispatches = &tables.dispatches;
    assert_eq!(
        dispatches.start_ns.iter().collect::<Vec<_>>(),
        [Some(NOW.cast_signed() + 100)]
    );
    assert_eq!(tables.transfers.kind, [TransferKind::DeviceToHost]);
    let launches = tables.submissions.function.iter().flatten();
    assert_eq!(launches.count(), 2);
    assert!(dispatches.submission.at(0).is_some());
    assert_eq!(tables.markers.len(), 0);
}
