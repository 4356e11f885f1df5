//! Adds the activity of host threads, compiled kernels and memory of the exports to the trace.

use super::super::facts::{Completion, HostInterval};
use super::super::labels::without_owner;
use super::{Builder, DEVICE, PROCESS, thread_id};
use gapscope_timeline_builder::rows;
use gapscope_trace::build::Interner;
use gapscope_trace::ids::{AllocationId, CounterId, KernelId};
use gapscope_trace::tables::{
    Counter, CounterUnit, CounterValue, Kernel, Marker, MarkerScope, MemoryEvent, MemoryRow,
    NameSource, THERMAL_STATE, Table,
};
use std::collections::BTreeSet;

/// The identity of a shader, which Instruments lists once for each of its entry points.
#[derive(Clone, PartialEq, Eq, Hash)]
struct KernelKey {
    shader: u64,
    entry_point: String,
}

impl Builder {
    /// Adds host intervals as markers under a label of their kind, and reads when command buffers finished or failed.
    pub(super) fn host_work(&mut self) {
        let host = std::mem::take(&mut self.facts.host);
        for interval in host
            .iter()
            .filter(|interval| interval.pid == Some(self.pid))
        {
            let HostInterval { group, text, .. } = interval;
            let text = without_owner(text, &self.name, self.pid).to_owned();
            let group = self.labels.named(None, group);
            let label = self.labels.named(Some(group), &text);
            let row = rows::marker_row(
                PROCESS,
                MarkerScope::Thread,
                label,
                Some(self.at(interval.start_ns)),
                Some(interval.duration_ns),
            );
            let thread = interval.thread.as_ref();
            let thread = thread.map(|thread| thread_id(thread.tid));
            rows::marker(&mut self.trace.tables, Marker { thread, ..row });
        }
        for completion in std::mem::take(&mut self.facts.completions) {
            let Completion {
                at_ns,
                command_buffer,
            } = completion;
            // A command buffer that was committed several times is seen finished once, after the commit that the
            // notice follows.
            if let Some(index) = self.instance_at(command_buffer, at_ns) {
                let seen = &mut self.instances[index].seen_ns;
                *seen = Some(seen.map_or(at_ns, |seen| seen.min(at_ns)));
            }
        }
        let mut failures = std::mem::take(&mut self.facts.failures);
        failures.retain(|failure| self.by_id.contains_key(&failure.command_buffer));
        if !failures.is_empty() {
            let count = failures.len();
            let codes: BTreeSet<u64> = failures.iter().map(|failure| failure.code).collect();
            let codes: Vec<String> = codes.iter().map(u64::to_string).collect();
            self.facts.notes.push(format!(
                "{count} command buffers ended with an error (MTLCommandBufferError {}): what they computed is not valid.",
                codes.join(", ")
            ));
        }
    }

    /// Adds compute shaders of the process as kernels, each entry point once.
    pub(super) fn kernels(&mut self) {
        let mut kernels: Interner<KernelKey, KernelId> = Interner::default();
        for shader in std::mem::take(&mut self.facts.shaders) {
            let compute = shader
                .shader_type
                .as_deref()
                .is_none_or(|kind| kind == "Compute");
            if !self.is_target(shader.pid) || !compute {
                continue;
            }
            // Instruments appends the shader's id to the name.
            let suffix = format!(" ({})", shader.id);
            let entry = shader
                .name
                .strip_suffix(suffix.as_str())
                .unwrap_or(&shader.name);
            let known = kernels.len();
            let id = kernels.id(KernelKey {
                shader: shader.id,
                entry_point: entry.to_owned(),
            });
            if kernels.len() == known {
                continue;
            }
            let (name, name_source) = match &shader.label {
                Some(label) => (label.to_string(), NameSource::ObjectName),
                None => (entry.to_owned(), NameSource::EntryPoint),
            };
            self.trace.tables.kernels.push(Kernel {
                id,
                process: PROCESS,
                name: name.into(),
                name_source,
                entry_point: Some(entry.into()),
                source: None,
                specialisation: None,
                local_x: None,
                local_y: None,
                local_z: None,
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
    }

    /// Adds the allocations of the process, and their frees where the lifetime is known, in order of time.
    pub(super) fn memory(&mut self) {
        let mut allocations = std::mem::take(&mut self.facts.allocations);
        allocations.retain(|allocation| self.is_target(allocation.pid));
        allocations.sort_by_key(|allocation| (allocation.at_ns, allocation.resource));
        let mut rows = Vec::new();
        for (allocation, id) in allocations.iter().zip((1..).map(AllocationId)) {
            let row = |at_ns, event| MemoryRow {
                process: PROCESS,
                device: DEVICE,
                at_ns: self.at(at_ns),
                event,
                allocation: id,
                bytes: allocation.bytes,
                heap: 0,
            };
            rows.push(row(allocation.at_ns, MemoryEvent::Allocate));
            if let Some(lifetime_ns) = allocation.lifetime_ns {
                rows.push(row(
                    allocation.at_ns.saturating_add(lifetime_ns),
                    MemoryEvent::Free,
                ));
            }
        }
        rows.sort_by_key(|row| row.at_ns);
        for row in rows {
            self.trace.tables.memory.push(row);
        }
    }

    /// Adds each thermal state other than the usual one as a counter, from which analyses read the times in the
    /// state: its value is 100 % there.
    pub(super) fn thermal_states(&mut self) {
        let states = self.facts.thermal.iter();
        let unusual = states.filter(|(state, _)| ***state != *"Nominal");
        for ((state, spans), id) in unusual.zip((0..).map(CounterId)) {
            self.trace.tables.counters.push(Counter {
                id,
                name: format!("{THERMAL_STATE}{state}").into(),
                unit: CounterUnit::Percent,
                device: None,
                queue: None,
                source: "Instruments".into(),
            });
            for span in spans {
                self.trace.tables.counter_values.push(CounterValue {
                    counter: id,
                    start_ns: self.at(span.start_ns),
                    duration_ns: Some(span.end_ns.saturating_sub(span.start_ns)),
                    value: 100.0,
                });
            }
        }
    }
}
