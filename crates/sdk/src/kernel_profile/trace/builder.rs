//! Builds the rows of a profile's trace: command buffers first, then passes and dispatches, then `finish`.

use super::pass_order::PassesAsWork;
use super::signed;
use crate::interval::Interval;
use crate::kernel_profile;
use crate::kernel_profile::rows::{CommandBufferRow, DispatchRow, PassRow, ScopeRow};
use gapscope_timeline_builder::{WorkPlace, rows};
use gapscope_trace::build::{Interner, Labels};
use gapscope_trace::ids::{CommandBufferId, KernelId, LabelId, ProcessId, QueueId, SubmissionId};
use gapscope_trace::tables::{
    CommandBuffer, Kernel, Marker, MarkerScope, NameSource, OpaqueWorkKind, Submission,
    SubmissionKind, Table, Tables, Timing,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The only process.
pub(super) const PROCESS: ProcessId = ProcessId(0);

/// A kernel: its name and the threads of its workgroups.
#[derive(Clone, PartialEq, Eq, Hash)]
struct KernelKey {
    name: Arc<str>,
    group_size: Option<[u32; 3]>,
}

/// A command buffer that has a row.
#[derive(Clone, Copy)]
struct PlacedCommandBuffer {
    id: CommandBufferId,
    queue: QueueId,
    label: Option<LabelId>,
}

/// The tables so far, with what has to be counted or numbered for them.
#[derive(Default)]
pub(super) struct Builder {
    pub tables: Tables,
    /// The ids of queues, by name.
    pub queues: Interner<Arc<str>, QueueId>,
    /// The number of dispatches whose command buffer has no row.
    pub unplaced_dispatches: u64,
    /// The number of passes whose command buffer has no row.
    pub unplaced_passes: u64,
    /// The number of scopes whose command buffer has no row.
    pub unplaced_scopes: u64,
    labels: Labels,
    kernels: Interner<KernelKey, KernelId>,
    /// The command buffers that have rows, by the program's ids.
    placed: FxHashMap<kernel_profile::CommandBufferId, PlacedCommandBuffer>,
}

impl Builder {
    /// Adds a command buffer and, where its time is known, its submission.
    pub fn command_buffer(&mut self, row: &CommandBufferRow) {
        let entry = &row.entry;
        let number = self.tables.command_buffers.len() as u64;
        let (id, submission) = (CommandBufferId(number), SubmissionId(number));
        let queue = self.queues.id(Arc::from(&*entry.queue));
        let label = self.label(None, &entry.label);
        if let Some(command_buffer) = entry.id {
            let placed = PlacedCommandBuffer { id, queue, label };
            self.placed.insert(command_buffer, placed);
        }
        if let Some(submitted_ns) = entry.submitted_ns {
            let row = Submission {
                id: submission,
                process: PROCESS,
                queue,
                kind: SubmissionKind::CommandBuffers,
                thread: None,
                start_ns: signed(submitted_ns),
                duration_ns: 0,
                command_buffers: 1,
                function: None,
            };
            rows::submission(&mut self.tables, row);
        }
        let (start_ns, duration_ns) = start_and_duration(row.interval());
        let row = CommandBuffer {
            id,
            process: PROCESS,
            queue,
            submission,
            start_ns,
            duration_ns,
            seen_ns: entry.seen_ns.map(signed),
            timing: match start_ns {
                Some(_) => Timing::Measured,
                None => Timing::Unknown,
            },
            dispatches: entry.dispatches,
            transfers: 0,
            label,
            name: (!entry.label.is_empty()).then(|| entry.label.as_ref().into()),
            host_functions: None,
        };
        rows::command_buffer(&mut self.tables, row);
    }

    /// Adds a pass: as a row if `work` (the passes that become rows) has it, else as a marker if it has a label.
    pub fn pass(&mut self, row: &PassRow, work: &PassesAsWork) {
        let entry = &row.entry;
        let placed = entry.command_buffer.and_then(|id| self.placed.get(&id));
        let (Some(placed), Some(command_buffer)) = (placed.copied(), entry.command_buffer) else {
            self.unplaced_passes += 1;
            return;
        };
        let around = placed.label.or_else(|| self.label(None, &entry.cb_label));
        let label = self.label(around, &entry.label);
        let (start_ns, duration_ns) = start_and_duration(row.interval());
        if let Some(index) = work.index(command_buffer, row) {
            let place = WorkPlace {
                command_buffer: Some(placed.id),
                position: entry.first_dispatch + index,
                start_ns,
                duration_ns,
                label,
                ..WorkPlace::new(placed.queue, None)
            };
            rows::opaque_work(&mut self.tables, place, OpaqueWorkKind::ComputePass);
        } else if let (Some(label), false) = (label, entry.label.is_empty()) {
            self.marker(placed, label, row.interval());
        }
    }

    /// Adds a scope as a marker.
    pub fn scope(&mut self, row: &ScopeRow) {
        let entry = &row.entry;
        let Some(placed) = self.placed.get(&entry.command_buffer).copied() else {
            self.unplaced_scopes += 1;
            return;
        };
        let mut label = placed.label.or_else(|| self.label(None, &entry.cb_label));
        for part in entry.path.iter() {
            label = self.label(label, part);
        }
        if let Some(label) = label {
            self.marker(placed, label, entry.placed);
        }
    }

    /// Adds a marker of a part of a command buffer.
    fn marker(&mut self, placed: PlacedCommandBuffer, label: LabelId, interval: Option<Interval>) {
        let (start_ns, duration_ns) = start_and_duration(interval);
        let scope = MarkerScope::CommandBuffer;
        let row = rows::marker_row(PROCESS, scope, label, start_ns, duration_ns);
        let row = Marker {
            queue: Some(placed.queue),
            command_buffer: Some(placed.id),
            ..row
        };
        rows::marker(&mut self.tables, row);
    }

    /// Adds a dispatch, at its place among the passes that are work.
    pub fn dispatch(&mut self, row: &DispatchRow, work: &PassesAsWork) {
        let placed = row.command_buffer.and_then(|id| self.placed.get(&id));
        let (Some(placed), Some(command_buffer)) = (placed.copied(), row.command_buffer) else {
            self.unplaced_dispatches += 1;
            return;
        };
        // An operation that names the kernel is no label around it.
        let operation = match row.kernel.is_empty() {
            true => "",
            false => &row.op_kind,
        };
        let around = placed.label.or_else(|| self.label(None, &row.cb_label));
        let index = row.dispatch_index;
        let kernel = self.kernels.id(KernelKey {
            name: Arc::clone(row.name()),
            group_size: row.group_size,
        });
        let label = self.label(around, operation);
        let place = WorkPlace {
            command_buffer: Some(placed.id),
            position: index + work.before_dispatch(command_buffer, index),
            start_ns: row.start_ns().map(signed),
            duration_ns: row.duration_ns().map(signed),
            label,
            ..WorkPlace::new(placed.queue, None)
        };
        rows::dispatch(&mut self.tables, place, kernel, each(row.groups), None);
    }

    /// Adds the rows of kernels and labels.
    pub fn finish(&mut self) {
        for (id, kernel) in self.kernels.iter() {
            let [local_x, local_y, local_z] = each(kernel.group_size);
            self.tables.kernels.push(Kernel {
                id,
                process: PROCESS,
                name: match kernel.name.is_empty() {
                    true => "unnamed".into(),
                    false => kernel.name.clone(),
                },
                name_source: NameSource::ObjectName,
                entry_point: None,
                source: None,
                specialisation: None,
                local_x,
                local_y,
                local_z,
                full_name: None,
                source_file: None,
                source_file_hash: None,
                registers: None,
                local_bytes: None,
                static_shared_bytes: None,
                dynamic_shared_bytes: None,
                accesses: None,
            });
        }
        self.labels.push_into(&mut self.tables.labels);
    }

    /// Returns the label `text` inside `around`, or `around` if the text is empty.
    fn label(&mut self, around: Option<LabelId>, text: &str) -> Option<LabelId> {
        match text.is_empty() {
            true => around,
            false => Some(self.labels.named(around, text)),
        }
    }
}

/// Returns start and duration as tables have them.
fn start_and_duration(interval: Option<Interval>) -> (Option<i64>, Option<i64>) {
    let start = interval.map(|interval| signed(interval.start_ns));
    let duration = interval.map(|interval| signed(interval.duration_ns()));
    (start, duration)
}

/// Returns the three sizes, each unknown where all are.
fn each(size: Option<[u32; 3]>) -> [Option<u32>; 3] {
    size.map_or([None; 3], |size| size.map(Some))
}
