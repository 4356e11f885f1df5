//! Memory timeline: what was allocated when.

use serde::Serialize;

/// Device memory over the recording, by device and heap.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MemoryRow {
    /// Index of the device in the findings.
    pub device: u32,
    /// The heap; absent in the row for the whole device.
    pub heap: Option<u32>,
    /// Size of the heap, or of all heaps; absent when it is not known.
    pub heap_bytes: Option<u64>,
    /// Allocations made.
    pub allocation_count: u64,
    /// Allocations freed.
    pub free_count: u64,
    /// Sum of the sizes of all allocations.
    pub total_bytes: u64,
    /// Most that was allocated at one time.
    pub peak_bytes: u64,
    /// When that was first reached.
    pub peak_at_ns: Option<i64>,
    /// Still allocated at the end.
    pub live_bytes: u64,
    /// Allocations still live at the end.
    pub live_count: u64,
    /// Frees of what the trace does not show allocated: the figures may lack that.
    pub unmatched_free_count: u64,
}
