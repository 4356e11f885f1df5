//! Graphs as programs make them: kernel nodes with parameters, copies of graphs, and what the driver says of nodes.

use super::graphs::{self, node_handle, place};
use super::kernels::Launch;
use super::launches::Request;
use super::{INVALID_HANDLE, INVALID_VALUE, SUCCESS, driver};
use std::ffi::{c_int, c_uint};
use std::sync::Arc;

/// CUDA_KERNEL_NODE_PARAMS_v2
#[repr(C)]
pub struct NodeParameters {
    function: usize,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    parameters: usize,
    extra: usize,
    /// The kernel of a library, where there is no function.
    kernel: usize,
    context: usize,
}

const _: () = assert!(size_of::<NodeParameters>() == 72);

impl NodeParameters {
    fn asked(&self) -> Request {
        Request {
            handle: match self.function {
                0 => self.kernel,
                function => function,
            },
            grid: self.grid,
            block: self.block,
            shared: self.shared,
            parameters: self.parameters,
            extra: self.extra,
            ..Request::default()
        }
    }
}

// Every pointer is the caller's variable, structure or array, as in CUDA.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphCreate(graph: *mut usize, _flags: c_uint) -> c_int {
    let made = graphs::empty(&mut driver());
    graphs::tell_made(made, 0, None);
    // SAFETY: the caller's variable.
    unsafe { *graph = made };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphDestroy(graph: usize) -> c_int {
    match driver().graphs.remove(&graph) {
        Some(_) => SUCCESS,
        None => INVALID_HANDLE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphClone(clone: *mut usize, original: usize) -> c_int {
    let mut driver = driver();
    let Some(known) = driver.graphs.get(&original).cloned() else {
        return INVALID_HANDLE;
    };
    let nodes = known.kernels.len() as u32;
    let made = driver.handle();
    let id = made as u32;
    driver.graphs.insert(made, graphs::Graph { id, ..known });
    drop(driver);
    graphs::tell_made(made, nodes, Some(original));
    // SAFETY: the caller's variable.
    unsafe { *clone = made };
    SUCCESS
}

/// Adds a kernel; the order in which nodes are added is that in which they run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphAddKernelNode_v2(
    node: *mut usize,
    graph: usize,
    dependencies: *const usize,
    count: usize,
    parameters: *const NodeParameters,
) -> c_int {
    // SAFETY: the caller's structure and array.
    let (asked, before) = unsafe {
        let before: Vec<usize> = (0..count)
            .filter_map(|index| place(*dependencies.add(index)).map(|(_, place)| place))
            .collect();
        ((*parameters).asked(), before)
    };
    let (mut locked, prepared) = asked.prepared(driver());
    let launch = match prepared {
        Ok((launch, _)) => launch,
        Err(code) => return code,
    };
    let Some(known) = locked.graphs.get_mut(&graph) else {
        return INVALID_HANDLE;
    };
    let at = known.add(launch, &before);
    drop(locked);
    graphs::tell_node(graph, at);
    // SAFETY: the caller's variable.
    unsafe { *node = node_handle(graph, at) };
    SUCCESS
}

/// Stores the node of a clone that is the copy of a node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphNodeFindInClone(
    found: *mut usize,
    original: usize,
    clone: usize,
) -> c_int {
    let Some((_, at)) = place(original).filter(|_| driver().graphs.contains_key(&clone)) else {
        return INVALID_HANDLE;
    };
    // SAFETY: the caller's variable.
    unsafe { *found = node_handle(clone, at) };
    SUCCESS
}

/// Destroys a node: it does not run any more.
#[unsafe(no_mangle)]
pub extern "C" fn cuGraphDestroyNode(node: usize) -> c_int {
    let Some((graph, at)) = place(node) else {
        return INVALID_HANDLE;
    };
    match driver().graphs.get_mut(&graph) {
        Some(known) => {
            known.destroyed.insert(at);
            SUCCESS
        }
        None => INVALID_HANDLE,
    }
}

/// No node is a fill.
#[unsafe(no_mangle)]
pub extern "C" fn cuGraphMemsetNodeGetParams(_node: usize, _parameters: usize) -> c_int {
    INVALID_VALUE
}

/// No node is a copy.
#[unsafe(no_mangle)]
pub extern "C" fn cuGraphMemcpyNodeGetParams(_node: usize, _parameters: usize) -> c_int {
    INVALID_VALUE
}

/// Nodes have no attributes.
#[unsafe(no_mangle)]
pub extern "C" fn cuGraphKernelNodeGetAttribute(
    _node: usize,
    _attribute: c_uint,
    _value: usize,
) -> c_int {
    INVALID_VALUE
}

/// Returns the kernel of a node.
fn launch_of(node: usize) -> Option<Launch> {
    let (graph, at) = place(node)?;
    driver().graphs.get(&graph)?.kernels.get(at).cloned()
}

/// Stores the parameters of a node: pointers into memory of the driver, which stays.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphKernelNodeGetParams_v2(
    node: usize,
    parameters: *mut NodeParameters,
) -> c_int {
    let Some(launch) = launch_of(node) else {
        return INVALID_HANDLE;
    };
    let driver = driver();
    let program = driver
        .functions
        .get(&launch.function)
        .and_then(|known| known.program);
    let bytes = Box::leak(launch.parameters.clone().into_boxed_slice());
    let layout = program.map_or(&[][..], |program| program.parameters());
    let pointers: Vec<usize> = layout
        .iter()
        .filter_map(|(at, _)| bytes.get(*at).map(|byte| std::ptr::from_ref(byte) as usize))
        .collect();
    let [function, kernel] = match driver.modules.is_kernel(launch.handle) {
        true => [0, launch.handle],
        false => [launch.handle, 0],
    };
    let made = NodeParameters {
        function,
        grid: launch.grid,
        block: launch.block,
        shared: launch.shared,
        parameters: Box::leak(pointers.into_boxed_slice()).as_ptr() as usize,
        extra: 0,
        kernel,
        context: 0,
    };
    // SAFETY: the caller's structure.
    unsafe { *parameters = made };
    SUCCESS
}

/// Changes the parameters of a kernel of an executable graph; `node` is the one of the graph that it was made of.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecKernelNodeSetParams_v2(
    executable: usize,
    node: usize,
    parameters: *const NodeParameters,
) -> c_int {
    let Some((_, at)) = place(node) else {
        return INVALID_HANDLE;
    };
    // SAFETY: the caller's structure.
    let asked = unsafe { (*parameters).asked() };
    let (mut locked, prepared) = asked.prepared(driver());
    let (Ok((launch, _)), Some(known)) = (prepared, locked.graphs.get_mut(&executable)) else {
        return INVALID_HANDLE;
    };
    match Arc::make_mut(&mut known.kernels).get_mut(at) {
        Some(old) => {
            let attributes = old.attributes;
            *old = Launch {
                attributes,
                ..launch
            };
            SUCCESS
        }
        None => INVALID_VALUE,
    }
}

/// CUgraphExecUpdateResultInfo
#[repr(C)]
pub struct UpdateResult {
    result: c_int,
    error_node: usize,
    error_from_node: usize,
}

/// CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
const UPDATE_FAILED: c_int = 910;
const OTHER_TOPOLOGY: c_int = 2;

/// Gives an executable graph the kernels of a graph with the same edges.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecUpdate_v2(
    executable: usize,
    graph: usize,
    result: *mut UpdateResult,
) -> c_int {
    let mut driver = driver();
    let Some(new) = driver.graphs.get(&graph).cloned() else {
        return INVALID_HANDLE;
    };
    let Some(old) = driver.graphs.get_mut(&executable) else {
        return INVALID_HANDLE;
    };
    let same = old.edges == new.edges && old.kernels.len() == new.kernels.len();
    if same {
        old.kernels = new.kernels;
    }
    // SAFETY: the caller's structure.
    unsafe {
        *result = UpdateResult {
            result: if same { 0 } else { OTHER_TOPOLOGY },
            error_node: 0,
            error_from_node: 0,
        };
    }
    if same { SUCCESS } else { UPDATE_FAILED }
}

/// # Safety
/// `count` is the caller's variable, and both arrays are null or of as many nodes as it says.
unsafe fn store_edges(graph: usize, from: *mut usize, to: *mut usize, count: *mut usize) -> c_int {
    let driver = driver();
    let Some(known) = driver.graphs.get(&graph) else {
        return INVALID_HANDLE;
    };
    // SAFETY: as the caller promises.
    unsafe {
        if from.is_null() || to.is_null() {
            *count = known.edges.len();
            return SUCCESS;
        }
        *count = known.edges.len().min(*count);
        for (index, (before, after)) in known.edges.iter().take(*count).enumerate() {
            *from.add(index) = node_handle(graph, *before);
            *to.add(index) = node_handle(graph, *after);
        }
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphGetEdges(
    graph: usize,
    from: *mut usize,
    to: *mut usize,
    count: *mut usize,
) -> c_int {
    // SAFETY: as the caller of this one promises.
    unsafe { store_edges(graph, from, to, count) }
}

/// Stores the edges without their data, which are all of the usual kind: eight zero bytes each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphGetEdges_v2(
    graph: usize,
    from: *mut usize,
    to: *mut usize,
    data: *mut u64,
    count: *mut usize,
) -> c_int {
    // SAFETY: as the caller of this one promises.
    unsafe {
        let code = store_edges(graph, from, to, count);
        if code == SUCCESS && !data.is_null() {
            std::slice::from_raw_parts_mut(data, *count).fill(0);
        }
        code
    }
}
