//! The table of instruction samples.

use crate::ids::*;
use crate::kinds::*;
use crate::table::table;
use std::sync::Arc;

table! {
    /// How often an instruction of a CUDA kernel was the next one of a sampled warp, over the whole recording: a row
    /// for each instruction and reason.
    PcSamples of PcSample, "pc_sample" in "pc_samples" {
        /// Id of the process.
        process: ProcessId,
        /// Id of the device.
        device: DeviceId,
        /// Id of a kernel with this function; absent where none was recorded.
        kernel: Option<KernelId>,
        /// The function, as the code names it; absent where CUPTI does not name it.
        function: Option<Arc<str>>,
        /// Offset of the instruction in bytes from the function's start.
        offset_bytes: u64,
        /// Why the warp did not issue it: `long_scoreboard`, `wait` and so on; `selected` where it did.
        stall_reason: Arc<str>,
        /// Number of samples, not a time.
        samples: u64,
        /// Cycles between two samples of a multiprocessor; absent where CUPTI does not tell.
        period_cycles: Option<u64>,
        /// The source file of the instruction, as the code names it.
        file: Option<Arc<str>>,
        /// The source line of the instruction.
        line: Option<u32>,
        /// Why there is no line.
        no_line: Option<NoLine>,
        /// CUPTI's checksum of the cubin.
        cubin_crc: u64,
        /// Hash of the cubin; `sources/HASH.cubin` holds it. Absent where it is not kept.
        source: Option<Arc<str>>,
    }
}
