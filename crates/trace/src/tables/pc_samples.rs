//! Samples of instructions.

use crate::ids::*;
use crate::kinds::*;
use crate::table::table;
use std::sync::Arc;

table! {
    /// How often an instruction of a CUDA kernel was the next one of a sampled warp, over the whole recording: a row for each
    /// instruction and reason.
    PcSamples of PcSample, "pc_sample" in "pc_samples" {
        /// Id of the process.
        process: ProcessId,
        /// Id of the device.
        device: DeviceId,
        /// Id of a kernel of this function; absent where none was recorded.
        kernel: Option<KernelId>,
        /// The function, as the code calls it; absent where CUPTI does not name it.
        function: Option<Arc<str>>,
        /// Where the instruction is, bytes from the function's start.
        offset_bytes: u64,
        /// Why the warp did not issue it: `long_scoreboard`, `wait` and so on; `selected` where it did.
        stall_reason: Arc<str>,
        /// Samples: a count, not a time.
        samples: u64,
        /// Cycles between two samples of a multiprocessor; absent where CUPTI does not say.
        period_cycles: Option<u64>,
        /// The file that the instruction was compiled from, as the code names it.
        file: Option<Arc<str>>,
        /// Its line.
        line: Option<u32>,
        /// Why there is no line.
        no_line: Option<NoLine>,
        /// CUPTI's checksum of the cubin.
        cubin_crc: u64,
        /// Hash of the cubin; `sources/HASH.cubin` holds it. Absent where it is not kept.
        source: Option<Arc<str>>,
    }
}
