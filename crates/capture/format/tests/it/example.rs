//! Makes a capture with every kind of record, which the page on the format shows and the kept fixture of this version
//! holds.
//!
//! `x` has 64 floats. The first submission scales it into `y` and copies that to `z`; the second, after the host wrote `x`
//! again, scales it with an indirect dispatch.

use std::io::Result;
use std::path::Path;

use gapscope_capture::model::*;
use gapscope_capture::{VULKAN_FORMAT, Writer};

use crate::kernel;

pub const COUNT: usize = 64;
/// Offsets of the buffers in their allocation.
const X: u64 = 0;
const Y: u64 = 256;
const Z: u64 = 512;
const ARGUMENTS: u64 = 768;

fn floats(of: impl Fn(usize) -> f32) -> Vec<u8> {
    (0..COUNT).flat_map(|i| of(i).to_le_bytes()).collect()
}

pub fn header() -> Header {
    Header {
        format: VULKAN_FORMAT,
        api: CapturedApi::Vulkan,
        gapscope: "0.1.0".to_owned(),
        command: vec!["./scale".to_owned(), "64".to_owned()],
        pid: 4711,
        started_unix_ns: 1_795_363_200_000_000_000,
        window: "submissions 0..2".to_owned(),
        device: Device {
            name: "llvmpipe (LLVM 15.0.6, 256 bits)".to_owned(),
            vendor_id: 0x10005,
            device_id: 0,
            driver: "llvmpipe, Mesa 25.0.7".to_owned(),
            driver_version: 1,
            api_version: (1 << 22) | (3 << 12),
            pipeline_cache_uuid: "766b2d6d657361323530303700000000".to_owned(),
            subgroup_size: 8,
            extensions: vec!["VK_KHR_timeline_semaphore".to_owned()],
            features: vec!["timelineSemaphore".to_owned()],
        },
    }
}

fn buffer(id: u32, name: &str, offset: u64, bytes: u64) -> Record {
    Record::Buffer(Buffer {
        id: BufferId(id),
        name: Some(name.to_owned()),
        bytes,
        // Transfers, storage buffer, indirect.
        usage: 0x123,
        offset,
        ..Buffer::default()
    })
}

fn whole(buffer: u32) -> BufferRange {
    BufferRange::from_start(BufferId(buffer), 256)
}

/// Returns a dependency of all later accesses on all earlier writes.
fn everything() -> Dependency {
    Dependency {
        after_stages: 0x1_0000,
        after_access: 0x1_0000,
        before_stages: 0x1_0000,
        before_access: 0x1_8000,
    }
}

fn scale(groups: Groups, factor: f32) -> Command {
    let binding = |binding, buffer, read_only| Binding {
        binding,
        descriptor_type: 7,
        range: Some(whole(buffer)),
        read_only,
        ..Binding::default()
    };
    let mut push_constants = (COUNT as u32).to_le_bytes().to_vec();
    push_constants.extend(factor.to_le_bytes());
    Command::Dispatch(Dispatch {
        pipeline: PipelineId(0),
        groups,
        base: [0; 3],
        push_constants,
        bindings: vec![binding(0, 0, true), binding(1, 1, false)],
    })
}

fn barrier() -> Command {
    Command::Barrier(Barrier::of_memory(everything()))
}

/// Returns the arguments of an indirect dispatch.
fn one_group() -> Vec<u8> {
    [1u32, 1, 1].map(u32::to_le_bytes).concat()
}

fn objects(writer: &mut Writer) -> Result<()> {
    writer.record(&Record::Memory(Memory {
        id: MemoryId(0),
        bytes: 65_536,
        properties: 1,
    }))?;
    for (id, name, offset, bytes) in [
        (0, "x", X, 256),
        (1, "y", Y, 256),
        (2, "z", Z, 256),
        (3, "arguments", ARGUMENTS, 12),
    ] {
        writer.record(&buffer(id, name, offset, bytes))?;
    }
    let bindings = [0, 1].map(|binding| LayoutBinding::for_compute(binding, 7));
    let pipeline = Pipeline {
        name: "scale".to_owned(),
        entry: "main".to_owned(),
        constants: vec![Constant {
            id: 0,
            value: 64u32.to_le_bytes().to_vec(),
        }],
        ..Pipeline::default()
    };
    writer.kernel(0, &kernel::scale(), bindings.to_vec(), 8, pipeline)?;
    writer.record(&Record::Queue(Queue {
        flags: 7,
        ..Queue::default()
    }))
}

fn first_submission(writer: &mut Writer) -> Result<()> {
    let x = floats(|i| i as f32);
    writer.content(MemoryId(0), X, &x, ContentCause::FirstUse)?;
    let commands = |id, commands| {
        Record::Commands(Commands {
            id: CommandsId(id),
            commands,
        })
    };
    writer.record(&commands(
        0,
        vec![
            Command::Label(Label::Begin("step 0".to_owned())),
            Command::Update(Update {
                buffer: BufferId(3),
                offset: 0,
                data: one_group(),
            }),
            Command::Fill(Fill {
                range: whole(2),
                value: 0,
            }),
            scale(Groups::Direct([1, 1, 1]), 2.0),
            Command::Barrier(Barrier {
                flags: 0,
                memory: vec![],
                buffers: vec![(everything(), whole(1)), (everything(), whole(2))],
            }),
            Command::Label(Label::End),
        ],
    ))?;
    writer.record(&commands(
        1,
        vec![Command::Copy(Copy::from_start(
            BufferId(1),
            BufferId(2),
            256,
        ))],
    ))?;
    let at_1 = SemaphoreUse {
        semaphore: SemaphoreId(0),
        value: Some(1),
        stages: 0x1_0000,
    };
    let batch = |waits, id, signals| Batch {
        waits,
        commands: vec![CommandsId(id)],
        signals,
    };
    writer.record(&Record::Submission(Submission {
        queue: QueueId(0),
        called_ns: 125_000,
        device_ns: Some(61_500),
        batches: vec![batch(vec![], 0, vec![at_1]), batch(vec![at_1], 1, vec![])],
    }))?;
    let y = floats(|i| i as f32 * 2.0);
    let mut written = [&*y, &*y].concat();
    written.extend(one_group());
    writer.outcome(MemoryId(0), Y, &written)
}

fn second_submission(writer: &mut Writer) -> Result<()> {
    let x = floats(|i| i as f32 + 1.0);
    writer.content(MemoryId(0), X, &x, ContentCause::HostWrite)?;
    let arguments = BufferRange::from_start(BufferId(3), 12);
    writer.record(&Record::Commands(Commands {
        id: CommandsId(2),
        commands: vec![
            barrier(),
            Command::Label(Label::Instant("step 1".to_owned())),
            scale(Groups::Indirect(arguments), 0.5),
        ],
    }))?;
    writer.record(&Record::Submission(Submission {
        called_ns: 310_000,
        device_ns: Some(40_250),
        ..Submission::with_commands(QueueId(0), CommandsId(2))
    }))?;
    writer.outcome(MemoryId(0), Y, &floats(|i| (i as f32 + 1.0) * 0.5))
}

/// Writes the example into a folder, which must not exist.
pub fn write(folder: &Path) {
    let written = || {
        let mut writer = Writer::create(folder, header())?;
        objects(&mut writer)?;
        first_submission(&mut writer)?;
        second_submission(&mut writer)?;
        writer.record(&Record::End(End {
            reason: EndReason::Complete,
            after_ns: 420_000,
        }))
    };
    written().expect("the example can be written");
}
