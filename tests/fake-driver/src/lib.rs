//! gapscope's fake GPU: a small Vulkan 1.3 driver for tests. **No GPU work is done.** Dispatches take a configured time on
//! a simulated clock and compute nothing; fills, copies, updates and query results really move bytes. It shows gapscope's
//! layer what the software GPU (lavapipe) cannot: many queue families; coarse, narrow, drifting or missing timestamps;
//! memory that is not coherent; a lost device. And it reports each misuse of the API that it sees.
//!
//! The ordinary loader loads it with `VK_DRIVER_FILES=/path/to/fake.json`, where the file holds
//! ```json
//! {
//!     "file_format_version": "1.0.0",
//!     "ICD": {
//!         "library_path": "/absolute/path/to/target/debug/libfake_vulkan_driver.so",
//!         "api_version": "1.3.280"
//!     }
//! }
//! ```
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `FAKE_VK_QUEUES` | queue families: `G`raphics, `C`ompute, `T`ransfer, then the family's timestamp bits if not the default, `:` and the queues | `GCT:2,CT:2,T:1,C0:1` |
//! | `FAKE_VK_DISPATCH_NS` | time of a dispatch, a draw or the start of a render pass | 10000 |
//! | `FAKE_VK_GROUP_NS` | further time of a dispatch for each workgroup | 0 |
//! | `FAKE_VK_BYTES_PER_US` | speed of transfers | 10000 |
//! | `FAKE_VK_SUBMIT_NS` | from the submit call to the earliest start | 5000 |
//! | `FAKE_VK_OVERLAP` | 1: work without a barrier between starts when the work before it is half done | 0 |
//! | `FAKE_VK_TIMESTAMP_PERIOD` | nanoseconds per tick | 1 |
//! | `FAKE_VK_TIMESTAMP_BITS` | valid bits | 64 |
//! | `FAKE_VK_CLOCK_OFFSET_NS`, `FAKE_VK_CLOCK_DRIFT_PPM` | a timestamp is `(CLOCK_MONOTONIC + offset) * (1 + drift / 1e6) / period`, cut to the valid bits | 0 |
//! | `FAKE_VK_COHERENT` | 0: no host-visible memory is coherent (not even the type that Vulkan demands) | 1 |
//! | `FAKE_VK_CALIBRATED` | 0: no calibrated timestamps; `raw`: only the device's and CLOCK_MONOTONIC_RAW | 1 |
//! | `FAKE_VK_HOST_QUERY_RESET` | 0: without this feature | 1 |
//! | `FAKE_VK_SIZE` | multiprocessors by the extension of a vendor: `nv:` then their count, `:` and the warps of each; `amd:` compute units and waves of 64 threads; `arm:` cores | none |
//! | `FAKE_VK_COUNTERS` | `1`: `VK_KHR_performance_query` with the counters of `performance.rs`; `locked`: another program has the profiling lock; `never`: results never come | none |
//! | `FAKE_VK_LOST_AFTER` | number of submissions that execute; the next one is accepted and loses the device | never |
//! | `FAKE_VK_NULL` | 1: work takes no time and usage is not checked, to benchmark what sits above | 0 |
//! | `FAKE_VK_MISUSE_LOG` | file to which each misuse is appended as a line; a clean run does not create it | none |
//! | `FAKE_VK_TRUTH` | file to which each executed command is appended as a line of JSON, see `truth.rs` | none |

#![allow(
    unsafe_op_in_unsafe_fn,
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    reason = "Vulkan entry points throughout: the caller's valid usage makes their pointers sound, and handles are checked"
)]

mod availability;
mod buffer;
mod calibration;
mod chain;
mod clock;
mod command;
mod command_buffer;
mod config;
mod debug_utils;
mod descriptor;
mod device;
mod device_calls;
mod entry_points;
mod execution;
mod external_sync;
mod features;
mod image;
mod instance;
mod limits;
mod loader;
mod memory;
mod misuse;
mod object;
mod performance;
mod physical_device;
mod pipeline;
mod properties;
mod query;
mod queue;
mod record;
mod submit;
mod sync;
mod truth;
