//! Generates the traces of the ranks of a distributed program with planted faults. A rank is one process of a program
//! that runs on many GPUs, with a GPU and a trace of its own; a collective (here an all-reduce) is work that all
//! ranks do together and so wait for each other.

use super::noise::Noise;
use super::parameters::{self, PROCESS, START_NS};
use crate::ids::*;
use crate::manifest::*;
use crate::tables::*;
use crate::{Error, TraceWriter};
use std::path::Path;

const THREAD: ThreadId = ThreadId(7);
/// The queue of the kernels.
const MAIN: QueueId = QueueId(1);
/// The queue of the all-reduces.
const COLLECTIVES: QueueId = QueueId(2);
/// The kernels with their usual durations in nanoseconds. The first three make a layer, and `adam` ends a step.
const KERNELS: [(&str, i64); 4] = [
    ("gemm", 180_000),
    ("softmax", 30_000),
    ("layer_norm", 20_000),
    ("adam", 60_000),
];
/// The collective, with its duration in nanoseconds after the last rank has arrived.
const ALL_REDUCE: (&str, i64) = ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 250_000);
/// The time between the starts of two submissions, of which half is the call.
const LAUNCH_NS: i64 = 4_000;

/// A distributed program that never ran: steps of layers, each step ended by an all-reduce of all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fleet {
    /// The number of ranks.
    pub ranks: u32,
    /// The number of ranks on each machine; the last may have fewer.
    pub on_machine: u32,
    /// The number of steps that each rank runs.
    pub steps: u32,
    /// The number of layers of a step, with three kernels each.
    pub layers: u32,
    /// The machine whose GPUs take 8 % longer for everything but collectives.
    pub slow_machine: Option<u32>,
    /// The rank whose `softmax` takes three times as long.
    pub slow_kernel: Option<u32>,
    /// The rank whose host is 1 ms late for each step.
    pub late_host: Option<u32>,
    /// The seed: another one gives another fleet.
    pub seed: u64,
}

impl Default for Fleet {
    fn default() -> Fleet {
        Fleet {
            ranks: 16,
            on_machine: 8,
            steps: 20,
            layers: 8,
            slow_machine: None,
            slow_kernel: None,
            late_host: None,
            seed: 1,
        }
    }
}

impl Fleet {
    /// Writes the traces into `folder/rank=N`; `folder` must not exist.
    ///
    /// # Errors
    /// `folder` exists, its parent does not, or the system refuses.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let write = |source| Error::Write {
            path: folder.to_owned(),
            source,
        };
        std::fs::create_dir(folder).map_err(write)?;
        let ends = self.ends_of_steps();
        for rank in 0..self.ranks {
            self.write_rank(&folder.join(format!("rank={rank}")), rank, &ends)?;
        }
        Ok(())
    }

    /// Returns when the all-reduce of each step ends: after the last rank has arrived.
    fn ends_of_steps(&self) -> Vec<i64> {
        let mut noises: Vec<Noise> = (0..self.ranks).map(|rank| self.noise(rank)).collect();
        let mut end_ns = START_NS;
        let mut ends = Vec::new();
        for _ in 0..self.steps {
            let arrivals = noises.iter_mut().enumerate().map(|(rank, noise)| {
                let rank = rank as u32;
                let work: i64 = self.times(rank, noise).iter().map(|(_, ns)| ns).sum();
                end_ns + self.late_ns(rank) + work
            });
            end_ns = arrivals.max().unwrap_or(end_ns) + ALL_REDUCE.1;
            ends.push(end_ns);
        }
        ends
    }

    /// Returns the random numbers of a rank, which are the same at each call.
    fn noise(&self, rank: u32) -> Noise {
        Noise::new(self.seed.wrapping_mul(1 << 32) + u64::from(rank))
    }

    /// Returns how long after the start of a step the rank's first kernel runs.
    fn late_ns(&self, rank: u32) -> i64 {
        match self.late_host == Some(rank) {
            true => 1_000_000,
            false => 20_000,
        }
    }

    /// Returns the kernels of a step, by their indices in [`KERNELS`], with their times, which vary by up to 3 %.
    fn times(&self, rank: u32, noise: &mut Noise) -> Vec<(usize, i64)> {
        let slow = self.slow_machine == Some(rank / self.on_machine.max(1));
        let layer = [0, 1, 2].repeat(self.layers as usize);
        let kernels = layer.into_iter().chain([3]);
        let times = kernels.map(|kernel| {
            let usual_ns = KERNELS[kernel].1 * if slow { 108 } else { 100 } / 100;
            let planted = kernel == 1 && self.slow_kernel == Some(rank);
            let usual_ns = usual_ns * if planted { 3 } else { 1 };
            (
                kernel,
                usual_ns + noise.between(-usual_ns, usual_ns) * 3 / 100,
            )
        });
        times.collect()
    }

    /// Writes the trace of a rank. `ends` has the ends of all steps ([`Self::ends_of_steps`]), to which its
    /// all-reduces last.
    fn write_rank(&self, folder: &Path, rank: u32, ends: &[i64]) -> Result<(), Error> {
        let mut writer = TraceWriter::create(folder)?;
        let tables = writer.tables_mut();
        let names = KERNELS.iter().map(|kernel| kernel.0).chain([ALL_REDUCE.0]);
        for (id, name) in names.enumerate() {
            tables.kernels.push(Kernel {
                id: KernelId(id as u32),
                process: PROCESS,
                name: name.into(),
                ..Kernel::default()
            });
        }
        let mut noise = self.noise(rank);
        let mut submission = 0;
        let (mut at_ns, mut busy_until_ns) = (START_NS, START_NS);
        for end_ns in ends {
            let mut host_ns = at_ns + self.late_ns(rank) - LAUNCH_NS;
            busy_until_ns = busy_until_ns.max(at_ns) + self.late_ns(rank);
            let mut work = self.times(rank, &mut noise);
            work.push((KERNELS.len(), 0));
            for (kernel, ns) in work {
                let is_collective = kernel == KERNELS.len();
                let queue = if is_collective { COLLECTIVES } else { MAIN };
                let duration_ns = if is_collective {
                    end_ns - busy_until_ns
                } else {
                    ns
                };
                submission += 1;
                tables.submissions.push(Submission {
                    id: SubmissionId(submission),
                    process: PROCESS,
                    queue,
                    kind: SubmissionKind::Kernel,
                    thread: Some(THREAD),
                    start_ns: host_ns,
                    duration_ns: LAUNCH_NS / 2,
                    function: Some("cuLaunchKernel".into()),
                    ..Submission::default()
                });
                tables.dispatches.push(Dispatch {
                    queue,
                    kernel: KernelId(kernel as u32),
                    submission: Some(SubmissionId(submission)),
                    start_ns: Some(busy_until_ns),
                    duration_ns: Some(duration_ns),
                    ..Dispatch::default()
                });
                busy_until_ns += duration_ns;
                host_ns += LAUNCH_NS;
            }
            at_ns = *end_ns;
        }
        writer.finish(&self.manifest(rank, at_ns))
    }

    /// Returns the manifest of a rank whose recording ends at `end_ns`. Ranks of one machine have one boot id.
    fn manifest(&self, rank: u32, end_ns: i64) -> Manifest {
        let local = rank % self.on_machine.max(1);
        let queue = |id| Queue {
            id,
            device: DeviceId(1),
            index: id.0,
            timestamp_bits: 64,
            ..Queue::default()
        };
        Manifest {
            format_version: FORMAT_VERSION,
            gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: true,
            command: vec!["python".to_owned(), "train.py".to_owned()],
            exit: Some(Exit::Code(0)),
            sampling_mode: SamplingMode::Dispatch,
            start_ns: START_NS,
            end_ns,
            host: Host {
                boot_id: Some(format!("machine-{}", rank / self.on_machine.max(1))),
                ..Host::default()
            },
            processes: vec![Process {
                id: PROCESS,
                pid: 1_000 + local,
                hook: "none".to_owned(),
                start_ns: START_NS,
                end_ns: Some(end_ns),
                ..Process::default()
            }],
            threads: vec![Thread {
                process: PROCESS,
                thread: THREAD,
                name: "main".to_owned(),
            }],
            devices: vec![Device {
                id: DeviceId(1),
                process: PROCESS,
                api: Api::Cuda,
                name: "Synthetic GPU".to_owned(),
                uuid: format!("{rank:032x}"),
                clock: parameters::clock(),
                ..Device::default()
            }],
            queues: vec![queue(MAIN), queue(COLLECTIVES)],
            rank: Some(Rank {
                rank,
                local_rank: Some(local),
                world_size: self.ranks,
            }),
            notes: vec![parameters::NOTE.to_owned()],
            ..Manifest::default()
        }
    }
}
