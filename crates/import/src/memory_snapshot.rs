//! Imports snapshots of the memory of PyTorch's caching allocator, which `torch.cuda.memory._dump_snapshot` pickles.
//!
//! The pickle is read by a reader of plain values ([`gapscope_timeline_builder::memory_snapshot`]): Python's would run
//! code that a stranger has put into it.

use crate::error::only_file;
use crate::inventory::Inventory;
use crate::{Error, Importer, Options, Output};
use gapscope_timeline_builder::memory_snapshot::{DeviceMemory, MemorySnapshot};
use gapscope_trace::LossKind;
use gapscope_trace::ids::{AllocationId, DeviceId, ProcessId};
use gapscope_trace::tables::{MemoryEvent, MemoryRow, Table, Tables};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Imports snapshots of PyTorch's memory.
pub const IMPORTER: Importer = Importer {
    name: "PyTorch's memory",
    reads: "snapshots of PyTorch's memory (.pickle)",
    recognises,
    read,
    joins_named_ranks: false,
};

const WANTED: &str = "a snapshot of PyTorch's memory";
/// The largest snapshot that is read: its values take up to ten times as much memory.
const MAX_FILE_BYTES: u64 = 4 << 30;
/// The size of a file's start in which a snapshot has its first key.
const FIRST_BYTES: u64 = 256;
const DAY_NS: i64 = 86_400_000_000_000;

/// Returns whether a file begins like a pickled dictionary with segments or a history of devices.
fn recognises(path: &Path) -> bool {
    let mut start = Vec::new();
    let file = path.is_file().then(|| File::open(path).ok()).flatten();
    let read = file.map(|file| file.take(FIRST_BYTES).read_to_end(&mut start));
    let has = |key: &[u8]| memchr::memmem::find(&start, key).is_some();
    matches!(read, Some(Ok(_)))
        && start.first() == Some(&0x80)
        && (has(b"segments") || has(b"device_traces"))
}

fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    let path = only_file(inputs, "snapshot of PyTorch's memory")?;
    let failed = Error::read(path);
    let file = File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let limit = MAX_FILE_BYTES + 1;
    file.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 >= limit {
        return Err(Error::foreign(path, WANTED, "it is larger than 4 GiB"));
    }
    output.progress(0, bytes.len() as u64);
    let snapshot =
        MemorySnapshot::read(&bytes).map_err(|found| Error::foreign(path, WANTED, found))?;
    drop(bytes);
    let Some((first_ns, last_ns)) = snapshot.span_ns() else {
        return Err(Error::nothing(format!(
            "{} has no history of allocations: call torch.cuda.memory._record_memory_history() before the program allocates",
            path.display()
        )));
    };
    // Times count from 1970: those of a trace from the beginning of that day, as in files of PyTorch's profiler.
    let shift_ns = first_ns % DAY_NS - first_ns;
    let mut inventory = Inventory::new("PyTorch's memory");
    inventory.manifest.start_unix_ns = Some(shift_ns.saturating_neg());
    inventory.spans(first_ns + shift_ns, last_ns.saturating_add(shift_ns));
    let process = inventory.process(options.pid.unwrap_or(0));
    let mut trace = output.trace()?;
    let stacks = snapshot.write_stacks(trace.tables_mut());
    let mut allocations = Allocations::default();
    for memory in &snapshot.devices {
        let device = inventory.device(process, Some(memory.device), |device| device.name.clear());
        let tables = trace.tables_mut();
        let place = (process, device);
        memory.write(place, shift_ns, &stacks, (&mut inventory.labels, tables));
        let shifted = |ns: i64| ns.saturating_add(shift_ns);
        allocations.add(memory, place, first_ns, shifted, tables);
        if memory.out_of_memory > 0 {
            inventory.note(format!(
                "PyTorch's allocator had no memory to give on GPU {}: {} times in the history.",
                memory.device, memory.out_of_memory
            ));
        }
    }
    inventory.lose(
        LossKind::MemoryEvents,
        snapshot.unread_entries,
        "they have no time or no place, or a kind that gapscope does not know",
    );
    inventory.note("A snapshot of PyTorch's memory has no GPU work, and of memory only what its allocator reserved: not that of libraries and of other processes.");
    inventory.finish(trace, options, output)
}

/// The segments as allocations of device memory, which is what the driver gave to the program.
#[derive(Default)]
struct Allocations {
    count: u32,
}

impl Allocations {
    fn add(
        &mut self,
        memory: &DeviceMemory,
        (process, device): (ProcessId, DeviceId),
        first_ns: i64,
        shifted: impl Fn(i64) -> i64,
        tables: &mut Tables,
    ) {
        for segment in &memory.segments {
            self.count = self.count.wrapping_add(1);
            let row = |event, at_ns| MemoryRow {
                process,
                device,
                at_ns: shifted(at_ns),
                event,
                allocation: AllocationId(self.count),
                bytes: segment.bytes,
                heap: 0,
            };
            // What was reserved before is there from the beginning.
            let at_ns = segment.allocated_ns.unwrap_or(first_ns);
            tables.memory.push(row(MemoryEvent::Allocate, at_ns));
            let free = segment.freed_ns.map(|at_ns| row(MemoryEvent::Free, at_ns));
            if let Some(free) = free {
                tables.memory.push(free);
            }
        }
    }
}
