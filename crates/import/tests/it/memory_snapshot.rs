//! Tests the import of snapshots of PyTorch's memory. The pickles are written here, by the operations that Python's pickle of protocol 4 has.

use crate::imported::{Import, import_bytes};
use gapscope_import::Error;
use gapscope_timeline_builder::memory_snapshot::MemorySnapshot;
use gapscope_trace::Trace;
use gapscope_trace::tables::{AllocatorMemoryKind, AllocatorRow, FrameKind, Table};

/// A value of Python.
#[derive(Clone)]
enum Py {
    Int(i64),
    Text(&'static str),
    List(Vec<Py>),
    Dict(Vec<(&'static str, Py)>),
}

impl Py {
    fn pickle(&self, to: &mut Vec<u8>) {
        match self {
            Py::Int(number @ 0..=255) => to.extend([b'K', *number as u8]),
            Py::Int(number) => {
                to.extend([0x8a, 8]);
                to.extend(number.to_le_bytes());
            }
            Py::Text(text) => {
                to.extend([0x8c, text.len() as u8]);
                to.extend(text.as_bytes());
                to.push(0x94);
            }
            Py::List(parts) => {
                to.extend([b']', 0x94, b'(']);
                parts.iter().for_each(|part| part.pickle(to));
                to.push(b'e');
            }
            Py::Dict(pairs) => {
                to.extend([b'}', 0x94, b'(']);
                for (key, value) in pairs {
                    Py::Text(key).pickle(to);
                    value.pickle(to);
                }
                to.push(b'u');
            }
        }
    }
}

fn pickled(value: &Py) -> Vec<u8> {
    let mut bytes = vec![0x80, 4];
    value.pickle(&mut bytes);
    bytes.push(b'.');
    bytes
}

/// 26 November 2026, in microseconds, which are those of the history.
const DAY_US: i64 = 1_795_651_200_000_000;
const MIB: i64 = 1 << 20;

fn entry(
    action: &'static str,
    us: i64,
    address: i64,
    bytes: i64,
    frames: &[(&'static str, &'static str, i64)],
) -> Py {
    Py::Dict(vec![
        ("action", Py::Text(action)),
        ("addr", Py::Int(address)),
        ("size", Py::Int(bytes)),
        ("stream", Py::Int(0)),
        ("time_us", Py::Int(DAY_US + us)),
        ("frames", stack(frames)),
    ])
}

fn stack(frames: &[(&'static str, &'static str, i64)]) -> Py {
    let frame = |(name, file, line): &(&'static str, &'static str, i64)| {
        Py::Dict(vec![
            ("name", Py::Text(name)),
            ("filename", Py::Text(file)),
            ("line", Py::Int(*line)),
        ])
    };
    Py::List(frames.iter().map(frame).collect())
}

fn segment(address: i64, bytes: i64, blocks: &[(i64, &'static str)]) -> Py {
    let mut at = address;
    let blocks = blocks.iter().map(|(bytes, state)| {
        at += bytes;
        Py::Dict(vec![
            ("address", Py::Int(at - bytes)),
            ("size", Py::Int(*bytes)),
            ("requested_size", Py::Int(bytes - 10)),
            ("state", Py::Text(state)),
            ("frames", stack(&[])),
        ])
    });
    Py::Dict(vec![
        ("device", Py::Int(0)),
        ("address", Py::Int(address)),
        ("total_size", Py::Int(bytes)),
        ("blocks", Py::List(blocks.collect())),
    ])
}

fn range(stage: &'static str, us: i64, name: &'static str) -> Py {
    Py::Dict(vec![
        ("stage", Py::Text(stage)),
        ("name", Py::Text(name)),
        ("device", Py::Int(0)),
        ("time_us", Py::Int(DAY_US + us)),
    ])
}

fn snapshot(segments: Vec<Py>, entries: Vec<Py>, ranges: Vec<Py>) -> Py {
    Py::Dict(vec![
        ("segments", Py::List(segments)),
        ("device_traces", Py::List(vec![Py::List(entries)])),
        ("external_annotations", Py::List(ranges)),
    ])
}

fn import(value: &Py) -> Result<Import, Error> {
    import_bytes("memory.pickle", &pickled(value))
}

fn rows(trace: &Trace, kind: AllocatorMemoryKind) -> Vec<AllocatorRow> {
    let table = &trace.tables.allocator_memory;
    let rows = (0..table.len()).map(|row| table.row(row));
    rows.filter(|row| row.kind == kind).collect()
}

/// Address, bytes, and the microseconds of begin and end.
fn lives(trace: &Trace, kind: AllocatorMemoryKind) -> Vec<(u64, u64, Option<i64>, Option<i64>)> {
    let us = |ns: Option<i64>| ns.map(|ns| ns / 1000);
    let mut lives: Vec<_> = (rows(trace, kind).iter())
        .map(|row| {
            (
                row.address,
                row.bytes,
                us(row.allocated_ns),
                us(row.freed_ns),
            )
        })
        .collect();
    lives.sort_unstable();
    lives
}

#[test]
fn blocks_have_their_lives_stacks_and_labels() {
    let forward = [
        (
            "forward",
            "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/linear.py",
            134,
        ),
        (
            "_call_impl",
            "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py",
            1790,
        ),
        ("step", "/home/me/train.py", 29),
    ];
    let entries = vec![
        entry("segment_alloc", 10, 0x1000_0000, 4 * MIB, &[]),
        entry("alloc", 10, 0x1000_0000, 1000, &forward),
        entry("alloc", 20, 0x1000_0400, 2000, &forward),
        entry("free_requested", 30, 0x1000_0000, 1000, &[]),
        entry("free_completed", 40, 0x1000_0000, 1000, &[]),
        // The address is used again, by a range inside of another.
        entry(
            "alloc",
            50,
            0x1000_0000,
            500,
            &[("at::native::empty()", "??", 0)],
        ),
        entry("free_completed", 60, 0x2000_0000, 77, &[]),
    ];
    let segments = vec![
        segment(
            0x1000_0000,
            4 * MIB,
            &[
                (1024, "active_allocated"),
                (2048, "active_allocated"),
                (4 * MIB - 3072, "inactive"),
            ],
        ),
        segment(
            0x2000_0000,
            2 * MIB,
            &[(2048, "inactive"), (2 * MIB - 2048, "active_pending_free")],
        ),
    ];
    let ranges = vec![
        range("START", 15, "step"),
        range("START", 45, "inner"),
        range("END", 55, "inner"),
        range("END", 70, "step"),
    ];
    let trace = import(&snapshot(segments, entries, ranges)).unwrap().trace;
    assert_eq!(
        lives(&trace, AllocatorMemoryKind::Block),
        [
            (0x1000_0000, 500, Some(50), None),
            (0x1000_0000, 1000, Some(10), Some(40)),
            (0x1000_0400, 2000, Some(20), None),
            (0x2000_0000, 77, None, Some(60)),
            (0x2000_0800, 2 * (1 << 20) - 2048 - 10, None, None),
        ]
    );
    assert_eq!(
        lives(&trace, AllocatorMemoryKind::Segment),
        [
            (0x1000_0000, 4 << 20, Some(10), None),
            (0x2000_0000, 2 << 20, None, None)
        ]
    );
    let blocks = rows(&trace, AllocatorMemoryKind::Block);
    let label = |bytes| {
        let row = blocks.iter().find(|row| row.bytes == bytes).unwrap();
        let labels = &trace.tables.labels;
        let at = row
            .label
            .map(|id| labels.id.iter().position(|other| *other == id).unwrap());
        at.map(|at| {
            (
                labels.row(at).text.to_string(),
                labels.row(at).parent.is_some(),
            )
        })
    };
    assert_eq!(label(1000), None);
    assert_eq!(label(2000), Some(("step".to_owned(), false)));
    assert_eq!(label(500), Some(("inner".to_owned(), true)));
    assert_eq!(label(77), None);
    let frames = &trace.tables.frames;
    assert_eq!(frames.len(), 4);
    let python = frames
        .kind
        .iter()
        .filter(|kind| **kind == FrameKind::Python);
    assert_eq!(python.count(), 3);
    let own = frames
        .file
        .iter()
        .position(|file| file.as_deref() == Some("/home/me/train.py"))
        .unwrap();
    assert_eq!(frames.line.at(own), Some(29));
    assert_eq!(
        trace.tables.stacks.len(),
        4,
        "both blocks of forward have one stack"
    );
    // The segments are what the driver gave to the program.
    assert_eq!(trace.tables.memory.len(), 2);
    assert_eq!(trace.manifest.start_unix_ns, Some(DAY_US * 1000 + 10_000));
}

#[test]
fn a_segment_that_is_given_back_in_parts_lives_in_parts() {
    let entries = vec![
        entry("segment_map", 10, 0x1000, 0x4000, &[]),
        entry("segment_unmap", 20, 0x2000, 0x1000, &[]),
        // Half of this was mapped before the history.
        entry("segment_unmap", 30, 0x4000, 0x2000, &[]),
        entry("alloc", 35, 0x1000, 100, &[]),
    ];
    let segments = vec![
        segment(0x1000, 0x1000, &[(0x1000, "active_allocated")]),
        segment(0x3000, 0x1000, &[]),
    ];
    let trace = import(&snapshot(segments, entries, vec![])).unwrap().trace;
    assert_eq!(
        lives(&trace, AllocatorMemoryKind::Segment),
        [
            (0x1000, 0x1000, Some(10), None),
            (0x2000, 0x1000, Some(10), Some(20)),
            (0x3000, 0x1000, Some(10), None),
            (0x4000, 0x1000, Some(10), Some(30)),
            (0x5000, 0x1000, None, Some(30)),
        ]
    );
}

#[test]
fn a_pickle_that_names_code_is_refused() {
    // `os.system("true")`, as pickles run it.
    let mut bytes = pickled(&snapshot(vec![], vec![], vec![]));
    bytes.pop();
    bytes.extend(b"cos\nsystem\n(\x8c\x04truetR.");
    let error = import_bytes("memory.pickle", &bytes)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("gapscope runs no code of a pickle"),
        "{error}"
    );
    let error = import(&Py::Dict(vec![("segments_of", Py::Int(1))]))
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("a pickle of something else"), "{error}");
    let error = import(&snapshot(vec![], vec![], vec![]))
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("_record_memory_history"), "{error}");
}

#[test]
fn a_damaged_snapshot_is_refused_or_counted() {
    let entries = vec![
        entry("alloc", 10, 0x1000, 1000, &[("f", "a.py", 1)]),
        entry("segment_alloc", 10, 0x1000, 1 << 21, &[]),
        Py::Dict(vec![("action", Py::Text("alloc"))]),
        Py::Int(3),
    ];
    let whole = snapshot(
        vec![segment(0x1000, 1 << 21, &[(1024, "active_allocated")])],
        entries,
        vec![range("END", 20, "never begun")],
    );
    let imported = import(&whole).unwrap();
    assert_eq!(imported.loss("memory events"), 2);
    let bytes = pickled(&whole);
    for length in 0..bytes.len() {
        assert!(
            MemorySnapshot::read(&bytes[..length]).is_err(),
            "{length} bytes"
        );
    }
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x24;
        // Whatever it is: it ends, and without a panic.
        let _ = MemorySnapshot::read(&bytes);
    }
}

#[test]
fn a_small_pickle_does_not_become_large() {
    // One list of entries is that of each of 100,000 devices, and the list is an entry of itself.
    let mut bytes = vec![0x80, 4, b'}', 0x94, b'('];
    Py::Text("segments").pickle(&mut bytes);
    bytes.extend([b']', 0x94]);
    Py::Text("device_traces").pickle(&mut bytes);
    let entry = entry("alloc", 10, 0x1000, 1000, &[]);
    // The place of the list is beyond those that the texts get.
    bytes.extend([b']', b'(', b']', b'r', 0, 0, 16, 0, b'(']);
    for _ in 0..1000 {
        entry.pickle(&mut bytes);
    }
    bytes.extend([b'j', 0, 0, 16, 0, b'e']);
    bytes.extend([b'j', 0, 0, 16, 0].repeat(100_000));
    bytes.extend(b"eu.");
    let error = import_bytes("memory.pickle", &bytes)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("again and again"), "{error}");
}
