//! Makes captures from kernels in WGSL and outcomes that the tests compute.

use std::path::{Path, PathBuf};

use gapscope_capture::model::*;
use gapscope_capture::{Capture, Writer};
use naga::valid::{Capabilities, ValidationFlags, Validator};

pub const STORAGE: u32 = 7;
pub const MEMORY: MemoryId = MemoryId(0);
pub const DEVICE_MEMORY: u64 = 1 << 20;

/// `VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT` and `VK_ACCESS_2_SHADER_…`.
const COMPUTE: u64 = 0x800;
const READ: u64 = 0x20;
const WRITE: u64 = 0x40;

/// A capture that is being made, with one allocation and one queue.
pub struct Made {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
    pub writer: Writer,
    next: u32,
}

impl Made {
    pub fn new() -> Made {
        Made::of_device(|_| {})
    }

    pub fn of_device(change: impl FnOnce(&mut Device)) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("made.gapcapture");
        let mut device = Device {
            name: "a device that is nowhere".to_owned(),
            pipeline_cache_uuid: "0".repeat(32),
            subgroup_size: 8,
            ..Device::default()
        };
        change(&mut device);
        let header = Header {
            format: gapscope_capture::VULKAN_FORMAT,
            api: gapscope_capture::model::CapturedApi::Vulkan,
            device,
            ..Header::default()
        };
        let writer = Writer::create(&path, header).unwrap();
        let mut made = Made {
            _folder: folder,
            path,
            writer,
            next: 0,
        };
        made.record(Record::Memory(Memory {
            bytes: DEVICE_MEMORY,
            ..Memory::default()
        }));
        made.record(Record::Queue(Queue::default()));
        made
    }

    pub fn record(&mut self, record: Record) {
        self.writer.record(&record).unwrap();
    }

    fn number(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    /// Adds a buffer at an offset in the memory.
    pub fn buffer(&mut self, name: &str, offset: u64, bytes: u64) -> BufferId {
        let id = BufferId(self.number());
        self.record(Record::Buffer(Buffer {
            id,
            name: Some(name.to_owned()),
            bytes,
            usage: 0x20,
            offset,
            ..Buffer::default()
        }));
        id
    }

    /// Adds a kernel from WGSL, with storage buffers 0 to `buffers` in group 0 and so many bytes of push constants.
    pub fn kernel(
        &mut self,
        wgsl: &str,
        entry: &str,
        buffers: u32,
        push_constants: u32,
    ) -> PipelineId {
        let code = self.compile(wgsl);
        self.kernel_of(&code, entry, buffers, push_constants)
    }

    pub fn compile(&self, wgsl: &str) -> Vec<u8> {
        let module = naga::front::wgsl::parse_str(wgsl).unwrap();
        let capabilities =
            Capabilities::IMMEDIATES | Capabilities::SHADER_FLOAT16 | Capabilities::FLOAT64;
        let info = Validator::new(ValidationFlags::all(), capabilities)
            .validate(&module)
            .unwrap();
        let options = naga::back::spv::Options {
            lang_version: (1, 3),
            ..Default::default()
        };
        let words = naga::back::spv::write_vec(&module, &info, &options, None).unwrap();
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub fn kernel_of(
        &mut self,
        code: &[u8],
        entry: &str,
        buffers: u32,
        push_constants: u32,
    ) -> PipelineId {
        let number = self.number();
        let bindings = (0..buffers).map(|binding| LayoutBinding::for_compute(binding, STORAGE));
        let pipeline = Pipeline {
            name: entry.to_owned(),
            entry: entry.to_owned(),
            ..Pipeline::default()
        };
        self.writer
            .kernel(number, code, bindings.collect(), push_constants, pipeline)
            .unwrap()
    }

    /// Adds words that memory holds at an offset before the next submission.
    pub fn content(&mut self, offset: u64, words: &[u32], cause: ContentCause) {
        self.writer
            .content(MEMORY, offset, &bytes(words), cause)
            .unwrap();
    }

    /// Adds words that memory must hold at an offset after the last submission.
    pub fn outcome(&mut self, offset: u64, words: &[u32]) {
        self.writer.outcome(MEMORY, offset, &bytes(words)).unwrap();
    }

    /// Adds a submission of commands.
    pub fn submit(&mut self, commands: Vec<Command>) {
        let id = CommandsId(self.number());
        self.record(Record::Commands(Commands { id, commands }));
        self.submit_again(id);
    }

    pub fn submit_again(&mut self, id: CommandsId) {
        self.record(Record::Submission(Submission {
            device_ns: Some(1_000),
            ..Submission::with_commands(QueueId(0), id)
        }));
    }

    /// Ends the capture and opens it.
    pub fn end(mut self) -> (tempfile::TempDir, PathBuf, Capture) {
        self.record(Record::End(End::default()));
        drop(self.writer);
        let capture = open(&self.path);
        (self._folder, self.path, capture)
    }
}

pub fn open(path: &Path) -> Capture {
    let (capture, problem) = Capture::open(path).unwrap();
    assert_eq!(problem, None);
    capture
}

/// Returns a dispatch that binds these whole buffers.
pub fn dispatch(
    pipeline: PipelineId,
    groups: u32,
    buffers: &[(BufferId, u64)],
    push_constants: &[u32],
) -> Command {
    Command::Dispatch(Dispatch {
        pipeline,
        groups: Groups::Direct([groups, 1, 1]),
        base: [0; 3],
        push_constants: bytes(push_constants),
        bindings: bindings(buffers),
    })
}

pub fn bindings(buffers: &[(BufferId, u64)]) -> Vec<Binding> {
    let numbered = (0..).zip(buffers);
    numbered
        .map(|(binding, (buffer, bytes))| Binding {
            binding,
            descriptor_type: STORAGE,
            range: Some(BufferRange::from_start(*buffer, *bytes)),
            ..Binding::default()
        })
        .collect()
}

/// Returns a barrier that makes the writes of a kernel visible to the next one.
pub fn barrier() -> Command {
    Command::Barrier(Barrier::of_memory(Dependency {
        after_stages: COMPUTE,
        after_access: WRITE,
        before_stages: COMPUTE,
        before_access: READ | WRITE,
    }))
}

pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns a barrier between all commands.
pub fn everything() -> Command {
    Command::Barrier(Barrier::of_memory(Dependency {
        after_stages: 0x1_0000,
        after_access: 0x1_0000,
        before_stages: 0x1_0000,
        before_access: 0x1_8000,
    }))
}
