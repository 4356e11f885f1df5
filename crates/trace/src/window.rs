//! Cuts a window, a part of the recorded time, out of a trace.

use crate::Trace;
use crate::ids::{CommandBufferId, CounterId, DeviceId, ProcessId, SubmissionId};
use crate::manifest::{Device, Manifest};
use crate::tables::{CounterValues, Table, Tables};
use std::collections::{HashMap, HashSet};

impl Trace {
    /// Returns the work of some processes from `start_ns` to `end_ns` (host's clock), as a trace.
    ///
    /// GPU work belongs, as a whole, to the window in which it was submitted. Host calls and markers of the host
    /// belong to every window that they touch. A counter's value that holds at the window's start begins there.
    /// Kernels, labels, buffers and earlier memory events stay, because the work refers to them. The manifest has the
    /// times of the window and keeps its losses and notes, since a trace does not say when something was lost.
    #[must_use]
    pub fn window(&self, processes: &[ProcessId], start_ns: i64, end_ns: i64) -> Trace {
        let from = &self.tables;
        let manifest = self.manifest.window(processes, start_ns, end_ns);
        let ours = |process: ProcessId| processes.contains(&process);
        let only_sampled = |process: ProcessId| {
            let processes = &self.manifest.processes;
            processes
                .iter()
                .any(|p| p.id == process && p.is_only_sampled())
        };
        let kept = |process: ProcessId| ours(process) || only_sampled(process);
        let touches = |start: i64, duration: i64| {
            start <= end_ns && start.saturating_add(duration) >= start_ns
        };
        let submissions: HashSet<_> = (0..from.submissions.len())
            .filter(|&row| ours(from.submissions.process[row]))
            .filter(|&row| (start_ns..=end_ns).contains(&from.submissions.start_ns[row]))
            .map(|row| from.submissions.id[row])
            .collect();
        let command_buffers: HashSet<_> = (0..from.command_buffers.len())
            .filter(|&row| submissions.contains(&from.command_buffers.submission[row]))
            .map(|row| from.command_buffers.id[row])
            .collect();
        let work = |command_buffer: Option<CommandBufferId>, submission: Option<SubmissionId>| {
            match command_buffer {
                Some(id) => command_buffers.contains(&id),
                None => submission.is_some_and(|id| submissions.contains(&id)),
            }
        };
        let mut tables = Tables {
            labels: from.labels.clone(),
            buffers: rows(&from.buffers, |t, row| ours(t.process[row])),
            kernels: rows(&from.kernels, |t, row| ours(t.process[row])),
            samples: rows(&from.samples, |t, row| {
                kept(t.process[row]) && (start_ns..=end_ns).contains(&t.time_ns[row])
            }),
            stacks: from.stacks.clone(),
            frames: from.frames.clone(),
            ..Tables::default()
        };
        let buffers: HashSet<_> = tables.buffers.id.iter().copied().collect();
        tables.bindings = rows(&from.bindings, |t, row| buffers.contains(&t.buffer[row]));
        tables.submissions = rows(&from.submissions, |t, row| submissions.contains(&t.id[row]));
        tables.command_buffers = rows(&from.command_buffers, |t, row| {
            command_buffers.contains(&t.id[row])
        });
        tables.dispatches = rows(&from.dispatches, |t, row| {
            work(t.command_buffer.at(row), t.submission.at(row))
        });
        tables.transfers = rows(&from.transfers, |t, row| {
            work(t.command_buffer.at(row), t.submission.at(row))
        });
        tables.opaque_work = rows(&from.opaque_work, |t, row| {
            work(t.command_buffer.at(row), t.submission.at(row))
        });
        tables.barriers = rows(&from.barriers, |t, row| {
            command_buffers.contains(&t.command_buffer[row])
        });
        tables.dependencies = rows(&from.dependencies, |t, row| {
            submissions.contains(&t.submission[row])
        });
        tables.kernel_metrics = rows(&from.kernel_metrics, |t, row| {
            t.submission
                .at(row)
                .is_some_and(|id| submissions.contains(&id))
        });
        tables.allocator_memory = rows(&from.allocator_memory, |t, row| {
            ours(t.process[row]) && t.allocated_ns.at(row).is_none_or(|at_ns| at_ns <= end_ns)
        });
        tables.graph_nodes = rows(&from.graph_nodes, |t, row| ours(t.process[row]));
        tables.host_calls = rows(&from.host_calls, |t, row| {
            ours(t.process[row]) && touches(t.start_ns[row], t.duration_ns[row])
        });
        tables.markers = rows(&from.markers, |t, row| match t.command_buffer.at(row) {
            Some(id) => command_buffers.contains(&id),
            // A range without a known end is open.
            None => {
                ours(t.process[row])
                    && t.start_ns.at(row).is_some_and(|start| {
                        touches(start, t.duration_ns.at(row).unwrap_or(i64::MAX))
                    })
            }
        });
        // A GPU is one device in each process, so a counter of one of these devices counts for the others too.
        let here = |id: DeviceId| {
            let uuid = |d: &&Device| d.id == id && !d.uuid.is_empty();
            let uuid = self.manifest.devices.iter().find(uuid).map(|d| &d.uuid);
            let same = |d: &&Device| d.id == id || Some(&d.uuid) == uuid;
            manifest.devices.iter().find(same).map(|device| device.id)
        };
        tables.counters = rows(&from.counters, |t, row| {
            t.device.at(row).is_none_or(|device| here(device).is_some())
        });
        tables.counters.device.change(here);
        let counters: HashSet<_> = tables.counters.id.iter().copied().collect();
        let at_start = last_before(&from.counter_values, start_ns);
        tables.counter_values = rows(&from.counter_values, |t, row| {
            let holds =
                at_start.get(&t.counter[row]) == Some(&row) && t.duration_ns.at(row).is_none();
            counters.contains(&t.counter[row])
                && (holds || touches(t.start_ns[row], t.duration_ns.at(row).unwrap_or(0)))
        });
        // A value that holds until the next one holds from the window's start on.
        let values = &mut tables.counter_values;
        for (start, duration) in values.start_ns.iter_mut().zip(&values.duration_ns) {
            if duration.is_none() {
                *start = (*start).max(start_ns);
            }
        }
        tables.memory = rows(&from.memory, |t, row| {
            ours(t.process[row]) && t.at_ns[row] <= end_ns
        });
        // References to rows outside of the window are unknown.
        let known = |id| Some(id).filter(|id| submissions.contains(id));
        tables.dependencies.waits_for.change(known);
        tables.host_calls.waits_for.change(known);
        let allocations: HashSet<_> = tables.memory.allocation.iter().copied().collect();
        let known = |id| Some(id).filter(|id| allocations.contains(id));
        tables.buffers.allocation.change(known);
        let bindings: HashSet<_> = tables.bindings.id.iter().copied().collect();
        let known = |id| Some(id).filter(|id| bindings.contains(id));
        tables.dispatches.bindings.change(known);
        Trace {
            manifest,
            tables,
            unread: self.unread.clone(),
        }
    }
}

impl Manifest {
    /// Returns the manifest of a window, with the processes (and those that were only sampled), threads, devices and
    /// queues of its work.
    fn window(&self, processes: &[ProcessId], start_ns: i64, end_ns: i64) -> Manifest {
        let mut manifest = self.clone();
        manifest
            .processes
            .retain(|p| processes.contains(&p.id) || p.is_only_sampled());
        let kept: HashSet<_> = manifest.processes.iter().map(|p| p.id).collect();
        manifest.threads.retain(|t| kept.contains(&t.process));
        manifest.devices.retain(|d| processes.contains(&d.process));
        let devices: HashSet<_> = manifest.devices.iter().map(|d| d.id).collect();
        manifest.queues.retain(|q| devices.contains(&q.device));
        manifest.start_at(start_ns);
        manifest.end_ns = end_ns.max(start_ns);
        manifest
    }
}

/// Returns the row of each counter's last value before a time.
fn last_before(values: &CounterValues, at_ns: i64) -> HashMap<CounterId, usize> {
    let mut last: HashMap<CounterId, usize> = HashMap::new();
    for (row, (counter, start_ns)) in values.counter.iter().zip(&values.start_ns).enumerate() {
        let known = last.get(counter).map(|known| values.start_ns[*known]);
        if *start_ns < at_ns && known.is_none_or(|known| known <= *start_ns) {
            last.insert(*counter, row);
        }
    }
    last
}

/// Returns the rows of a table for which `wanted` is true, in their order.
fn rows<T: Table>(from: &T, wanted: impl Fn(&T, usize) -> bool) -> T {
    let keep: Vec<bool> = (0..from.len()).map(|row| wanted(from, row)).collect();
    from.select(&keep)
}
