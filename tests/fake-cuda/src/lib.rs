//! A stub of libcuda, libcupti and libnvidia-ml in one library, for machines without CUDA.
//!
//! Link it as `libcuda.so.1` and as `libcupti.so.13` into a folder, and put the folder on `LD_LIBRARY_PATH`. Its driver has simulated
//! streams: a kernel begins 4 µs after its launch or when its stream is free, and takes 2 µs. Its CUPTI writes the records of CUPTI
//! 13.0, whose structures it declares as the header does. Memory has bytes (`driver/address_space.rs`), a cubin (`cubin.rs`) has
//! kernels that are written in Rust (`driver/kernels.rs`), and copies, fills and kernels move bytes on the calling thread; kernels that
//! the stub does not know do nothing. Transfers of more than 128 MiB, and those whose addresses are below 4096, only take their time.
//! Driver and CUPTI behave as on a real machine:
//!
//! - one subscriber; the second is refused, and without any the last one to register callbacks gets all buffers;
//! - thread ids are shortened pthread handles, and times those of the wall clock, unless set otherwise in time;
//! - a call of the runtime has the driver's call inside it, with callbacks of its own and the same correlation;
//! - a module of a library is loaded when a function of it is needed, with callbacks inside that call, if `FAKE_CUDA_LAZY` is 1;
//! - the address of a global is another one in each process, and reserved addresses are multiples of 32 MiB;
//! - the handle of a library's kernel can be launched, but is no function's: functions that take those refuse it;
//! - a kernel that uses memory which is not there makes all later calls of its context fail;
//! - a graph that is launched after its tracing was switched on too late crashes the program.
//!
//! | variable | what it makes wrong |
//! |---|---|
//! | `FAKE_CUDA_API_VERSION` | the version that CUPTI says (130001); 0: it does not say it; from 130101 on it times functions of the host |
//! | `FAKE_CUDA_DRIVER_VERSION` | the CUDA version of the driver (13000) |
//! | `FAKE_CUDA_SUBSCRIBE=refuse` | the subscription |
//! | `FAKE_CUDA_CALLBACKS=refuse` | callbacks at calls |
//! | `FAKE_CUDA_STREAM_IDS=refuse` | the numbers of streams, asked for by handle |
//! | `FAKE_CUDA_TIMES=zero:3` | start and end of every third kernel; `negative:3`, `half:3` likewise |
//! | `FAKE_CUDA_SKEW=-3000:20` | times of devices: 3 µs early, and 20 ppm fast from the first one on |
//! | `FAKE_CUDA_UNKNOWN=5` | every fifth record is followed by one of a kind that nobody knows |
//! | `FAKE_CUDA_TORN=1` | the first buffer ends in a record that CUPTI itself does not know |
//! | `FAKE_CUDA_DROP=9` | nine records are said to be dropped |
//! | `FAKE_CUDA_GRAPH_ON_HOST=start` | device and context of graphs that are timed as wholes: they start on the host; `all`: they end there too |
//! | `FAKE_CUDA_ORDER=reverse` | records come the last first |
//! | `FAKE_CUDA_DEVICE_RECORD=late`, `FAKE_CUDA_CONTEXT_RECORD=late` | the device's record, or those of contexts, come at the end only |
//! | `FAKE_CUDA_BUFFER=4096` | this many bytes of each buffer are used |
//! | `FAKE_CUDA_SWITCH_MS=100` | takes this long to switch a kind of record on or off |
//! | `FAKE_CUDA_DEVICES=2`, `FAKE_CUDA_KERNEL_NS=5000` | nothing: this many devices; kernels take this long |
//! | `FAKE_CUDA_PROFILER=busy`, `…=privileges` | profiling of kernels is refused |
//! | `FAKE_CUDA_PROFILER_MS=200`, `FAKE_CUDA_PASSES=5` | it takes so long to start; profiled kernels run so often (3) |
//! | `FAKE_CUDA_ATTRIBUTES=refuse` | the driver does not say what a device has |
//! | `FAKE_CUDA_PC` | sampling of instructions: `cupti/pc_sampling.rs` |
//! | `FAKE_CUDA_LAZY=1` | nothing: modules of libraries are loaded late |
//! | `FAKE_CUDA_ALLOCATIONS=reuse` | nothing: a freed allocation is used again for smaller ones |
//! | `FAKE_CUDA_ADDRESSES=other` | the addresses that the driver reserves: they are not those that were wished |
//! | `FAKE_CUDA_METRICS=name=7,…` | nothing: values of metrics of profiled kernels |
//! | `FAKE_CUDA_MIG=1` | nothing: devices are parts of GPUs |
//! | `FAKE_CUDA_PM` | samples of hardware counters: `cupti/metrics.rs` |
//! | `FAKE_CUDA_NVML` | what NVML says, as a script: `nvml.rs` |
//! | `FAKE_CUDA_TRUTH=file` | nothing: one JSON line for each kernel, transfer, call, event and wait is appended |

mod config;
pub mod cubin;
mod cupti;
mod driver;
pub mod names;
mod nvml;
pub mod records;
mod truth;

pub use cupti::callbacks;
