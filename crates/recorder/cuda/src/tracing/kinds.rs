//! The kinds of CUPTI's records that are switched on (some always, some while recording is on), without those that
//! the environment leaves out.

use crate::cupti::numbers::{FIRST_WITH_HOST_FUNCTIONS, kind};
use crate::cupti::{Code, Cupti};
use crate::recorder::Recorder;
use gapscope_spool::event::LossKind;

/// A kind of CUPTI's records.
pub struct Kind {
    /// The number of the kind in CUPTI (CUpti_ActivityKind).
    number: u32,
    /// The name by which [`gapscope_spool::env::CUDA_WITHOUT`] leaves the kind out; empty where it cannot.
    name: &'static str,
    /// The kind of loss as which records that are left out or refused are counted.
    loss: LossKind,
}

impl Kind {
    const fn new(number: u32, name: &'static str, loss: LossKind) -> Kind {
        Kind { number, name, loss }
    }
}

/// The kinds for objects, and for memory, whose timeline must be whole. They are on even while recording is off.
pub static DEFINITIONS: [Kind; 5] = [
    Kind::new(kind::DEVICE, "", LossKind::CudaDevices),
    Kind::new(kind::CONTEXT, "", LossKind::CudaContexts),
    Kind::new(kind::STREAM, "", LossKind::CudaStreams),
    Kind::new(kind::MEMORY2, "memory", LossKind::MemoryAllocations),
    Kind::new(kind::MEMORY_POOL, "pools", LossKind::MemoryPools),
];

/// The kind for graphs that are timed as wholes, which is always on.
pub static GRAPHS: [Kind; 1] = [Kind::new(kind::GRAPH_TRACE, "", LossKind::GraphLaunches)];

/// Enables host functions and host nodes of graphs where CUPTI records them. They stay on, because CUPTI may not
/// accept them once graphs exist. Without them only their calls and their number are known.
pub fn enable_host_functions(recorder: &Recorder, cupti: &Cupti) {
    let is_known = cupti.version >= FIRST_WITH_HOST_FUNCTIONS;
    if is_known && is_wanted(recorder, "host-functions", &LossKind::HostCalls) {
        cupti.enable(kind::HOST_LAUNCH);
        if !whole_graphs() {
            cupti.enable(kind::GRAPH_HOST_NODE);
        }
    }
}

/// The kinds for work, which are on while recording is.
pub static WORK: [Kind; 5] = [
    Kind::new(kind::CONCURRENT_KERNEL, "kernels", LossKind::Dispatches),
    Kind::new(kind::MEMCPY, "copies", LossKind::Copies),
    Kind::new(
        kind::MEMCPY_PEER,
        "peer-copies",
        LossKind::CopiesBetweenDevices,
    ),
    Kind::new(kind::MEMSET, "fills", LossKind::Fills),
    Kind::new(kind::OVERHEAD, "overheads", LossKind::Overheads),
];

/// Starts to record kinds that are not left out.
pub fn enable(recorder: &Recorder, cupti: &Cupti, kinds: &[Kind]) {
    for kind in kinds {
        if is_wanted(recorder, kind.name, &kind.loss) {
            check(recorder, cupti, &kind.loss, cupti.enable(kind.number));
        }
    }
}

/// Ends what [`enable`] started.
pub fn disable(cupti: &Cupti, kinds: &[Kind]) {
    for kind in kinds {
        cupti.disable(kind.number);
    }
}

/// Counts what CUPTI refused as a loss.
pub fn check(recorder: &Recorder, cupti: &Cupti, loss: &LossKind, code: Code) {
    if code != 0 {
        let reason = format!("CUPTI refused to record them: {}", cupti.describe(code));
        recorder.loss(loss.clone(), 1, &reason);
    }
}

/// Returns false, and counts a loss, where the environment leaves out the part of this name.
pub fn is_wanted(recorder: &Recorder, name: &str, loss: &LossKind) -> bool {
    let without = std::env::var(gapscope_spool::env::CUDA_WITHOUT).unwrap_or_default();
    let left_out = without.split(',').any(|w| !w.is_empty() && w == name);
    if left_out {
        recorder.loss(loss.clone(), 1, "left out because the environment says so");
    }
    !left_out
}

/// Returns whether graphs are timed as wholes: when the user says so, and by default when only command buffers are
/// timed.
pub fn whole_graphs() -> bool {
    match std::env::var(gapscope_spool::env::CUDA_GRAPHS).as_deref() {
        Ok("graph") => true,
        Ok("node") => false,
        _ => std::env::var(gapscope_spool::env::MODE).as_deref() == Ok("command-buffer"),
    }
}
