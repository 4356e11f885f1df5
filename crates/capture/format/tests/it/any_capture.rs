//! Generates random captures with any records that the format allows, for the other tests.

use std::path::Path;

use gapscope_capture::model::*;
use gapscope_capture::{Record, Writer};
use proptest::prelude::*;

use crate::example;

/// A part of a capture to write.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant)]
pub enum Written {
    Record(Record),
    Content(MemoryId, u64, Vec<u8>, ContentCause),
    Outcome(MemoryId, u64, Vec<u8>),
    Module(ModuleId, Vec<u8>),
}

/// Writes a capture into a folder, which must not exist.
pub fn write(folder: &Path, all: &[Written]) -> std::io::Result<()> {
    let mut writer = Writer::create(folder, example::header())?;
    for written in all {
        match written {
            Written::Record(record) => writer.record(record)?,
            Written::Content(memory, offset, bytes, cause) => {
                writer.content(*memory, *offset, bytes, *cause)?;
            }
            Written::Outcome(memory, offset, bytes) => writer.outcome(*memory, *offset, bytes)?,
            Written::Module(id, bytes) => {
                let code = writer.chunk(bytes)?;
                writer.record(&Record::Module(Module { id: *id, code }))?;
            }
        }
    }
    Ok(())
}

/// Generates a capture as the parts to write.
pub fn any() -> impl Strategy<Value = Vec<Written>> {
    prop::collection::vec(any_number(), 0..400).prop_map(|numbers| {
        let mut draw = Draw {
            numbers: numbers.into_iter(),
            ..Draw::default()
        };
        while draw.numbers.len() > 0 {
            draw.next();
        }
        let after_ns = draw.number();
        let reason = match draw.below(4) {
            0 => EndReason::Complete,
            1 => EndReason::ProgramEnded,
            2 => EndReason::Refused(draw.text()),
            _ => EndReason::Failed(draw.text()),
        };
        draw.record(Record::End(End { reason, after_ns }));
        draw.written
    })
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..100u64, 1 => any_u64()]
}

fn any_u64() -> impl Strategy<Value = u64> {
    prop::num::u64::ANY
}

/// Makes choices from a list of numbers. Once none is left, every choice is 0.
#[derive(Default)]
struct Draw {
    numbers: std::vec::IntoIter<u64>,
    written: Vec<Written>,
    memories: Vec<u64>,
    buffers: Vec<u64>,
    modules: u32,
    set_layouts: Vec<Vec<LayoutBinding>>,
    layouts: Vec<PipelineLayout>,
    pipelines: Vec<u32>,
    queues: u32,
    commands: u32,
}

impl Draw {
    fn number(&mut self) -> u64 {
        self.numbers.next().unwrap_or(0)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    fn word(&mut self) -> u32 {
        self.number() as u32
    }

    fn text(&mut self) -> String {
        let texts = ["", "matmul_f16", "\u{202e}\u{1b}[2J\"\\\n", "Größe 🦀"];
        texts[self.below(texts.len() as u64) as usize].to_owned()
    }

    fn bytes(&mut self, count: u64) -> Vec<u8> {
        let (first, step) = (self.word() as u8, self.below(3) as u8);
        let byte = |i: u64| first.wrapping_add((i as u8).wrapping_mul(step));
        (0..count).map(byte).collect()
    }

    /// Chooses one of so many objects, if there are any.
    fn one_of(&mut self, count: usize) -> Option<u32> {
        (count > 0).then(|| self.below(count as u64) as u32)
    }

    /// Chooses a range in so many bytes.
    fn part(&mut self, of: u64) -> (u64, u64) {
        let offset = match of {
            u64::MAX => self.number(),
            of => self.below(of + 1),
        };
        (offset, self.below((of - offset).saturating_add(1)))
    }

    fn range(&mut self, id: u32) -> BufferRange {
        let (offset, bytes) = self.part(self.buffers[id as usize]);
        BufferRange {
            buffer: BufferId(id),
            offset,
            bytes,
        }
    }

    fn words_of(&mut self, id: u32) -> BufferRange {
        let range = self.range(id);
        BufferRange {
            offset: range.offset & !3,
            bytes: range.bytes & !3,
            ..range
        }
    }

    fn record(&mut self, record: Record) {
        self.written.push(Written::Record(record));
    }

    fn next(&mut self) {
        match self.below(12) {
            0 | 1 => self.memory(),
            2 | 3 => self.buffer(),
            4 => self.module(),
            5 => self.set_layout(),
            6 => self.pipeline_layout(),
            7 => self.pipeline(),
            8 => self.queue(),
            9 => self.content(),
            10 => self.command_buffer(),
            _ => self.submission(),
        }
    }

    fn memory(&mut self) {
        let bytes = match self.below(4) {
            0 => self.number(),
            1 => u64::MAX,
            _ => self.below(1 << 20),
        };
        let id = MemoryId(self.memories.len() as u32);
        self.memories.push(bytes);
        let properties = self.word();
        self.record(Record::Memory(Memory {
            id,
            bytes,
            properties,
        }));
    }

    fn buffer(&mut self) {
        let Some(memory) = self.one_of(self.memories.len()) else {
            return;
        };
        let (offset, bytes) = self.part(self.memories[memory as usize]);
        let name = (self.below(2) == 1).then(|| self.text());
        let id = BufferId(self.buffers.len() as u32);
        self.buffers.push(bytes);
        let (usage, flags) = (self.number(), self.word());
        self.record(Record::Buffer(Buffer {
            id,
            name,
            bytes,
            usage,
            flags,
            memory: MemoryId(memory),
            offset,
        }));
    }

    fn module(&mut self) {
        let count = 20 + 4 * self.below(1000);
        let bytes = self.bytes(count);
        self.written
            .push(Written::Module(ModuleId(self.modules), bytes));
        self.modules += 1;
    }

    fn set_layout(&mut self) {
        let slot = |binding, draw: &mut Draw| LayoutBinding {
            binding,
            descriptor_type: 6 + draw.below(4) as u32,
            count: draw.word(),
            stages: draw.word(),
            flags: draw.below(2) as u32,
        };
        let bindings: Vec<_> = (0..self.below(4) as u32)
            .map(|at| slot(at * 3, self))
            .collect();
        let id = SetLayoutId(self.set_layouts.len() as u32);
        self.set_layouts.push(bindings.clone());
        let flags = self.word();
        self.record(Record::SetLayout(SetLayout {
            id,
            flags,
            bindings,
        }));
    }

    fn pipeline_layout(&mut self) {
        let sets = (0..self.below(3))
            .map(|_| self.one_of(self.set_layouts.len()).map(SetLayoutId))
            .collect();
        let push_constants = (0..self.below(3))
            .map(|_| PushConstantRange {
                stages: self.word(),
                offset: 4 * self.below(16) as u32,
                bytes: 4 * self.below(16) as u32,
            })
            .collect();
        let layout = PipelineLayout {
            id: PipelineLayoutId(self.layouts.len() as u32),
            flags: self.word(),
            sets,
            push_constants,
        };
        self.layouts.push(layout.clone());
        self.record(Record::PipelineLayout(layout));
    }

    fn pipeline(&mut self) {
        let layout = self.one_of(self.layouts.len());
        let module = self.one_of(self.modules as usize);
        let Some((layout, module)) = layout.zip(module) else {
            return;
        };
        let constants = (0..self.below(4) as u32)
            .map(|id| Constant {
                id,
                value: vec![self.word() as u8; 1 << self.below(4)],
            })
            .collect();
        let robustness = (self.below(2) == 1).then(|| Robustness {
            storage_buffers: self.word(),
            uniform_buffers: self.word(),
            vertex_inputs: self.word(),
            images: self.word(),
        });
        let id = PipelineId(self.pipelines.len() as u32);
        self.pipelines.push(layout);
        let pipeline = Pipeline {
            id,
            name: self.text(),
            layout: PipelineLayoutId(layout),
            module: ModuleId(module),
            entry: self.text(),
            flags: self.number(),
            stage_flags: self.word(),
            constants,
            required_subgroup_size: (self.below(2) == 1).then(|| self.word()),
            robustness,
        };
        self.record(Record::Pipeline(pipeline));
    }

    fn queue(&mut self) {
        let queue = Queue {
            id: QueueId(self.queues),
            family: self.word(),
            index: self.word(),
            flags: self.word(),
        };
        self.queues += 1;
        self.record(Record::Queue(queue));
    }

    fn content(&mut self) {
        let Some(memory) = self.one_of(self.memories.len()) else {
            return;
        };
        let (offset, bytes) = self.part(self.memories[memory as usize]);
        let bytes = bytes.min(200_000);
        if bytes == 0 {
            return;
        }
        let id = MemoryId(memory);
        let content = self.bytes(bytes);
        let written = match self.below(3) {
            0 => Written::Content(id, offset, content, ContentCause::FirstUse),
            1 => Written::Content(id, offset, content, ContentCause::HostWrite),
            _ => Written::Outcome(id, offset, content),
        };
        self.written.push(written);
    }

    fn command_buffer(&mut self) {
        let commands = (0..self.below(6)).filter_map(|_| self.command()).collect();
        let id = CommandsId(self.commands);
        self.commands += 1;
        self.record(Record::Commands(Commands { id, commands }));
    }

    fn command(&mut self) -> Option<Command> {
        let buffer = self.one_of(self.buffers.len());
        Some(match self.below(6) {
            0 => Command::Dispatch(self.dispatch()?),
            1 => {
                let (from, to) = (self.range(buffer?), self.one_of(self.buffers.len())?);
                let to = self.range(to);
                let region = CopyRegion {
                    from: from.offset,
                    to: to.offset,
                    bytes: from.bytes.min(to.bytes),
                };
                Command::Copy(Copy {
                    from: from.buffer,
                    to: to.buffer,
                    regions: vec![region; self.below(3) as usize],
                })
            }
            2 => Command::Fill(Fill {
                range: self.words_of(buffer?),
                value: self.word(),
            }),
            3 => {
                let range = self.words_of(buffer?);
                Command::Update(Update {
                    buffer: range.buffer,
                    offset: range.offset,
                    data: self.bytes(range.bytes.min(65_536)),
                })
            }
            4 => {
                let dependency = Dependency {
                    after_stages: self.number(),
                    after_access: self.number(),
                    before_stages: self.number(),
                    before_access: self.number(),
                };
                let buffers = buffer.map(|id| (dependency, self.range(id)));
                Command::Barrier(Barrier {
                    flags: self.below(2) as u32,
                    memory: vec![dependency; self.below(2) as usize],
                    buffers: buffers.into_iter().collect(),
                })
            }
            _ => Command::Label(match self.below(3) {
                0 => Label::Begin(self.text()),
                1 => Label::Instant(self.text()),
                _ => Label::End,
            }),
        })
    }

    fn dispatch(&mut self) -> Option<Dispatch> {
        let pipeline = self.one_of(self.pipelines.len())?;
        let layout = self.layouts[self.pipelines[pipeline as usize] as usize].clone();
        let push_constants = self.bytes(layout.push_constant_bytes().into());
        let mut bindings = Vec::new();
        for (set, id) in (0..).zip(&layout.sets) {
            let Some(id) = id else { continue };
            for slot in self.set_layouts[id.0 as usize].clone() {
                for element in 0..slot.count.min(2) {
                    let buffer = self.one_of(self.buffers.len());
                    bindings.push(Binding {
                        set,
                        binding: slot.binding,
                        element,
                        descriptor_type: slot.descriptor_type,
                        range: buffer.map(|id| self.range(id)),
                        read_only: self.below(2) == 1,
                    });
                }
            }
        }
        let group_counts = |draw: &mut Draw| [draw.word(), draw.word(), draw.word()];
        let indirect = self.one_of(self.buffers.len());
        let indirect = indirect.map(|id| self.words_of(id));
        let groups = match indirect {
            Some(range) if range.bytes >= 12 => {
                Groups::Indirect(BufferRange { bytes: 12, ..range })
            }
            _ => Groups::Direct(group_counts(self)),
        };
        Some(Dispatch {
            pipeline: PipelineId(pipeline),
            groups,
            base: group_counts(self),
            push_constants,
            bindings,
        })
    }

    fn submission(&mut self) {
        let Some(queue) = self.one_of(self.queues as usize) else {
            return;
        };
        let batches = (0..self.below(3)).map(|_| self.batch()).collect();
        let submission = Submission {
            queue: QueueId(queue),
            called_ns: self.number(),
            device_ns: (self.below(2) == 1).then(|| self.number()),
            batches,
        };
        self.record(Record::Submission(submission));
    }

    fn batch(&mut self) -> Batch {
        let uses = |draw: &mut Draw| -> Vec<SemaphoreUse> {
            (0..draw.below(3))
                .map(|_| SemaphoreUse {
                    semaphore: SemaphoreId(draw.word()),
                    value: (draw.below(2) == 1).then(|| draw.number()),
                    stages: draw.number(),
                })
                .collect()
        };
        let waits = uses(self);
        let commands = (0..self.below(3))
            .filter_map(|_| self.one_of(self.commands as usize).map(CommandsId))
            .collect();
        Batch {
            waits,
            commands,
            signals: uses(self),
        }
    }
}
