//! Graphs: chains of kernels, whose neighbours overlap by 64 ns, as on an H200.

use super::kernels::{Attributes, Launch};
use super::launches::{kernel, tell_kernel};
use super::stream_operations::{OPERATION_NS, tell_host_node};
use super::{
    Api, DeviceWork, Driver, INVALID_CONTEXT, INVALID_HANDLE, Locked, SUCCESS, call, driver,
    of_driver, run,
};
use crate::config::config;
use crate::cupti::callbacks;
use crate::{cupti, names, records, truth};
use std::collections::BTreeSet;
use std::ffi::{c_int, c_uint};
use std::sync::Arc;

const OVERLAP_NS: u64 = 64;
/// INT_MAX: CUPTI's device and context of a graph that starts or ends on the host.
const ON_HOST: u32 = i32::MAX as u32;

#[derive(Debug, Clone)]
pub struct Graph {
    pub id: u32,
    /// The kernels, in the order in which they run.
    pub kernels: Arc<Vec<Launch>>,
    /// The dependencies: the places of the earlier kernel and of the later one.
    pub edges: Vec<(usize, usize)>,
    /// The function of the kernels that `fake_graph_add` adds.
    pub added: usize,
    /// The flags with which it was instantiated.
    pub flags: u64,
    /// The nodes of other kinds, after the kernels: their types, and the inner graph of those that are one.
    pub others: Vec<(c_int, usize)>,
    /// The places of nodes that were destroyed, which do not run.
    pub destroyed: BTreeSet<usize>,
}

/// CUgraphNodeType
const KERNEL: c_int = 0;
const HOST: c_int = 3;
const CHILD: c_int = 4;
const CONDITIONAL: c_int = 13;

/// How often the device runs the body of a conditional node.
const TURNS: u32 = 3;
/// The stream on which the driver itself runs bodies.
const STREAM_OF_BODIES: u32 = 1 << 20;

/// The handles of nodes begin here; they contain the graph's handle and the place in it.
const NODE_HANDLE: usize = 1 << 42;
const MAX_NODES: usize = 1 << 20;

/// Returns a launch without parameters.
fn bare(function: usize) -> Launch {
    Launch {
        handle: function,
        function,
        grid: [1, 1, 1],
        block: [32, 1, 1],
        shared: 0,
        parameters: Vec::new(),
        attributes: Attributes::default(),
    }
}

/// Makes a graph without nodes.
pub fn empty(driver: &mut Driver) -> usize {
    let handle = driver.handle();
    let graph = Graph {
        id: handle as u32,
        kernels: Arc::default(),
        edges: Vec::new(),
        added: 0,
        flags: 0,
        others: Vec::new(),
        destroyed: BTreeSet::new(),
    };
    driver.graphs.insert(handle, graph);
    handle
}

impl Graph {
    fn nodes(&self) -> u32 {
        self.kernels.len() as u32
    }

    /// Adds a kernel that runs after these, and returns its place.
    pub fn add(&mut self, launch: Launch, after: &[usize]) -> usize {
        let place = self.kernels.len();
        Arc::make_mut(&mut self.kernels).push(launch);
        self.edges
            .extend(after.iter().map(|before| (*before, place)));
        place
    }

    /// Adds a kernel that runs after the last one.
    fn append(&mut self, launch: Launch) -> usize {
        let last = self.kernels.len().checked_sub(1);
        self.add(launch, last.as_slice())
    }
}

/// Makes a launch on a captured stream a node of the graph, and tells the subscriber.
pub fn capture_launch(mut driver: Locked, launch: Launch) -> Locked {
    let Some(handle) = driver.captures.graph else {
        return driver;
    };
    let Some(graph) = driver.graphs.get_mut(&handle) else {
        return driver;
    };
    let place = graph.append(launch);
    drop(driver);
    tell_node(handle, place);
    self::driver()
}

/// Tells the subscriber of a new node.
pub fn tell_node(graph: usize, place: usize) {
    let told = callbacks::Graph {
        graph,
        node: node_handle(graph, place),
        ..callbacks::Graph::default()
    };
    callbacks::deliver_graph(callbacks::GRAPH_NODE_CREATED, &told);
}

/// Makes a graph of `nodes` launches of a function, one after the other, by one call where CUDA has many.
#[unsafe(no_mangle)]
pub extern "C" fn fake_graph_create(function: usize, nodes: c_uint) -> usize {
    let mut driver = driver();
    let handle = empty(&mut driver);
    if let Some(graph) = driver.graphs.get_mut(&handle) {
        for _ in 0..nodes {
            graph.append(bare(function));
        }
        // The function of a graph without kernels is that of the nodes which are added.
        graph.added = function;
    }
    drop(driver);
    tell_made(handle, nodes, None);
    handle
}

/// Tells the subscriber that a graph was made with its kernels, as copies of those of an original where it is one.
pub fn tell_made(graph: usize, nodes: u32, original: Option<usize>) {
    let told = || callbacks::Graph {
        graph,
        ..callbacks::Graph::default()
    };
    callbacks::deliver_graph(callbacks::GRAPH_CREATED, &told());
    for at in 0..nodes as usize {
        let node = node_handle(graph, at);
        let created = callbacks::Graph { node, ..told() };
        callbacks::deliver_graph(callbacks::GRAPH_NODE_CREATED, &created);
        if let Some(original) = original {
            let cloned = callbacks::Graph {
                original_graph: original,
                original_node: node_handle(original, at),
                ..created
            };
            callbacks::deliver_graph(callbacks::GRAPH_NODE_CLONED, &cloned);
        }
    }
}

pub fn node_handle(graph: usize, at: usize) -> usize {
    NODE_HANDLE + graph * MAX_NODES + at
}

/// Gives a graph a node. Kernels come first; `child` is the inner graph of a node that is a graph, or the body of a conditional one.
#[unsafe(no_mangle)]
pub extern "C" fn fake_graph_add(graph: usize, kind: c_int, child: usize) {
    let mut driver = driver();
    let Some(known) = driver.graphs.get_mut(&graph) else {
        return;
    };
    if kind != KERNEL {
        return known.others.push((kind, child));
    }
    let at = known.append(bare(known.added));
    drop(driver);
    tell_node(graph, at);
}

/// Makes an executable graph of another; CUPTI is told of it inside the call.
fn instantiate(api: Api<'_>, executable: *mut usize, graph: usize, flags: u64) -> c_int {
    run(api, |mut locked, _, _| {
        let Some(known) = locked.graphs.get(&graph).cloned() else {
            return (locked, INVALID_HANDLE);
        };
        let handle = match locked.free_graphs.pop() {
            Some(handle) => handle,
            None => locked.handle(),
        };
        let nodes = known.nodes();
        let copy = Graph {
            id: handle as u32,
            flags,
            ..known
        };
        locked.graphs.insert(handle, copy);
        cupti::state().graphs += 1;
        // SAFETY: the variable of the call's caller.
        unsafe { *executable = handle };
        drop(locked);
        tell_made(handle, nodes, Some(graph));
        let about = callbacks::Graph {
            graph,
            executable: handle,
            ..callbacks::Graph::default()
        };
        callbacks::deliver_graph(callbacks::INSTANTIATED, &about);
        (driver(), SUCCESS)
    })
}

/// # Safety
/// `executable` is the caller's variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphInstantiateWithFlags(
    executable: *mut usize,
    graph: usize,
    flags: u64,
) -> c_int {
    let parameters = [executable as usize, graph, flags as usize];
    let api = of_driver(names::CU_GRAPH_INSTANTIATE_WITH_FLAGS, &parameters);
    instantiate(api, executable, graph, flags)
}

/// # Safety
/// `executable` is the caller's variable, and `given` its CUDA_GRAPH_INSTANTIATE_PARAMS, which begins with the flags.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphInstantiateWithParams(
    executable: *mut usize,
    graph: usize,
    given: *const u64,
) -> c_int {
    let parameters = [executable as usize, graph, given as usize];
    let api = of_driver(names::CU_GRAPH_INSTANTIATE_WITH_PARAMS, &parameters);
    // SAFETY: as the caller promises.
    instantiate(api, executable, graph, unsafe { *given })
}

/// CUPTI's number of a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetGraphId(graph: usize, number: *mut u32) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { cuptiGetGraphExecId(graph, number) }
}

/// CUPTI's number of a node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetGraphNodeId(node: usize, number: *mut u64) -> c_int {
    let Some(within) = node.checked_sub(NODE_HANDLE) else {
        return INVALID_HANDLE;
    };
    let driver = driver();
    let Some(graph) = driver.graphs.get(&(within / MAX_NODES)) else {
        return INVALID_HANDLE;
    };
    // SAFETY: the caller's variable.
    unsafe { *number = node_number(graph.id, within % MAX_NODES) };
    SUCCESS
}

/// CUPTI's number of a node, by its place in the graph.
fn node_number(graph: u32, at: usize) -> u64 {
    u64::from(graph) << 32 | at as u64
}

/// CUPTI's number of an instantiated graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetGraphExecId(executable: usize, number: *mut u32) -> c_int {
    match driver().graphs.get(&executable) {
        Some(graph) => {
            // SAFETY: the caller's variable.
            unsafe { *number = graph.id };
            SUCCESS
        }
        None => INVALID_HANDLE,
    }
}

/// Returns the flags with which a graph was instantiated.
pub fn flags(executable: usize) -> Option<u64> {
    driver().graphs.get(&executable).map(|graph| graph.flags)
}

exported! {
    cuGraphExecDestroy(executable: usize) is CU_GRAPH_EXEC_DESTROY => destroy(executable);
    cuGraphLaunch(executable: usize, stream: usize) is CU_GRAPH_LAUNCH => launch(executable, stream);
    cudaGraphLaunch(executable: usize, stream: usize) is CUDA_GRAPH_LAUNCH around CU_GRAPH_LAUNCH => launch(executable, stream);
}

/// Destroys a graph, whose handle the next instantiated one gets.
fn destroy(api: Api<'_>, executable: usize) -> c_int {
    call(api, |driver, _, _| {
        match driver.graphs.remove(&executable) {
            Some(_) => {
                driver.free_graphs.push(executable);
                SUCCESS
            }
            None => INVALID_HANDLE,
        }
    })
}

/// # Safety
/// `count` is the caller's variable, and `nodes` null or an array of as many as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphGetNodes(
    graph: usize,
    nodes: *mut usize,
    count: *mut usize,
) -> c_int {
    let driver = driver();
    let Some(known) = driver.graphs.get(&graph) else {
        return INVALID_HANDLE;
    };
    let all = known.kernels.len() + known.others.len();
    // SAFETY: as the caller promises.
    unsafe {
        if nodes.is_null() {
            *count = all;
            return SUCCESS;
        }
        *count = all.min(*count);
        for at in 0..*count {
            *nodes.add(at) = node_handle(graph, at);
        }
    }
    SUCCESS
}

/// Returns the graph of a node, and the place in it.
pub fn place(node: usize) -> Option<(usize, usize)> {
    let within = node.checked_sub(NODE_HANDLE)?;
    Some((within / MAX_NODES, within % MAX_NODES))
}

/// Returns the type of a node, and its inner graph.
pub fn node(node: usize) -> Option<(c_int, usize)> {
    let driver = driver();
    let (graph, place) = place(node)?;
    let graph = driver.graphs.get(&graph)?;
    match place.checked_sub(graph.kernels.len()) {
        None => Some((KERNEL, 0)),
        Some(at) => graph.others.get(at).copied(),
    }
}

impl Graph {
    /// Returns the host nodes, including those of inner graphs.
    fn host_nodes(&self, driver: &Driver) -> u32 {
        let of = |(kind, child): &(c_int, usize)| match *kind {
            HOST => 1,
            CHILD => (driver.graphs.get(child)).map_or(0, |graph| graph.host_nodes(driver)),
            _ => 0,
        };
        self.others.iter().map(of).sum()
    }
}

impl Graph {
    /// Returns the number of kernels that bodies of conditional nodes run.
    fn body_kernels(&self, driver: &Driver) -> u32 {
        let bodies = (self.others.iter()).filter(|(kind, _)| *kind == CONDITIONAL);
        let bodies = bodies.filter_map(|(_, body)| driver.graphs.get(body));
        bodies.map(|body| TURNS * body.nodes()).sum()
    }
}

fn launch(api: Api<'_>, executable: usize, stream: usize) -> c_int {
    call(api, |driver, correlation, asked| {
        let Some(graph) = driver.graphs.get(&executable).cloned() else {
            return INVALID_HANDLE;
        };
        let name_of = |driver: &Driver, function| driver.functions.get(&function).map(|f| f.name);
        let names: Option<Vec<usize>> = (graph.kernels.iter())
            .map(|launch| name_of(driver, launch.function))
            .collect();
        let Some(names) = names else {
            return INVALID_HANDLE;
        };
        let name = name_of(driver, graph.added).or_else(|| names.first().copied());
        if cupti::state().graphs_traced_late {
            // libcupti 13.0.85 crashes, too.
            // SAFETY: the call ends the process, as it should.
            unsafe { libc::raise(libc::SIGSEGV) };
        }
        let each = config().kernel_ns;
        let step = each.saturating_sub(OVERLAP_NS);
        let kernels_ns = u64::from(graph.nodes()) * step + OVERLAP_NS;
        let host_nodes = graph.host_nodes(driver);
        let ns = kernels_ns + u64::from(host_nodes) * OPERATION_NS;
        let body_kernels = graph.body_kernels(driver);
        let ns = ns + u64::from(body_kernels) * each;
        let Some(mut work) = driver.submit(stream, correlation, asked, ns) else {
            return INVALID_CONTEXT;
        };
        let (start, end) = (work.start, work.end);
        let runs = |place: &usize| !graph.destroyed.contains(place);
        for (_, launch) in (0..).zip(graph.kernels.iter()).filter(|(at, _)| runs(at)) {
            driver.execute(launch, work.context, stream);
        }
        let mut cupti = cupti::state();
        if cupti.is_on(records::GRAPH_TRACE) {
            let place = config().graph_ends_on_host.map(|on_host| match on_host {
                true => [ON_HOST; 2],
                false => [work.device, work.context],
            });
            let record = records::GraphTrace {
                kind: records::GRAPH_TRACE,
                correlation_id: correlation,
                start: cupti.of_device(start),
                end: cupti.of_device(end),
                device_id: place[0][0],
                graph_id: graph.id,
                context_id: place[0][1],
                stream_id: work.stream,
                end_device_id: place[1][0],
                end_context_id: place[1][1],
                ..records::GraphTrace::default()
            };
            truth::write(
                "graph",
                correlation,
                (start, end),
                format_args!(",\"stream\":{}", work.stream),
            );
            cupti.work(records::GRAPH_TRACE, end, &record);
            return SUCCESS;
        }
        drop(cupti);
        for node in 0..u64::from(host_nodes) {
            let start = start + kernels_ns + node * OPERATION_NS;
            let end = start + OPERATION_NS;
            tell_host_node(&DeviceWork { start, end, ..work }, graph.id);
        }
        let mut cupti = cupti::state();
        for (node, (launch, name)) in graph.kernels.iter().zip(&names).enumerate() {
            if !runs(&node) {
                continue;
            }
            work.start = start + node as u64 * step;
            work.end = work.start + each;
            let mut kernel = kernel(*name, &work, launch);
            kernel.graph_id = graph.id;
            kernel.graph_node_id = node_number(graph.id, node);
            tell_kernel(&mut cupti, kernel, false);
        }
        for node in 0..body_kernels {
            let end = end - u64::from(body_kernels - 1 - node) * each;
            let body = DeviceWork {
                start: end - each,
                end,
                stream: STREAM_OF_BODIES,
                correlation: 0,
                ..work
            };
            let mut kernel = kernel(name.unwrap_or(0), &body, &bare(graph.added));
            kernel.graph_id = graph.id;
            kernel.graph_node_id = node_number(graph.id, graph.kernels.len());
            tell_kernel(&mut cupti, kernel, false);
        }
        SUCCESS
    })
}
