//! The table of the memory that allocators of programs manage.

use crate::ids::*;
use crate::kinds::*;
use crate::table::table;

table! {
    /// Device memory that an allocator of the program manages, such as PyTorch's caching allocator: segments, which it
    /// reserves from the driver, and blocks, which it gives to the program out of them.
    AllocatorMemory of AllocatorRow, "allocator_row" in "allocator_memory" {
        /// Id of the process.
        process: ProcessId,
        /// Id of the device.
        device: DeviceId,
        /// A segment or a block.
        kind: AllocatorMemoryKind,
        /// Where it begins.
        address: u64,
        /// Its size; of a block, as the program asked for it.
        bytes: u64,
        /// When it was allocated; absent where that was before the allocator's history began.
        allocated_ns: Option<i64>,
        /// When it was freed; absent where it lived at the end.
        freed_ns: Option<i64>,
        /// Id of the innermost label that was open when the block was allocated.
        label: Option<LabelId>,
        /// Id of the stack (`stacks`) in which it was asked for.
        stack: Option<StackId>,
    }
}
