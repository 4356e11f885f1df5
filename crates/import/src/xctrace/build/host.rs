//! What the host did, which kernels there are, and memory.

use super::super::facts::HostInterval;
use super::super::labels::without_owner;
use super::{Builder, DEVICE, PROCESS, thread_id};
use gapscope_trace::tables::*;
use std::collections::BTreeSet;

impl Builder {
    pub(super) fn host_work(&mut self) {
        let host = std::mem::take(&mut self.facts.host);
        for interval in host
            .iter()
            .filter(|interval| interval.pid == Some(self.pid))
        {
            let HostInterval { group, text, .. } = interval;
            let text = without_owner(text, &self.name, self.pid).to_owned();
            let labels = &mut self.trace.tables.labels;
            let group = self.labels.id(None, group, labels);
            let label = self.labels.id(Some(group), &text, labels);
            self.trace.tables.markers.push(Marker {
                process: PROCESS,
                scope: MarkerScope::Thread,
                label,
                thread: interval.thread.as_ref().map(|thread| thread_id(thread.tid)),
                start_ns: Some(self.at(interval.start_ns)),
                duration_ns: Some(interval.duration_ns),
                ..Marker::default()
            });
        }
        for (at_ns, metal_id) in std::mem::take(&mut self.facts.completions) {
            // A command buffer is seen finished once; of several commits, the one that it follows.
            if let Some(index) = self.instance_at(metal_id, at_ns) {
                let seen = &mut self.instances[index].seen_ns;
                *seen = Some(seen.map_or(at_ns, |seen| seen.min(at_ns)));
            }
        }
        let errors = std::mem::take(&mut self.facts.errors);
        let own: BTreeSet<u64> = (errors.iter())
            .filter(|(_, metal_id, _)| self.by_id.contains_key(metal_id))
            .map(|(.., code)| *code)
            .collect();
        if !own.is_empty() {
            let count = errors
                .iter()
                .filter(|(_, id, _)| self.by_id.contains_key(id))
                .count();
            let codes: Vec<String> = own.iter().map(u64::to_string).collect();
            self.facts.notes.push(format!(
                "{count} command buffers ended with an error (MTLCommandBufferError {}): what they computed is not valid.",
                codes.join(", ")
            ));
        }
    }

    pub(super) fn kernels(&mut self) {
        let mut seen: BTreeSet<(u64, String)> = BTreeSet::new();
        for shader in std::mem::take(&mut self.facts.shaders) {
            let compute = shader
                .shader_type
                .as_deref()
                .is_none_or(|kind| kind == "Compute");
            if !self.is_target(shader.pid) || !compute {
                continue;
            }
            // Instruments puts its id behind the name.
            let suffix = format!(" ({})", shader.id);
            let entry = shader
                .name
                .strip_suffix(suffix.as_str())
                .unwrap_or(&shader.name);
            if !seen.insert((shader.id, entry.to_owned())) {
                continue;
            }
            let (name, name_source) = match &shader.label {
                Some(label) => (label.to_string(), NameSource::ObjectName),
                None => (entry.to_owned(), NameSource::EntryPoint),
            };
            self.trace.tables.kernels.push(Kernel {
                id: seen.len() as u32,
                process: PROCESS,
                name,
                name_source,
                entry_point: Some(entry.to_owned()),
                ..Kernel::default()
            });
        }
    }

    pub(super) fn memory(&mut self) {
        let mut allocations = std::mem::take(&mut self.facts.allocations);
        allocations.retain(|allocation| self.is_target(allocation.pid));
        allocations.sort_by_key(|allocation| (allocation.at_ns, allocation.resource));
        let mut rows = Vec::new();
        for (allocation, id) in allocations.iter().zip(1u32..) {
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
}
