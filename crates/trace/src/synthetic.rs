//! Generates large traces by rule, or from another trace, for benchmarks and for tests of sizes, without recording a
//! program.
//!
//! Each queue is fed by its own thread, which prepares, submits and sometimes waits. A command buffer runs kernels of
//! some modules, one after the other; some dispatches begin before the previous one has ended. The same [`Synthetic`]
//! generates the same trace on every machine.

mod catalogue;
mod fleet;
mod noise;
mod parameters;
mod repeated;
mod repetition;
mod stream;

use crate::ids::DeviceId;
use crate::manifest::*;
use crate::{Error, Tables, Trace, TraceWriter};
use std::path::Path;
use stream::Stream;

pub use fleet::Fleet;
pub use parameters::Synthetic;
pub use repeated::{Repeated, Spread};
pub use repetition::repeat;

impl Synthetic {
    /// Generates the trace in memory.
    pub fn trace(&self) -> Trace {
        let mut tables = Tables::default();
        let mut stream = Stream::new(self);
        stream.begin(&mut tables);
        while stream.submit(&mut tables) {}
        Trace {
            manifest: self.manifest(stream.end_ns()),
            tables,
            unread: Vec::new(),
        }
    }

    /// Writes the trace into `folder`, which must not exist. Memory stays small at any number of dispatches.
    ///
    /// # Errors
    /// `folder` exists, its parent does not, or the system refuses.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let mut writer = TraceWriter::create(folder)?;
        let mut stream = Stream::new(self);
        stream.begin(writer.tables_mut());
        while stream.submit(writer.tables_mut()) {
            writer.flush_full()?;
        }
        writer.finish(&self.manifest(stream.end_ns()))
    }

    /// Returns the manifest of a recording that ends at `end_ns`.
    fn manifest(&self, end_ns: i64) -> Manifest {
        let process = Process {
            id: parameters::PROCESS,
            pid: 4242,
            parent_pid: Some(1),
            executable: "/usr/bin/synthetic".to_owned(),
            hook: "none".to_owned(),
            start_ns: parameters::START_NS,
            end_ns: Some(end_ns),
            ..Process::default()
        };
        let devices = (1..=self.devices.max(1)).map(|id| Device {
            id: DeviceId(id),
            process: parameters::PROCESS,
            api: Api::Vulkan,
            name: format!("Synthetic GPU {id}"),
            driver: "none".to_owned(),
            uuid: format!("{id:032x}"),
            heaps: vec![16 << 30],
            clock: parameters::clock(),
            ..Device::default()
        });
        let queues = self.queues().map(|id| Queue {
            id,
            device: self.device_of(id),
            index: (id.0 - 1) / self.devices.max(1),
            capabilities: vec!["compute".to_owned(), "transfer".to_owned()],
            timestamp_bits: 64,
            ..Queue::default()
        });
        let threads = self.queues().map(|queue| Thread {
            process: parameters::PROCESS,
            thread: parameters::thread_of(queue),
            name: format!("worker {queue}"),
        });
        Manifest {
            format_version: FORMAT_VERSION,
            gapscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: true,
            command: vec!["synthetic".to_owned()],
            exit: Some(Exit::Code(0)),
            sampling_mode: SamplingMode::Dispatch,
            start_ns: parameters::START_NS,
            end_ns,
            start_unix_ns: Some(1_790_000_000_000_000_000),
            host: Host {
                system: "none".to_owned(),
                processor: "none".to_owned(),
                cores: Some(8),
                ..Host::default()
            },
            processes: vec![process],
            threads: threads.collect(),
            devices: devices.collect(),
            queues: queues.collect(),
            losses: Vec::new(),
            notes: vec![parameters::NOTE.to_owned()],
            ..Manifest::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::QueueId;
    use crate::tables::Table;
    use crate::{Selection, read};

    fn small() -> Synthetic {
        Synthetic {
            dispatches: 20_001,
            queues: 3,
            devices: 2,
            kernels: 7,
            layers: 2,
            seed: 5,
        }
    }

    #[test]
    fn what_is_written_is_what_is_made_and_refers_to_nothing_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.gapscope");
        small().write(&path).unwrap();
        let (read, diagnostics) = read(&path, &Selection::all()).unwrap();
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(read, small().trace());
        assert_eq!(read.tables.dispatches.len(), 20_001);
        assert_ne!(read, Synthetic { seed: 6, ..small() }.trace());
    }

    #[test]
    fn the_work_of_a_queue_is_mostly_apart_and_sometimes_overlaps() {
        let trace = Synthetic::default();
        let trace = Synthetic {
            dispatches: 50_000,
            ..trace
        }
        .trace();
        let d = &trace.tables.dispatches;
        let mut overlaps = 0;
        for queue in (1..=8).map(QueueId) {
            let mut end_ns = 0;
            for row in (0..d.len()).filter(|row| d.queue[*row] == queue) {
                let start_ns = d.start_ns.at(row).unwrap();
                overlaps += usize::from(start_ns < end_ns);
                end_ns = end_ns.max(start_ns + d.duration_ns.at(row).unwrap());
            }
        }
        let share = overlaps as f64 / d.len() as f64;
        assert!((0.02..0.2).contains(&share), "{share}");
    }

    #[test]
    fn the_calls_of_a_thread_do_not_overlap_and_work_runs_after_its_submission() {
        let trace = small().trace();
        let t = &trace.tables;
        for thread in &trace.manifest.threads {
            let mut end_ns = 0;
            for row in (0..t.host_calls.len())
                .filter(|row| t.host_calls.thread.at(*row) == Some(thread.thread))
            {
                assert!(t.host_calls.start_ns[row] >= end_ns);
                end_ns = t.host_calls.start_ns[row] + t.host_calls.duration_ns[row];
            }
        }
        for row in 0..t.command_buffers.len() {
            let submission = t.command_buffers.submission[row];
            let submitted = t.submissions.row(submission.0 as usize - 1);
            assert_eq!(submitted.id, submission);
            assert!(
                t.command_buffers.start_ns.at(row).unwrap()
                    > submitted.start_ns + submitted.duration_ns
            );
        }
        let wait = crate::tables::HostCallKind::WaitFences;
        assert!(t.host_calls.call.contains(&wait));
        assert!(!t.markers.is_empty() && !t.transfers.is_empty() && !t.memory.is_empty());
    }
}
