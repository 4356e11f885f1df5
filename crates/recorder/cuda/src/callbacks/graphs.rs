//! Counts the host nodes of instantiated CUDA graphs (work that is launched as a whole): at such a node the device
//! waits for a function of the host, of which CUPTI before 13.1 has no records.
//!
//! They are counted once, when a graph is instantiated: later changes of nodes affect neither their number nor their
//! kind. Launches look the number up without a lock. A graph that was instantiated while recording was off is
//! unknown.

use super::handle_table::HandleTable;
use crate::cupti::Cupti;
use crate::driver;
use gapscope_spool::ids;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Release};

/// The most handles that are told apart. The driver reuses the handles of destroyed graphs.
const MAX_GRAPHS: usize = 1 << 14;
/// The depth to which graphs inside graphs are searched; a graph with deeper ones has an unknown number of host
/// nodes.
const MAX_DEPTH: u32 = 16;
/// The number is unknown. Known numbers are stored plus one, so that a table of zeros is an empty one.
const UNKNOWN: u64 = 0;

/// The instantiated graphs of this process.
pub static GRAPHS: Graphs = Graphs::new();

/// The number of host nodes of each graph, by its handle.
pub struct Graphs(HandleTable<MAX_GRAPHS>);

impl Graphs {
    const fn new() -> Graphs {
        Graphs(HandleTable::new())
    }

    /// Notes that a graph was instantiated, with its number of host nodes, if that is known.
    pub fn instantiated(&self, handle: usize, host_nodes: Option<u32>) {
        let number = host_nodes.map_or(UNKNOWN, |count| u64::from(count) + 1);
        self.store(handle, true, number);
    }

    /// Notes that a graph is destroyed.
    pub fn forget(&self, handle: usize) {
        self.store(handle, false, UNKNOWN);
    }

    /// Forgets all graphs, because recording was off.
    pub fn forget_all(&self) {
        for number in self.0.numbers() {
            number.store(UNKNOWN, Release);
        }
    }

    /// Returns the number of host nodes of a graph that is launched; `None` where it is unknown.
    pub fn host_nodes(&self, handle: usize) -> Option<u32> {
        let known = self.0.number(self.0.find(handle, false)?).load(Acquire);
        u32::try_from(known.checked_sub(1)?).ok()
    }

    /// Stores the number of a graph; a new handle gets a slot only where `make` says so.
    fn store(&self, handle: usize, make: bool, number: u64) {
        if let Some(slot) = self.0.find(handle, make) {
            self.0.number(slot).store(number, Release);
        }
    }
}

/// Kinds of nodes (CUgraphNodeType).
mod node {
    /// A host function.
    pub const HOST: i32 = 3;
    /// Another graph.
    pub const GRAPH: i32 = 4;
    /// A graph that runs as often as the device decides.
    pub const CONDITIONAL: i32 = 13;
}

/// A function of the driver that takes a graph, an array for its nodes, and a pointer to their number.
type Pointers = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void) -> c_int;
/// A function of the driver that takes a handle, and a pointer to what it stores.
type Pair = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;

/// The driver's functions that describe a graph.
#[derive(Clone, Copy)]
struct GraphFunctions {
    /// Returns the nodes of a graph; with a null array, their number.
    nodes: Pointers,
    /// Returns the kind of a node.
    kind: Pair,
    /// Returns the graph that a node runs.
    child: Pair,
    /// The function exists since CUDA 12.0.
    flags: Option<Pair>,
}

static FUNCTIONS: OnceLock<Option<GraphFunctions>> = OnceLock::new();

/// Looks up the functions of the driver before the first call.
pub fn prepare() {
    // SAFETY: they are these functions of the driver, whose parameters are handles and pointers.
    FUNCTIONS.get_or_init(|| unsafe {
        Some(GraphFunctions {
            nodes: driver::function("cuGraphGetNodes")?,
            kind: driver::function("cuGraphNodeGetType")?,
            child: driver::function("cuGraphChildGraphNodeGetGraph")?,
            flags: driver::function("cuGraphExecGetFlags"),
        })
    });
}

/// Returns the host nodes of a graph and of those inside it; `None` where the driver does not tell them, or where the
/// device decides how often they run.
///
/// # Safety
/// The graph is one of the program's, which does not change it meanwhile.
pub unsafe fn count_host_nodes(graph: usize) -> Option<u32> {
    // SAFETY: as the caller promises.
    unsafe { FUNCTIONS.get()?.as_ref()?.count(graph as *mut c_void, 0) }
}

/// Returns CUPTI's number of an executable graph, which records of its work have; `None` where CUPTI does not tell it.
///
/// # Safety
/// The graph is one of the program's.
pub unsafe fn number(executable: usize, cupti: &Cupti) -> Option<ids::Graph> {
    let function = cupti.functions.graph_id?;
    let mut number = 0;
    // SAFETY: as the caller promises; CUPTI stores a number.
    let code = unsafe { function(executable as *mut c_void, &mut number) };
    // 0 stands for no graph.
    (code == 0 && number != 0).then_some(ids::Graph(number))
}

/// Returns whether an instantiated graph was made for launches by the device, of which CUPTI has no records.
///
/// # Safety
/// The graph is one of the program's.
pub unsafe fn is_for_device(executable: usize) -> bool {
    // CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
    const DEVICE_LAUNCH: u64 = 4;
    let Some(flags_of) = FUNCTIONS.get().and_then(|known| known.as_ref()?.flags) else {
        return false;
    };
    let mut flags = 0u64;
    // SAFETY: as the caller promises; the driver stores a number of 64 bits.
    let code = unsafe { flags_of(executable as *mut c_void, (&raw mut flags).cast()) };
    code == 0 && flags & DEVICE_LAUNCH != 0
}

impl GraphFunctions {
    /// Returns the number of host nodes of a graph, at this depth inside others; `None` where it is unknown.
    ///
    /// # Safety
    /// As for [`count_host_nodes`].
    unsafe fn count(&self, graph: *mut c_void, depth: u32) -> Option<u32> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut host_nodes = 0u32;
        // SAFETY: as the caller promises; the driver stores handles and numbers into our variables.
        unsafe {
            let mut count = 0usize;
            let ok = |code: c_int| (code == 0).then_some(());
            ok((self.nodes)(
                graph,
                std::ptr::null_mut(),
                (&raw mut count).cast(),
            ))?;
            let mut nodes: Vec<*mut c_void> = Vec::new();
            nodes.try_reserve_exact(count).ok()?;
            nodes.resize(count, std::ptr::null_mut());
            if count > 0 {
                ok((self.nodes)(
                    graph,
                    nodes.as_mut_ptr().cast(),
                    (&raw mut count).cast(),
                ))?;
            }
            for node in nodes.into_iter().take(count) {
                let mut kind: c_int = -1;
                ok((self.kind)(node, (&raw mut kind).cast()))?;
                let more = match kind {
                    node::HOST => 1,
                    node::GRAPH => {
                        let mut child: *mut c_void = std::ptr::null_mut();
                        ok((self.child)(node, (&raw mut child).cast()))?;
                        self.count(child, depth + 1)?
                    }
                    0..node::CONDITIONAL => 0,
                    // The effect of such nodes is not known.
                    _ => return None,
                };
                host_nodes = host_nodes.checked_add(more)?;
            }
        }
        Some(host_nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_is_known_from_its_instantiation_to_its_end() {
        let graphs = Box::leak(Box::new(Graphs::new()));
        assert_eq!(graphs.host_nodes(64), None, "older than the recording");
        graphs.instantiated(64, Some(0));
        graphs.instantiated(128, Some(7));
        graphs.instantiated(192, None);
        let known = [64, 128, 192, 0].map(|graph| graphs.host_nodes(graph));
        assert_eq!(known, [Some(0), Some(7), None, None]);
        graphs.forget(128);
        assert_eq!(graphs.host_nodes(128), None);
        graphs.instantiated(128, Some(1));
        assert_eq!(graphs.host_nodes(128), Some(1), "another one");
        graphs.forget_all();
        assert_eq!(graphs.host_nodes(64), None);
    }
}
