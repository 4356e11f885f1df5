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
            vendor_id: 0,
            device_id: 0,
            driver: "none".to_owned(),
            driver_version: 0,
            api_version: 0,
            pipeline_cache_uuid: "0".repeat(32),
            subgroup_size: 8,
            extensions: Vec::new(),
            features: Vec::new(),
        };
        change(&mut device);
        let header = Header {
            format: gapscope_capture::FORMAT,
            gapscope: "0.1.0".to_owned(),
            command: vec!["made".to_owned()],
            pid: 1,
            started_unix_ns: 0,
            window: "all".to_owned(),
            device,
        };
        let writer = Writer::create(&path, header).unwrap();
        let mut made = Made {
            _folder: folder,
            path,
            writer,
            next: 0,
        };
        made.record(Record::Memory(Memory {
            id: MEMORY,
            bytes: DEVICE_MEMORY,
            properties: 1,
        }));
        made.record(Record::Queue(Queue {
            id: QueueId(0),
            family: 0,
            index: 0,
            flags: 7,
        }));
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
            flags: 0,
            memory: MEMORY,
            offset,
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
        let code = self.writer.chunk(code).unwrap();
        self.record(Record::Module(Module {
            id: ModuleId(number),
            code,
        }));
        self.record(Record::SetLayout(SetLayout {
            id: SetLayoutId(number),
            flags: 0,
            bindings: (0..buffers)
                .map(|binding| LayoutBinding {
                    binding,
                    descriptor_type: STORAGE,
                    count: 1,
                    stages: 0x20,
                    flags: 0,
                })
                .collect(),
        }));
        let range = PushConstantRange {
            stages: 0x20,
            offset: 0,
            bytes: push_constants,
        };
        self.record(Record::PipelineLayout(PipelineLayout {
            id: PipelineLayoutId(number),
            flags: 0,
            sets: vec![Some(SetLayoutId(number))],
            push_constants: if push_constants == 0 {
                Vec::new()
            } else {
                vec![range]
            },
        }));
        self.record(Record::Pipeline(Pipeline {
            id: PipelineId(number),
            name: entry.to_owned(),
            layout: PipelineLayoutId(number),
            module: ModuleId(number),
            entry: entry.to_owned(),
            flags: 0,
            stage_flags: 0,
            constants: Vec::new(),
            required_subgroup_size: None,
            robustness: None,
        }));
        PipelineId(number)
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
            queue: QueueId(0),
            called_ns: 0,
            device_ns: Some(1_000),
            batches: vec![Batch {
                waits: Vec::new(),
                commands: vec![id],
                signals: Vec::new(),
            }],
        }));
    }

    /// Ends the capture and opens it.
    pub fn end(mut self) -> (tempfile::TempDir, PathBuf, Capture) {
        self.record(Record::End(End {
            reason: EndReason::Complete,
            after_ns: 1,
        }));
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
            set: 0,
            binding,
            element: 0,
            descriptor_type: STORAGE,
            range: Some(BufferRange {
                buffer: *buffer,
                offset: 0,
                bytes: *bytes,
            }),
            read_only: false,
        })
        .collect()
}

/// Returns a barrier that makes the writes of a kernel visible to the next one.
pub fn barrier() -> Command {
    Command::Barrier(Barrier {
        flags: 0,
        memory: vec![Dependency {
            after_stages: COMPUTE,
            after_access: WRITE,
            before_stages: COMPUTE,
            before_access: READ | WRITE,
        }],
        buffers: Vec::new(),
    })
}

pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Returns a barrier between all commands.
pub fn everything() -> Command {
    Command::Barrier(Barrier {
        flags: 0,
        memory: vec![Dependency {
            after_stages: 0x1_0000,
            after_access: 0x1_0000,
            before_stages: 0x1_0000,
            before_access: 0x1_8000,
        }],
        buffers: Vec::new(),
    })
}
