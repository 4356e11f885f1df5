//! A simulated program for tests: writes the events that a hook would, and returns the rows that the assembler
//! makes of them.

use crate::Names;
use crate::assembler::Assembler;
use crate::made_up;
use gapscope_spool::event::*;
use gapscope_spool::ids as hook;
use gapscope_spool::{Event, event};
use gapscope_trace::Tables;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::manifest::{Manifest, SamplingMode};
use std::borrow::Cow;

/// A process with one device (1) and two queues (1 and 2) whose clock is the host's.
pub struct Program {
    pub assembler: Assembler,
    pub tables: Tables,
    pub process: ProcessId,
    pub now_ns: i64,
    next_instance: u64,
}

/// The commands of a recording, with the query that each needs.
#[derive(Default, Clone)]
pub struct Commands {
    bytes: Vec<u8>,
    queries: u32,
}

impl Commands {
    pub fn begun() -> Commands {
        let mut commands = Commands::default();
        let query = commands.query(1);
        commands.push(Op::Begin, query, [0; 4]);
        commands
    }

    pub fn query(&mut self, count: u32) -> u32 {
        let query = self.queries;
        self.queries += count;
        query
    }

    pub fn push(&mut self, op: Op, query: u32, operands: [u32; 4]) -> &mut Commands {
        let command = Command::new(op, query, operands);
        self.bytes.extend_from_slice(bytemuck::bytes_of(&command));
        self
    }

    pub fn dispatch(&mut self, kernel: u32) -> &mut Commands {
        let query = self.query(2);
        self.push(Op::Dispatch, query, [8, 4, 2, kernel])
    }

    pub fn label(&mut self, text: u32) -> &mut Commands {
        self.push(Op::LabelBegin, NO_QUERY, [text, 0, 0, 0])
    }

    pub fn end_label(&mut self) -> &mut Commands {
        self.push(Op::LabelEnd, NO_QUERY, [0; 4])
    }

    pub fn end(&mut self) -> Commands {
        let query = self.query(1);
        self.push(Op::End, query, [0; 4]);
        std::mem::take(self)
    }
}

impl Program {
    pub fn new() -> Program {
        Program::with(SamplingMode::Dispatch, 1.0, 64)
    }

    pub fn with(mode: SamplingMode, rate: f64, bits: u32) -> Program {
        let mut assembler = Assembler::new(mode);
        let process = assembler.add_process(100, 0);
        let mut program = Program {
            assembler,
            tables: Tables::default(),
            process,
            now_ns: 1_000_000,
            next_instance: 1,
        };
        program.event(made_up::process("vulkan"));
        program.event(made_up::device(1, Api::Vulkan, rate));
        for number in [1, 2] {
            let mut queue = made_up::queue(number, 1);
            if let CommonEvent::Queue { timestamp_bits, .. } = &mut queue {
                *timestamp_bits = bits;
            }
            program.event(queue);
        }
        program.sample(0);
        program
    }

    pub fn event<'a>(&mut self, event: impl Into<Event<'a>>) {
        self.assembler
            .apply(self.process, hook::Thread(10), event, &mut self.tables);
    }

    /// Adds a clock sample; the device's clock is the host's.
    pub fn sample(&mut self, at_ns: i64) {
        self.event(made_up::clock_sample(at_ns));
    }

    pub fn kernel(&mut self, kernel: u32, entry_point: &'static str) {
        self.kernel_with(kernel, entry_point, "", [kernel as u8; 16], Vec::new());
    }

    pub fn kernel_with(
        &mut self,
        kernel: u32,
        entry_point: &'static str,
        specialisation: &'static str,
        source: [u8; 16],
        accesses: Vec<BindingAccess>,
    ) {
        self.event(CommonEvent::Kernel {
            kernel: hook::Kernel(kernel),
            source,
            entry_point: Cow::Borrowed(entry_point),
            specialisation: Cow::Borrowed(specialisation),
            source_name: Cow::Borrowed(""),
            local_size: [64, 1, 1],
            accesses,
        });
    }

    pub fn text(&mut self, text: u32, value: &'static str) {
        self.event(CommonEvent::Text {
            text: hook::Text(text),
            value,
        });
    }

    pub fn record(&mut self, recording: u32, commands: &Commands) {
        self.event(VulkanEvent::Commands {
            recording: hook::CommandRecording(recording),
            commands: &commands.bytes,
        });
    }

    /// Submits a recording to queue 1 and returns its instance.
    pub fn submit(&mut self, recording: u32) -> u64 {
        self.submit_to(1, &[recording], &[], &[])[0]
    }

    pub fn submit_to(
        &mut self,
        queue: u32,
        recordings: &[u32],
        waits: &[SemaphoreValue],
        signals: &[SemaphoreValue],
    ) -> Vec<u64> {
        let instances: Vec<event::Instance> = recordings
            .iter()
            .map(|recording| {
                let instance = self.next_instance;
                self.next_instance += 1;
                event::Instance {
                    instance: hook::Instance(instance),
                    recording: hook::CommandRecording(*recording),
                }
            })
            .collect();
        let begin_ns = self.now_ns;
        self.now_ns += 10;
        self.event(VulkanEvent::Submit {
            submission: hook::Submission(begin_ns as u64),
            function: SubmitFunction::QueueSubmit,
            span: Span::between(begin_ns, self.now_ns),
            queue: hook::Queue(queue),
            instances: Cow::Owned(instances.clone()),
            waits: Cow::Owned(waits.to_vec()),
            signals: Cow::Owned(signals.to_vec()),
        });
        instances.iter().map(|i| i.instance.0).collect()
    }

    pub fn ticks(&mut self, instance: u64, recording: u32, ticks: &[u64]) {
        let bytes: Vec<u8> = ticks.iter().flat_map(|t| t.to_le_bytes()).collect();
        self.event(VulkanEvent::Timestamps {
            instance: hook::Instance(instance),
            recording: hook::CommandRecording(recording),
            first_query: 0,
            ticks: &bytes,
        });
        let latest = ticks.iter().filter(|t| **t < 1 << 62).max();
        self.now_ns = self.now_ns.max(latest.map_or(0, |t| *t as i64));
    }

    pub fn end(&mut self, instance: u64, outcome: Outcome) {
        self.now_ns += 100;
        self.event(VulkanEvent::InstanceEnd {
            instance: hook::Instance(instance),
            outcome,
            seen_ns: self.now_ns,
        });
    }

    /// Runs an instance whose timestamps are `ticks`.
    pub fn run(&mut self, recording: u32, ticks: &[u64]) -> u64 {
        let instance = self.submit(recording);
        self.ticks(instance, recording, ticks);
        self.end(instance, Outcome::Timed);
        instance
    }

    /// Returns the manifest and the rows of the trace.
    pub fn finish(mut self) -> (Manifest, Tables) {
        self.sample(self.now_ns + 1_000_000);
        self.assembler.finish(&Names::default(), &mut self.tables);
        let mut manifest = Manifest::default();
        self.assembler.describe(&mut manifest);
        (manifest, self.tables)
    }
}

/// Returns losses as `what (reason)` with their counts.
pub fn losses(manifest: &Manifest) -> Vec<(String, u64)> {
    manifest
        .losses
        .iter()
        .map(|l| (format!("{} ({})", l.kind, l.reason), l.count))
        .collect()
}
