//! Checks that captures that are read equal those that were written.

use std::collections::BTreeMap;
use std::path::Path;

use gapscope_capture::model::*;
use gapscope_capture::{CHUNK_BYTES, Capture, Hash, Record, Step};
use proptest::prelude::*;

use crate::any_capture::{self, Written};
use crate::example;

/// Opens a capture without a problem.
pub fn open(folder: &Path) -> Capture {
    let (capture, problem) = Capture::open(folder).expect("it opens");
    assert_eq!(problem, None);
    capture
}

/// Follows every id and range of a capture, which must be there and in bounds.
pub fn walk(capture: &Capture) {
    let inside = |memory: MemoryId, offset: u64, bytes: u64| {
        let end = offset.checked_add(bytes);
        assert!(end.is_some_and(|end| end <= capture.memories[&memory].bytes));
    };
    let in_buffer = |range: BufferRange| {
        let (memory, offset) = capture.place(range);
        inside(memory, offset, range.bytes);
    };
    for command in capture.executed() {
        match command {
            Command::Dispatch(dispatch) => {
                let pipeline = &capture.pipelines[&dispatch.pipeline];
                assert!(capture.modules.contains_key(&pipeline.module));
                (dispatch.bindings.iter())
                    .filter_map(|binding| binding.range)
                    .for_each(in_buffer);
            }
            Command::Copy(copy) => {
                let ranges = copy.regions.iter().flat_map(|region| copy.ranges(region));
                ranges.for_each(in_buffer);
            }
            Command::Fill(fill) => in_buffer(fill.range),
            Command::Update(update) => in_buffer(update.range()),
            Command::Barrier(barrier) => {
                (barrier.buffers.iter()).for_each(|(_, range)| in_buffer(*range));
            }
            Command::Label(_) => {}
        }
    }
    for step in &capture.steps {
        if let Step::Content(content) = step {
            let bytes = content_bytes(capture, content);
            inside(content.memory, content.offset, bytes.len() as u64);
        }
    }
}

/// Returns the bytes of a content. Those of damaged pieces are zeros.
pub fn content_bytes(capture: &Capture, content: &Content) -> Vec<u8> {
    let piece = |hash: &Hash| {
        let expected = capture.chunk_bytes(*hash).expect("it is here") as usize;
        let bytes = capture.chunk(*hash).unwrap_or_else(|_| vec![0; expected]);
        assert_eq!(bytes.len(), expected);
        bytes
    };
    content.chunks.iter().flat_map(piece).collect()
}

fn check(written: &[Written], capture: &Capture) {
    let mut steps = capture.steps.iter();
    for one in written {
        match one {
            Written::Content(memory, offset, bytes, cause) => {
                let Some(Step::Content(found)) = steps.next() else {
                    panic!("content is missing");
                };
                let place = (found.memory, found.offset, found.cause);
                assert_eq!(place, (*memory, *offset, *cause));
                assert_eq!(&content_bytes(capture, found), bytes);
            }
            Written::Outcome(memory, offset, bytes) => {
                let Some(Step::Outcome(found)) = steps.next() else {
                    panic!("an outcome is missing");
                };
                let place = (found.memory, found.offset, found.bytes);
                assert_eq!(place, (*memory, *offset, bytes.len() as u64));
                let first = bytes
                    .len()
                    .min((CHUNK_BYTES - offset % CHUNK_BYTES) as usize);
                assert_eq!(found.hashes[0], Hash::new(&bytes[..first]));
            }
            Written::Module(id, bytes) => {
                let found = capture.chunk(capture.modules[id].code);
                assert_eq!(&found.expect("the shader is there"), bytes);
            }
            Written::Record(Record::Submission(submission)) => {
                assert_eq!(steps.next(), Some(&Step::Submission(submission.clone())));
            }
            Written::Record(Record::End(end)) => assert_eq!(capture.end.as_ref(), Some(end)),
            Written::Record(_) => {}
        }
    }
    assert_eq!(steps.next(), None);
    let objects = written.iter().filter_map(|one| match one {
        Written::Record(record) => Some(record),
        _ => None,
    });
    macro_rules! same {
        ($($kind:ident: $field:ident,)+) => {$(
            let expected: BTreeMap<_, _> = objects.clone().filter_map(|record| match record {
                Record::$kind(object) => Some((object.id, object.clone())),
                _ => None,
            }).collect();
            assert_eq!(capture.$field, expected);
        )+};
    }
    same! {
        Memory: memories,
        Buffer: buffers,
        SetLayout: set_layouts,
        PipelineLayout: pipeline_layouts,
        Pipeline: pipelines,
        Queue: queues,
    }
    let commands: BTreeMap<_, _> = (objects.clone())
        .filter_map(|record| match record {
            Record::Commands(Commands { id, commands }) => Some((*id, commands.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(capture.commands, commands);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_capture_is_read_as_it_was_written(written in any_capture::any()) {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("a.gapcapture");
        any_capture::write(&folder, &written).expect("it can be written");
        let capture = open(&folder);
        prop_assert_eq!(&capture.header, &example::header());
        check(&written, &capture);
        walk(&capture);
    }
}

#[test]
fn any_capture_has_dispatches_and_content() {
    // The property above says nothing about records that are never generated.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut dispatches, mut contents) = (0, 0);
    for _ in 0..200 {
        let made = any_capture::any()
            .new_tree(&mut runner)
            .expect("it is made");
        for written in proptest::strategy::ValueTree::current(&made) {
            match written {
                Written::Record(Record::Commands(Commands { commands, .. })) => {
                    let dispatch = |command: &&Command| matches!(command, Command::Dispatch(_));
                    dispatches += commands.iter().filter(dispatch).count();
                }
                Written::Content(..) => contents += 1,
                _ => {}
            }
        }
    }
    assert!(dispatches > 50, "{dispatches}");
    assert!(contents > 50, "{contents}");
}

#[test]
fn the_same_bytes_are_kept_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("a.gapcapture");
    let memory = MemoryId(0);
    let bytes = 4 * CHUNK_BYTES;
    let zeros = vec![0; bytes as usize];
    let content = |cause| Written::Content(memory, 0, zeros.clone(), cause);
    let written = [
        Written::Record(Record::Memory(Memory {
            id: memory,
            bytes,
            properties: 0,
        })),
        content(ContentCause::FirstUse),
        content(ContentCause::HostWrite),
    ];
    any_capture::write(&folder, &written).expect("it can be written");
    let content = std::fs::metadata(folder.join(gapscope_capture::CONTENT));
    assert!(content.expect("it is there").len() < 100);
    check(&written, &open(&folder));
}

#[test]
#[ignore = "writes inputs for the fuzz target `capture`: after the format has changed"]
fn write_inputs() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/capture");
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut kept = 0;
    while kept < 24 {
        let made = any_capture::any()
            .new_tree(&mut runner)
            .expect("it is made");
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("a.gapcapture");
        let written = proptest::strategy::ValueTree::current(&made);
        any_capture::write(&folder, &written).expect("it can be written");
        let file = |name| std::fs::read(folder.join(name)).expect("it is there");
        let input = [
            file(gapscope_capture::RECORDS),
            file(gapscope_capture::CONTENT),
        ]
        .join(&0);
        let capture = open(&folder);
        if input.len() < 12_000 && capture.executed().count() > 3 && !capture.pipelines.is_empty() {
            std::fs::write(corpus.join(format!("any-{kept:02}")), input).expect("it can be kept");
            kept += 1;
        }
    }
}

#[test]
fn secrets_of_the_command_line_are_neither_written_nor_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.gapcapture");
    let mut header = example::header();
    header.command = ["train", "--password", "planted"].map(str::to_owned).into();
    drop(gapscope_capture::Writer::create(&path, header).expect("a capture"));
    let records = path.join("capture.jsonl");
    let text = std::fs::read_to_string(&records).expect("text");
    assert!(!text.contains("planted"), "{text}");
    // Another program may have written it.
    std::fs::write(&records, text.replace("***", "planted")).expect("a file");
    let (capture, _) = Capture::open(&path).expect("it opens");
    assert_eq!(capture.header.command, ["train", "--password", "***"]);
}
