//! Builds captures for the tests: buffers, kernels, commands and submissions go in, a capture comes out.

use gapscope_capture::model::*;
use gapscope_capture::{Capture, Writer};
use gapscope_dependencies::{Dependencies, Limits, Node};
use tempfile::TempDir;

/// `VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER`
const UNIFORM: u32 = 6;
/// `VK_DESCRIPTOR_TYPE_STORAGE_BUFFER`
const STORAGE: u32 = 7;

/// Compiles WGSL as wgpu does, but without the bounds checks that wgpu adds.
pub fn compile(wgsl: &str) -> Vec<u8> {
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    let module = naga::front::wgsl::parse_str(wgsl).expect("the kernel parses");
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
    let info = validator.validate(&module).expect("the kernel is valid");
    let options = naga::back::spv::Options {
        lang_version: (1, 3),
        force_loop_bounding: false,
        ..Default::default()
    };
    let words = naga::back::spv::write_vec(&module, &info, &options, None).expect("it has SPIR-V");
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A bound buffer, by its number, and the range in it.
#[derive(Debug, Clone, Copy)]
pub struct Bound {
    pub buffer: u32,
    pub offset: u64,
    pub bytes: u64,
    pub uniform: bool,
    pub read_only: bool,
}

impl Bound {
    fn descriptor_type(&self) -> u32 {
        if self.uniform { UNIFORM } else { STORAGE }
    }
}

/// A capture that is being written.
pub struct Program {
    folder: TempDir,
    writer: Writer,
    kernels: u32,
    lists: u32,
    buffers: Vec<u64>,
    /// Stages that wait for semaphores.
    pub wait_stages: u64,
}

impl Program {
    /// Begins a capture with buffers of so many bytes. Each has its own allocation, and they are numbered from 0.
    pub fn new(buffers: &[u64]) -> Program {
        let folder = TempDir::new().expect("a folder");
        let device = Device {
            pipeline_cache_uuid: "0".repeat(32),
            subgroup_size: 32,
            ..Device::default()
        };
        let header = Header {
            format: gapscope_capture::VULKAN_FORMAT,
            api: gapscope_capture::model::CapturedApi::Vulkan,
            device,
            ..Header::default()
        };
        let mut writer = Writer::create(&folder.path().join("c"), header).expect("a capture");
        for (id, bytes) in (0..).zip(buffers) {
            let memory = Memory {
                id: MemoryId(id),
                bytes: *bytes,
                ..Memory::default()
            };
            writer.record(&Record::Memory(memory)).expect("written");
            let buffer = Buffer {
                id: BufferId(id),
                bytes: *bytes,
                memory: MemoryId(id),
                ..Buffer::default()
            };
            writer.record(&Record::Buffer(buffer)).expect("written");
        }
        for id in 0..2 {
            let queue = Queue {
                id: QueueId(id),
                index: id,
                ..Queue::default()
            };
            writer.record(&Record::Queue(queue)).expect("written");
        }
        Program {
            folder,
            writer,
            kernels: 0,
            lists: 0,
            buffers: buffers.to_vec(),
            wait_stages: 0x1_0000,
        }
    }

    pub fn record(&mut self, record: &Record) {
        self.writer.record(record).expect("written");
    }

    /// Returns the binding of a whole buffer.
    pub fn whole(&self, buffer: u32) -> Bound {
        Bound {
            buffer,
            offset: 0,
            bytes: self.buffers[buffer as usize],
            uniform: false,
            read_only: false,
        }
    }

    /// Sets the initial contents of a buffer.
    pub fn content(&mut self, buffer: u32, bytes: &[u8]) {
        let cause = ContentCause::FirstUse;
        (self.writer.content(MemoryId(buffer), 0, bytes, cause)).expect("written");
    }

    /// Adds a kernel with buffers at the bindings 0, 1, … of set 0.
    pub fn kernel(
        &mut self,
        spirv: &[u8],
        bound: &[Bound],
        constants: &[(u32, u32)],
        push_constants: u32,
    ) -> PipelineId {
        let id = self.kernels;
        self.kernels += 1;
        let slot = |(binding, bound): (u32, &Bound)| {
            LayoutBinding::for_compute(binding, bound.descriptor_type())
        };
        let constant = |(id, value): &(u32, u32)| Constant {
            id: *id,
            value: value.to_le_bytes().to_vec(),
        };
        let pipeline = Pipeline {
            name: format!("kernel {id}"),
            entry: "main".to_owned(),
            constants: constants.iter().map(constant).collect(),
            ..Pipeline::default()
        };
        let bindings = (0..).zip(bound).map(slot).collect();
        (self.writer)
            .kernel(id, spirv, bindings, push_constants, pipeline)
            .expect("written")
    }

    /// Adds a submission of commands to a queue.
    pub fn submit(&mut self, queue: u32, commands: Vec<Command>) {
        self.submit_with(queue, commands, &[], &[]);
    }

    pub fn submit_with(
        &mut self,
        queue: u32,
        commands: Vec<Command>,
        waits: &[u32],
        signals: &[u32],
    ) {
        let id = CommandsId(self.lists);
        self.lists += 1;
        self.record(&Record::Commands(Commands { id, commands }));
        let uses = |of: &[u32], stages: u64| {
            let each = of.iter().map(|id| SemaphoreUse {
                semaphore: SemaphoreId(*id),
                value: None,
                stages,
            });
            each.collect()
        };
        self.record(&Record::Submission(Submission {
            queue: QueueId(queue),
            batches: vec![Batch {
                waits: uses(waits, self.wait_stages),
                commands: vec![id],
                signals: uses(signals, 0x1_0000),
            }],
            ..Submission::default()
        }));
    }

    pub fn finish(mut self) -> (Capture, TempDir) {
        self.record(&Record::End(End::default()));
        drop(self.writer);
        let (capture, problem) = Capture::open(&self.folder.path().join("c")).expect("a capture");
        assert_eq!(problem, None);
        (capture, self.folder)
    }

    pub fn dependencies(self) -> Dependencies {
        let (capture, _folder) = self.finish();
        Dependencies::from_capture(&capture, Limits::default(), &mut |_| {})
    }
}

/// Returns a dispatch of so many workgroups.
pub fn dispatch(
    pipeline: PipelineId,
    groups: [u32; 3],
    push_constants: &[u32],
    bound: &[Bound],
) -> Command {
    let binding = |(binding, bound): (u32, &Bound)| Binding {
        binding,
        descriptor_type: bound.descriptor_type(),
        range: Some(BufferRange {
            buffer: BufferId(bound.buffer),
            offset: bound.offset,
            bytes: bound.bytes,
        }),
        read_only: bound.read_only,
        ..Binding::default()
    };
    Command::Dispatch(Dispatch {
        pipeline,
        groups: Groups::Direct(groups),
        base: [0; 3],
        push_constants: (push_constants.iter())
            .flat_map(|c| c.to_le_bytes())
            .collect(),
        bindings: (0..).zip(bound).map(binding).collect(),
    })
}

/// Returns a barrier of all memory from kernels' writes to kernels' reads and writes.
pub fn barrier() -> Command {
    memory_barrier(0x800, 0x40, 0x800, 0x60)
}

pub fn memory_barrier(
    after_stages: u64,
    after_access: u64,
    before_stages: u64,
    before_access: u64,
) -> Command {
    Command::Barrier(Barrier::of_memory(Dependency {
        after_stages,
        after_access,
        before_stages,
        before_access,
    }))
}

/// Returns the words of a binding that the first dispatch reads or writes. The error says why they are only bounded.
pub fn words(node: &Node, binding: u32, writes: bool) -> Result<Vec<u64>, String> {
    let access = (node.accesses.iter())
        .find(|access| access.binding == Some((0, binding, 0)) && access.writes() == writes);
    let Some(access) = access else {
        return Ok(Vec::new());
    };
    match &access.bound {
        Some(reason) => Err(reason.clone()),
        None => {
            let ranges = access.set.ranges().iter();
            Ok(ranges
                .flat_map(|range| range.start / 4..range.end / 4)
                .collect())
        }
    }
}
