//! Generates runs of one made-up program that differ as real runs do, to test what a comparison of runs makes of
//! noise.
//!
//! A whole run is slower or faster than another (clocks), and so is each of its kernels (memory placement); runs get
//! slower one after the other (heat). Inside a run, neighbours resemble each other, some dispatches take far longer
//! than others of their kernel, the first evaluations take longer, and the host is sometimes late. An evaluation is
//! one run of all kernels (a step of the program), in one submission and under one label.

use super::noise::Noise;
use super::parameters::{PROCESS, START_NS, Synthetic};
use crate::ids::*;
use crate::manifest::*;
use crate::tables::*;
use crate::{Tables, Trace};

/// One run of a made-up program.
#[derive(Debug, Clone, PartialEq)]
pub struct Repeated {
    /// Number of kernels of the program.
    pub kernels: u32,
    /// Evaluations of the run: instances of its label.
    pub evaluations: u32,
    /// The seed of the program.
    pub program: u64,
    /// The seed of the run.
    pub run: u64,
    /// Number of earlier runs in the session.
    pub place: u32,
    /// A kernel, from 0, with the factor by which it takes longer.
    pub slower: Option<(u32, f64)>,
    /// How much runs differ.
    pub spread: Spread,
}

/// How much runs differ: standard deviations as fractions of a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Of all kernels of a run together; with outliers.
    pub run: f64,
    /// Of each kernel of a run.
    pub kernel: f64,
    /// By how much a run is slower than the one before: a drift, not a deviation.
    pub drift: f64,
    /// Of neighbours in a run together.
    pub neighbours: f64,
    /// Of single dispatches.
    pub dispatch: f64,
}

impl Default for Spread {
    /// Returns the spread of a dedicated GPU with free clocks.
    fn default() -> Spread {
        Spread {
            run: 0.002,
            kernel: 0.001,
            drift: 0.000_3,
            neighbours: 0.004,
            dispatch: 0.01,
        }
    }
}

/// Names of the first kernels; later ones append a letter.
const NAMES: [&str; 10] = [
    "matmul",
    "softmax",
    "rms_norm",
    "rope",
    "gelu",
    "add",
    "copy",
    "attention",
    "argmax",
    "embed",
];

/// How much of a dispatch's deviation the next one shares, from 0 to 1.
const NEIGHBOUR_CORRELATION: f64 = 0.98;

/// The label `step`, which each evaluation has.
const LABEL: LabelId = LabelId(1);
const QUEUE: QueueId = QueueId(1);
const DEVICE: DeviceId = DeviceId(1);
const THREAD: ThreadId = ThreadId(4243);

/// A kernel of the program.
struct Kernel {
    /// The duration without any noise.
    usual_ns: f64,
    /// Dispatches in an evaluation.
    times: u32,
}

impl Repeated {
    /// Returns the name of a kernel, from 0.
    pub fn kernel_name(kernel: u32) -> String {
        let name = NAMES[kernel as usize % NAMES.len()];
        match kernel as usize / NAMES.len() {
            0 => name.to_owned(),
            more => format!("{name}_{}", char::from(b'a' + more.min(25) as u8)),
        }
    }

    /// Returns the kernels of the program, some of which take most of the time.
    fn program(&self) -> Vec<Kernel> {
        let mut noise = Noise::new(self.program);
        let kernel = |_| Kernel {
            usual_ns: 8_000.0 * (0.9 * noise.normal()).exp(),
            times: 1 + noise.below(4) as u32,
        };
        (0..self.kernels.max(1)).map(kernel).collect()
    }

    /// Generates the run.
    pub fn trace(&self) -> Trace {
        let program = self.program();
        let mut noise = Noise::new(self.run ^ 0x5eed_0000_0000_0000);
        let spread = self.spread;
        let of_run = (spread.run * noise.heavy() + spread.drift * f64::from(self.place)).exp();
        let of_kernels: Vec<f64> = (0..program.len() as u32)
            .map(|kernel| {
                let slower = self.slower.filter(|(slower, _)| *slower == kernel);
                (spread.kernel * noise.normal()).exp() * slower.map_or(1.0, |(_, factor)| factor)
            })
            .collect();
        let mut tables = Tables::default();
        catalogue(program.len() as u32, &mut tables);
        let mut clock = Clocks {
            host_ns: START_NS + 1_000_000,
            device_ns: START_NS,
        };
        let mut neighbours = 0.0;
        for evaluation in 0..self.evaluations {
            let warming = 1.0 + 0.5 * (-f64::from(evaluation)).exp();
            clock.submit(evaluation, &mut noise, &mut tables);
            let start_ns = clock.device_ns;
            let mut position = 0;
            for (at, kernel) in program.iter().enumerate() {
                for _ in 0..kernel.times {
                    neighbours = NEIGHBOUR_CORRELATION * neighbours
                        + (1.0 - NEIGHBOUR_CORRELATION * NEIGHBOUR_CORRELATION).sqrt()
                            * noise.normal();
                    let own =
                        spread.neighbours * neighbours + spread.dispatch * noise.normal().abs();
                    let outlier = match noise.once_in(500) {
                        true => 1.0 + 0.5 / noise.unit().powf(0.6),
                        false => 1.0,
                    };
                    let took =
                        kernel.usual_ns * of_run * of_kernels[at] * own.exp() * outlier * warming;
                    clock.device_ns += noise.between(900, 1_500);
                    tables.dispatches.push(Dispatch {
                        command_buffer: Some(CommandBufferId(u64::from(evaluation) + 1)),
                        position,
                        queue: QUEUE,
                        kernel: KernelId(at as u32 + 1),
                        start_ns: Some(clock.device_ns),
                        duration_ns: Some(took.round() as i64),
                        label: Some(LABEL),
                        ..Dispatch::default()
                    });
                    position += 1;
                    clock.device_ns += took.round() as i64;
                }
            }
            clock.finish(evaluation, start_ns, position, &mut noise, &mut tables);
        }
        Trace {
            manifest: self.manifest(clock.host_ns + 1_000_000),
            tables,
            unread: Vec::new(),
        }
    }

    /// Returns the manifest of the run, with starts of runs a minute apart on the wall clock.
    fn manifest(&self, end_ns: i64) -> Manifest {
        let one = Synthetic {
            queues: 1,
            ..Synthetic::default()
        };
        Manifest {
            start_unix_ns: Some(1_790_000_000_000_000_000 + i64::from(self.place) * 60_000_000_000),
            ..one.manifest(end_ns)
        }
    }
}

/// The positions of host and device in time.
struct Clocks {
    host_ns: i64,
    device_ns: i64,
}

impl Clocks {
    /// Adds the submission of an evaluation, which the host sometimes makes late, and moves both clocks on.
    fn submit(&mut self, evaluation: u32, noise: &mut Noise, tables: &mut Tables) {
        let late = match noise.once_in(100) {
            true => noise.between(200_000, 2_000_000),
            false => 0,
        };
        self.host_ns += (20_000.0 * (0.3 * noise.normal()).exp()) as i64 + late;
        let took = noise.between(6_000, 9_000);
        tables.submissions.push(Submission {
            id: SubmissionId(u64::from(evaluation) + 1),
            process: PROCESS,
            queue: QUEUE,
            kind: SubmissionKind::CommandBuffers,
            thread: Some(THREAD),
            start_ns: self.host_ns,
            duration_ns: took,
            command_buffers: 1,
            ..Submission::default()
        });
        self.call(HostCallKind::Submit, took, tables);
        self.device_ns = self
            .device_ns
            .max(self.host_ns + noise.between(4_000, 6_000));
    }

    /// Adds the command buffer and marker of an evaluation whose dispatches are added, and the host's wait for it.
    fn finish(
        &mut self,
        evaluation: u32,
        start_ns: i64,
        dispatches: u32,
        noise: &mut Noise,
        tables: &mut Tables,
    ) {
        let duration_ns = self.device_ns - start_ns;
        tables.command_buffers.push(CommandBuffer {
            id: CommandBufferId(u64::from(evaluation) + 1),
            process: PROCESS,
            queue: QUEUE,
            submission: SubmissionId(u64::from(evaluation) + 1),
            start_ns: Some(start_ns),
            duration_ns: Some(duration_ns),
            timing: Timing::Measured,
            dispatches,
            label: Some(LABEL),
            ..CommandBuffer::default()
        });
        tables.markers.push(Marker {
            process: PROCESS,
            scope: MarkerScope::CommandBuffer,
            label: LABEL,
            queue: Some(QUEUE),
            command_buffer: Some(CommandBufferId(u64::from(evaluation) + 1)),
            start_ns: Some(start_ns),
            duration_ns: Some(duration_ns),
            ..Marker::default()
        });
        self.host_ns += 500;
        let took = (self.device_ns - self.host_ns).max(0) + noise.between(8_000, 14_000);
        self.call(HostCallKind::WaitFences, took, tables);
        let wait = tables.host_calls.pushed() - 1;
        let submission = SubmissionId(u64::from(evaluation) + 1);
        tables.host_calls.waits_for.set(wait, Some(submission));
    }

    /// Adds a host call that starts now; the host's clock moves to its end.
    fn call(&mut self, call: HostCallKind, duration_ns: i64, tables: &mut Tables) {
        tables.host_calls.push(HostCall {
            process: PROCESS,
            thread: Some(THREAD),
            call,
            start_ns: self.host_ns,
            duration_ns,
            count: 1,
            busy_ns: duration_ns,
            queue: Some(QUEUE),
            ..HostCall::default()
        });
        self.host_ns += duration_ns;
    }
}

/// Adds the kernels, the label and an allocation.
fn catalogue(kernels: u32, tables: &mut Tables) {
    for kernel in 0..kernels {
        let name = Repeated::kernel_name(kernel);
        tables.kernels.push(crate::tables::Kernel {
            id: KernelId(kernel + 1),
            process: PROCESS,
            source: Some(format!("{kernel:064x}").into()),
            name: name.into(),
            name_source: NameSource::ObjectName,
            ..crate::tables::Kernel::default()
        });
    }
    tables.labels.push(Label {
        id: LABEL,
        text: "step".into(),
        parent: None,
    });
    tables.memory.push(MemoryRow {
        process: PROCESS,
        device: DEVICE,
        at_ns: START_NS,
        event: MemoryEvent::Allocate,
        allocation: AllocationId(1),
        bytes: 64 << 20,
        ..MemoryRow::default()
    });
}
