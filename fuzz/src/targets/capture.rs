//! A capture, which is a window of a program's commands, or of its launches of CUDA, with the content of memory: an input is `capture.jsonl`
//! with the records, a zero byte, and `content.bin` with the content in pieces, which records name by their hash.

use crate::bytes::{self, MutateBytes};
use crate::{Target, json, memory, outcome, scratch};
use fastrand::Rng;
use gapscope_capture::cuda::{CudaCapture, CudaStep, MemoryPlace};
use gapscope_capture::model::*;
use gapscope_capture::{
    AnyCapture, CONTENT, Capture, Hash, Problem, RECORDS, ReadError, Record, Step,
};
use gapscope_dependencies::{Dependencies, Limits};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use tempfile::TempDir;

/// The target.
pub const TARGET: Target = Target {
    name: "capture",
    read: |input| drop(open(input)),
    mutate,
};

/// The memory for reading a capture, for each byte of its records.
const MEMORY_PER_BYTE: usize = 32;
/// The memory for reading any capture.
const MEMORY_BESIDES: usize = 128 << 10;
/// The maximum number of commands that are walked in a window which repeats its commands.
const MAX_WALKED: usize = 100_000;
/// The maximum number of commands in a window whose dependencies are computed.
const MAX_FOLLOWED: usize = 300;

thread_local! {
    /// The folder of the thread's inputs, one after the other.
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// Opens a capture and walks all its content.
///
/// # Errors
/// The bytes are no capture.
pub fn open(input: &[u8]) -> Result<(AnyCapture, Option<Problem>), ReadError> {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(scratch::folder).path();
        let zero = input.iter().position(|byte| *byte == 0);
        let (records, content) = input.split_at(zero.unwrap_or(input.len()));
        scratch::file(folder, RECORDS, records);
        scratch::file(folder, CONTENT, content.get(1..).unwrap_or_default());
        let (opened, most) = memory::with_peak(|| AnyCapture::open(folder));
        let allowed = MEMORY_BESIDES + MEMORY_PER_BYTE * records.len();
        assert!(most <= allowed, "{most} bytes of memory, and not {allowed}");
        match opened {
            Ok((capture, problem)) => {
                if let Some(problem) = &problem {
                    outcome::harmless(&problem.to_string());
                }
                match &capture {
                    AnyCapture::Vulkan(capture) => walk(capture),
                    AnyCapture::Cuda(capture) => walk_cuda(capture),
                }
                Ok((capture, problem))
            }
            Err(error) => {
                outcome::harmless(&error.to_string());
                Err(error)
            }
        }
    })
}

/// Follows every reference of a capture, and panics where one leads nowhere or out of its memory.
fn walk(capture: &Capture) {
    for module in capture.modules.values() {
        piece(capture, module.code);
    }
    for step in &capture.steps {
        match step {
            Step::Content(content) => {
                let mut end = content.offset;
                for hash in &content.chunks {
                    end += piece(capture, *hash);
                }
                inside(
                    capture,
                    content.memory,
                    content.offset,
                    end - content.offset,
                );
            }
            Step::Outcome(Outcome {
                memory,
                offset,
                bytes,
                ..
            }) => inside(capture, *memory, *offset, *bytes),
            Step::Submission(submission) => {
                assert!(capture.queues.contains_key(&submission.queue));
            }
        }
    }
    for command in capture.executed().take(MAX_WALKED) {
        ranges(command, &mut |range| {
            let (memory, offset) = capture.place(range);
            inside(capture, memory, offset, range.bytes);
        });
        if let Command::Dispatch(dispatch) = command {
            let pipeline = &capture.pipelines[&dispatch.pipeline];
            let layout = &capture.pipeline_layouts[&pipeline.layout];
            for binding in &dispatch.bindings {
                let set = layout.sets[binding.set as usize].expect("it has a layout");
                let slots = &capture.set_layouts[&set].bindings;
                let slot = slots.iter().find(|slot| slot.binding == binding.binding);
                let slot = slot.expect("it is in the layout");
                assert!(binding.element < slot.count);
                assert_eq!(binding.descriptor_type, slot.descriptor_type);
            }
        }
    }
    if capture.executed().count() <= MAX_FOLLOWED {
        dependencies(capture);
    }
}

/// Follows every reference of a capture of CUDA, as [`walk`] does.
fn walk_cuda(capture: &CudaCapture) {
    let piece = |hash: Hash| {
        let claimed = capture.chunk_bytes(hash).expect("it is here");
        if let Ok(bytes) = capture.chunk(hash) {
            assert_eq!(bytes.len(), claimed as usize);
        }
        u64::from(claimed)
    };
    let inside = |memory: MemoryId, offset: u64, bytes: u64| {
        let end = offset.checked_add(bytes).expect("an end");
        assert!(end <= capture.memories[&memory].bytes);
    };
    for module in capture.modules.values() {
        assert!(module.code.iter().map(|hash| piece(*hash)).sum::<u64>() > 0);
    }
    let replaced: BTreeMap<MemoryId, MemoryId> = capture.replaced().collect();
    for memory in capture.memories.values() {
        let end = memory.address.checked_add(memory.bytes).expect("an end");
        match (&memory.place, replaced.get(&memory.id)) {
            (MemoryPlace::Global { module, .. }, _) => {
                assert!(capture.modules.contains_key(module));
            }
            // The newer memory took some of the bytes.
            (_, Some(newer)) => {
                let newer = &capture.memories[newer];
                assert!(newer.address < end && memory.address < newer.address + newer.bytes);
            }
            (_, None) => {
                let found = capture.allocation_at(end - 1);
                assert_eq!(found, Some((memory.id, memory.bytes - 1)));
            }
        }
    }
    for step in &capture.steps {
        match step {
            CudaStep::Content(content) => {
                let bytes = content.chunks.iter().map(|hash| piece(*hash)).sum();
                inside(content.memory, content.offset, bytes);
            }
            CudaStep::Outcome(outcome) => inside(outcome.memory, outcome.offset, outcome.bytes),
            CudaStep::Launch(launch) => {
                assert!(capture.modules.contains_key(&launch.module));
                let mut reached = launch.reached.iter();
                assert!(reached.all(|id| capture.memories.contains_key(id)));
                for relocation in &launch.relocations {
                    assert!(relocation.at as usize + 8 <= launch.parameters.len());
                    let place = &capture.memories[&relocation.memory].place;
                    assert!(matches!(place, MemoryPlace::Global { .. }));
                }
            }
        }
    }
    if capture.steps.len() <= MAX_FOLLOWED {
        let (found, is_all) = Dependencies::from_cuda(capture);
        let nodes = found.graph.nodes.len();
        assert!(is_all && nodes <= capture.steps.len());
        let edges = &found.graph.edges;
        assert!(
            edges
                .iter()
                .all(|edge| edge.from < edge.to && edge.to < nodes)
        );
    }
}

/// Computes the dependencies of short windows.
fn dependencies(capture: &Capture) {
    let limits = Limits {
        steps: 100_000,
        steps_of_all: 500_000,
        ranges: 1 << 12,
        threads: 1,
    };
    let found = Dependencies::from_capture(capture, limits, &mut |_| {});
    let nodes = found.graph.nodes.len();
    assert!(nodes <= capture.executed().count());
    for edge in &found.graph.edges {
        assert!(edge.from < edge.to && edge.to < nodes, "{edge:?}");
    }
    assert_eq!(found.orders.len(), found.graph.edges.len());
    let named = found.hazards.iter().chain(&found.possible_hazards);
    assert!(named.max().is_none_or(|edge| *edge < found.orders.len()));
}

/// Returns the size that a piece claims. Panics if the piece can be read and has another size or hash.
fn piece(capture: &Capture, hash: Hash) -> u64 {
    let claimed = capture.chunk_bytes(hash).expect("it is here");
    if let Ok(bytes) = capture.chunk(hash) {
        assert_eq!(bytes.len(), claimed as usize);
        assert_eq!(Hash::new(&bytes), hash);
    }
    claimed.into()
}

/// Panics unless a range lies in a memory.
fn inside(capture: &Capture, memory: MemoryId, offset: u64, bytes: u64) {
    let end = offset.checked_add(bytes).expect("an end");
    assert!(end <= capture.memories[&memory].bytes);
}

/// Calls `take` with each range of a buffer that a command names.
fn ranges(command: &Command, take: &mut dyn FnMut(BufferRange)) {
    let range = |buffer, offset, bytes| BufferRange {
        buffer,
        offset,
        bytes,
    };
    match command {
        Command::Dispatch(dispatch) => {
            if let Groups::Indirect(range) = dispatch.groups {
                take(range);
            }
            let bound = dispatch.bindings.iter().filter_map(|bound| bound.range);
            bound.for_each(take);
        }
        Command::Copy(copy) => {
            for region in &copy.regions {
                take(range(copy.from, region.from, region.bytes));
                take(range(copy.to, region.to, region.bytes));
            }
        }
        Command::Fill(fill) => take(fill.range),
        Command::Update(update) => {
            take(range(
                update.buffer,
                update.offset,
                update.data.len() as u64,
            ));
        }
        Command::Barrier(barrier) => {
            barrier.buffers.iter().for_each(|(_, range)| take(*range));
        }
        Command::Label(_) => {}
    }
}

/// Changes records, content, or a piece of content together with its hash.
fn mutate(input: &mut Vec<u8>, rng: &mut Rng, mutate_bytes: MutateBytes<'_>) {
    let zero = input.iter().position(|byte| *byte == 0);
    let mut content = input.split_off(zero.unwrap_or(input.len()));
    match rng.u8(0..16) {
        0 => mutate_bytes(input, rng),
        1 => mutate_bytes(&mut content, rng),
        6..9 => change_piece(input, &mut content, rng, mutate_bytes),
        2 | 3 => bytes::change_value(input, rng),
        4..6 => bytes::change_lines(input, rng),
        _ => change_record(input, rng, mutate_bytes),
    }
    // A remaining `check` line would reveal the change at once.
    if rng.u8(0..16) > 0 {
        let lines = input.split_inclusive(|byte| *byte == b'\n');
        let without = lines.filter(|line| !line.starts_with(b"{\"check\""));
        *input = without.collect::<Vec<_>>().concat();
    }
    input.extend(content);
}

/// Changes the JSON of one record, or its bytes where it is none.
fn change_record(input: &mut Vec<u8>, rng: &mut Rng, mutate_bytes: MutateBytes<'_>) {
    let mut lines: Vec<Vec<u8>> = input
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let at = rng.usize(0..lines.len());
    if !json::change_document(&mut lines[at], rng) {
        mutate_bytes(&mut lines[at], rng);
    }
    *input = lines.join(&b'\n');
}

/// Changes a piece of content, and replaces its hash wherever it is used.
fn change_piece(
    input: &mut Vec<u8>,
    content: &mut Vec<u8>,
    rng: &mut Rng,
    mutate_bytes: MutateBytes<'_>,
) {
    let mut records: Vec<Option<Record>> = input
        .split(|byte| *byte == b'\n')
        .map(|line| serde_json::from_slice(line).ok())
        .collect();
    let chunks = records.iter_mut().filter_map(|record| match record {
        Some(Record::Chunk(chunk)) => Some(chunk),
        _ => None,
    });
    let mut chunks: Vec<&mut Chunk> = chunks.collect();
    if chunks.is_empty() {
        return;
    }
    let changed = rng.usize(0..chunks.len());
    // The content begins behind the zero byte.
    let all = content.split_off(1.min(content.len()));
    let mut old = None;
    let mut frames = Vec::new();
    for (at, chunk) in chunks.iter_mut().enumerate() {
        let from = usize::try_from(chunk.at)
            .unwrap_or(usize::MAX)
            .min(all.len());
        let to = from.saturating_add(chunk.stored as usize).min(all.len());
        let mut frame = all[from..to].to_vec();
        if at == changed
            && let Ok(mut bytes) =
                zstd::bulk::decompress(&frame, (chunk.bytes as usize).min(1 << 16))
        {
            mutate_bytes(&mut bytes, rng);
            // SPIR-V has whole words.
            bytes.truncate(bytes.len() & !3);
            old = Some((chunk.hash, Hash::new(&bytes)));
            chunk.hash = Hash::new(&bytes);
            chunk.bytes = bytes.len() as u32;
            frame = zstd::bulk::compress(&bytes, 1).unwrap_or_default();
        }
        chunk.at = frames.len() as u64;
        chunk.stored = frame.len() as u32;
        frames.extend(frame);
    }
    content.extend(frames);
    let lines = input.split(|byte| *byte == b'\n').zip(&records);
    let text = lines.map(|(line, record)| match record {
        Some(Record::Chunk(chunk)) => {
            serde_json::to_string(&Record::Chunk(*chunk)).unwrap_or_default()
        }
        _ => String::from_utf8_lossy(line).into_owned(),
    });
    let text = text.collect::<Vec<_>>().join("\n");
    *input = match old {
        Some((old, new)) => text.replace(&old.to_string(), &new.to_string()),
        None => text,
    }
    .into_bytes();
}
