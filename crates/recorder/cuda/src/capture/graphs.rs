//! Keeps copies of the graphs that the program launches, so that a kernel inside of one can be captured.
//!
//! Programs destroy a graph once it is instantiated, and an executable graph cannot be taken apart. So the graph is cloned
//! when it is instantiated. A kernel of a launch is captured like this: the nodes before it run as a graph of their own,
//! then the kernel alone, between two copies of memory; then memory is put back, and the program's launch runs as a whole.

use super::driver_functions::DriverFunctions;
use super::launch_call::LaunchCall;
use crate::streams::StreamHandle;
use gapscope_capture::cuda::Attribute;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Graph = *mut c_void;
type Node = *mut c_void;

/// CUgraphNodeType: kernels, copies and fills, nodes that do nothing, and events.
const KERNEL: i32 = 0;
const COPY: i32 = 1;
const FILL: i32 = 2;
const WITHOUT_MEMORY: [i32; 3] = [5, 6, 7];
/// CU_MEMORYTYPE_DEVICE and CU_MEMORYTYPE_UNIFIED
const DEVICE_MEMORY: [u32; 2] = [2, 4];
/// The size of CUlaunchAttributeValue.
const VALUE_BYTES: usize = 64;
/// CUlaunchAttributeID: what changes how a kernel runs, of those that nodes have: cooperative, cluster dimension and
/// policy, preferred cluster dimension, carve-out of shared memory.
const ATTRIBUTES: [u32; 5] = [2, 4, 5, 11, 14];

/// CUDA_KERNEL_NODE_PARAMS_v2
#[repr(C)]
struct KernelParameters {
    function: *mut c_void,
    sizes: [u32; 6],
    shared_bytes: u32,
    parameters: *const *const u8,
    extra: *const usize,
    kernel: *mut c_void,
    context: *mut c_void,
}

/// CUDA_MEMSET_NODE_PARAMS_v1
#[repr(C)]
struct FillParameters {
    to: u64,
    rest: [u64; 6],
}

/// CUDA_MEMCPY3D, with room behind it
#[repr(C)]
struct CopyParameters {
    from: [u64; 10],
    to_x: usize,
    to_y: usize,
    to_z: usize,
    to_level: usize,
    to_type: u32,
    to_host: *mut c_void,
    to_device: u64,
    rest: [u64; 16],
}

// `offsetof` gives these numbers for cuda.h.
const _: () = assert!(std::mem::offset_of!(KernelParameters, parameters) == 40);
const _: () = assert!(std::mem::offset_of!(CopyParameters, to_device) == 128);

/// The clone of a graph that has been instantiated.
#[derive(Debug)]
struct GraphCopy {
    graph: usize,
    /// Why its kernels cannot be captured; `None` where they can.
    refusal: Option<&'static str>,
    /// Its kernels, once they have been asked for.
    kernels: Option<Arc<[KernelNode]>>,
}

/// A kernel of a graph.
#[derive(Debug, Clone, Copy)]
pub struct KernelNode {
    /// Its position in the graph.
    pub at: usize,
    /// The CUfunction or CUkernel.
    pub function: usize,
}

static COPIES: Mutex<Option<FxHashMap<usize, GraphCopy>>> = Mutex::new(None);

thread_local! {
    /// The clone of the graph that the thread's current call instantiates; 0 for none.
    static CLONE: Cell<usize> = const { Cell::new(0) };
}

fn copies() -> MutexGuard<'static, Option<FxHashMap<usize, GraphCopy>>> {
    COPIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Clones a graph that is about to be instantiated.
pub fn instantiate_begins(driver: &DriverFunctions, graph: usize) {
    let mut clone = std::ptr::null_mut();
    // SAFETY: the driver's function with the program's graph; it stores a handle, or refuses.
    let code = unsafe { (driver.clone_graph)(&mut clone, graph as Graph) };
    CLONE.set(if code == 0 { clone as usize } else { 0 });
}

/// Notes that the thread's call has made an executable graph, or changed one to another graph; 0 where it failed.
pub fn instantiate_ends(driver: &DriverFunctions, executable: usize) {
    let clone = CLONE.replace(0);
    if executable == 0 {
        return destroy(driver, clone);
    }
    let refusal = (clone == 0).then_some("the driver does not clone it, as it allocates memory");
    let copy = GraphCopy {
        graph: clone,
        refusal,
        kernels: None,
    };
    let before = copies().get_or_insert_default().insert(executable, copy);
    destroy(driver, before.map_or(0, |copy| copy.graph));
}

/// Notes that the program has changed nodes of an executable graph, which its clone does not have.
pub fn changed(executable: usize) {
    if let Some(copy) = (copies().as_mut()).and_then(|copies| copies.get_mut(&executable)) {
        copy.refusal = Some("the program has changed its nodes since it was instantiated");
    }
}

/// Forgets an executable graph that ends.
pub fn ended(driver: &DriverFunctions, executable: usize) {
    let copy = (copies().as_mut()).and_then(|copies| copies.remove(&executable));
    destroy(driver, copy.map_or(0, |copy| copy.graph));
}

/// Forgets all graphs.
pub fn forget_all(driver: Option<&DriverFunctions>) {
    let all = copies().take().unwrap_or_default();
    for copy in all.into_values() {
        driver
            .into_iter()
            .for_each(|driver| destroy(driver, copy.graph));
    }
}

fn destroy(driver: &DriverFunctions, graph: usize) {
    if graph != 0 {
        // SAFETY: a clone of ours.
        unsafe { (driver.destroy_graph)(graph as Graph) };
    }
}

/// Returns the kernels of an executable graph in an order in which they may run.
///
/// # Errors
/// A phrase says why they cannot be captured.
pub fn kernels(
    driver: &DriverFunctions,
    executable: usize,
) -> Result<Arc<[KernelNode]>, &'static str> {
    let known = |copies: &FxHashMap<usize, GraphCopy>| {
        let copy = copies.get(&executable)?;
        copy.kernels.clone().filter(|_| copy.refusal.is_none())
    };
    if let Some(kernels) = copies().as_ref().and_then(known) {
        return Ok(kernels);
    }
    let graph = OrderedGraph::from_executable(driver, executable)?;
    let found = graph.kernels(driver).into_iter();
    let found: Arc<[KernelNode]> = found
        .map(|(at, function)| KernelNode {
            at,
            function: function as usize,
        })
        .collect();
    if let Some(copy) = (copies().as_mut()).and_then(|copies| copies.get_mut(&executable)) {
        copy.kernels = Some(Arc::clone(&found));
    }
    Ok(found)
}

/// A node of a graph.
#[derive(Debug, Clone, Copy)]
struct OrderedNode {
    node: Node,
    kind: i32,
}

/// A graph whose nodes are in an order in which each comes after those that it depends on.
#[derive(Debug)]
pub struct OrderedGraph {
    graph: Graph,
    nodes: Vec<OrderedNode>,
}

impl OrderedGraph {
    /// Returns the graph that the program launches.
    ///
    /// # Errors
    /// A phrase says why its kernels cannot be captured.
    pub fn from_executable(
        driver: &DriverFunctions,
        executable: usize,
    ) -> Result<OrderedGraph, &'static str> {
        let graph = {
            let locked = copies();
            let copy = locked.as_ref().and_then(|copies| copies.get(&executable));
            let copy = copy.ok_or("it was instantiated in another way than gapscope knows")?;
            match copy.refusal {
                Some(refusal) => return Err(refusal),
                None => copy.graph as Graph,
            }
        };
        OrderedGraph::new(driver, graph).ok_or("the driver does not say which nodes it has")
    }

    fn new(driver: &DriverFunctions, graph: Graph) -> Option<OrderedGraph> {
        let mut count = 0;
        // SAFETY: the driver's functions, which store so many handles and edges as there is room for.
        let (nodes, edges) = unsafe {
            ((driver.graph_nodes)(graph, std::ptr::null_mut(), &mut count) == 0).then_some(())?;
            let mut nodes: Vec<Node> = vec![std::ptr::null_mut(); count];
            ((driver.graph_nodes)(graph, nodes.as_mut_ptr(), &mut count) == 0).then_some(())?;
            nodes.truncate(count);
            let (none, mut count) = (std::ptr::null_mut(), 0);
            ((driver.graph_edges)(graph, none, none, std::ptr::null_mut(), &mut count) == 0)
                .then_some(())?;
            let mut from: Vec<Node> = vec![std::ptr::null_mut(); count];
            let mut to = from.clone();
            let mut data = vec![0_u64; count];
            let code = (driver.graph_edges)(
                graph,
                from.as_mut_ptr(),
                to.as_mut_ptr(),
                data.as_mut_ptr(),
                &mut count,
            );
            (code == 0).then_some(())?;
            (
                nodes,
                from.into_iter().zip(to).take(count).collect::<Vec<_>>(),
            )
        };
        let mut waits: FxHashMap<usize, usize> = FxHashMap::default();
        let mut followers: FxHashMap<usize, Vec<Node>> = FxHashMap::default();
        for (from, to) in edges {
            *waits.entry(to as usize).or_default() += 1;
            followers.entry(from as usize).or_default().push(to);
        }
        // Nodes come in the order of their creation, which is kept where the edges allow it.
        let mut ready: std::collections::VecDeque<Node> = nodes
            .iter()
            .copied()
            .filter(|node| !waits.contains_key(&(*node as usize)))
            .collect();
        let mut ordered = Vec::with_capacity(nodes.len());
        while let Some(node) = ready.pop_front() {
            let mut kind = 0;
            // SAFETY: the driver's function, which stores a number.
            let code = unsafe { (driver.node_type)(node, &mut kind) };
            (code == 0).then_some(())?;
            ordered.push(OrderedNode { node, kind });
            for next in followers.remove(&(node as usize)).unwrap_or_default() {
                if let Some(count) = waits.get_mut(&(next as usize)) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push_back(next);
                    }
                }
            }
        }
        (ordered.len() == nodes.len()).then_some(OrderedGraph {
            graph,
            nodes: ordered,
        })
    }

    /// Returns the positions of the kernels, each with its CUfunction or CUkernel.
    pub fn kernels(&self, driver: &DriverFunctions) -> Vec<(usize, *mut c_void)> {
        let kernels = self.nodes.iter().enumerate().filter_map(|(at, node)| {
            let parameters = kernel_parameters(driver, *node)?;
            Some((at, parameters.handle()))
        });
        kernels.collect()
    }

    /// Returns the launch of a kernel, as if the program had made it on a stream.
    pub fn launch(
        &self,
        driver: &DriverFunctions,
        at: usize,
        stream: StreamHandle,
    ) -> Option<LaunchCall> {
        let node = self.nodes[at];
        let given = kernel_parameters(driver, node)?;
        let mut attributes = Vec::new();
        for id in ATTRIBUTES {
            let mut value = vec![0_u8; VALUE_BYTES];
            // SAFETY: the driver's function, which stores at most the size of the value, or refuses.
            let code = unsafe { (driver.node_attribute)(node.node, id, value.as_mut_ptr().cast()) };
            if code == 0 && value.iter().any(|byte| *byte != 0) {
                attributes.push(Attribute { id, value });
            }
        }
        let sizes = given.sizes;
        Some(LaunchCall {
            function: given.handle(),
            grid: [sizes[0], sizes[1], sizes[2]],
            block: [sizes[3], sizes[4], sizes[5]],
            shared_bytes: given.shared_bytes,
            stream,
            attributes,
            parameters: given.parameters,
            // SAFETY: the driver's own list.
            packed: (given.parameters.is_null() && !given.extra.is_null())
                .then(|| unsafe { super::launch_call::packed(given.extra) })
                .flatten(),
        })
    }

    /// Returns the addresses that the copies and fills before a node write to.
    ///
    /// # Errors
    /// A phrase names the first node that cannot run twice.
    pub fn written_before(
        &self,
        driver: &DriverFunctions,
        at: usize,
    ) -> Result<Vec<u64>, &'static str> {
        let mut written = Vec::new();
        for node in &self.nodes[..at] {
            match node.kind {
                FILL => {
                    let mut given = FillParameters {
                        to: 0,
                        rest: [0; 6],
                    };
                    // SAFETY: the driver's function, which stores the structure.
                    let code =
                        unsafe { (driver.fill_node)(node.node, (&raw mut given).cast::<c_void>()) };
                    if code != 0 {
                        return Err("a fill before the kernel has parameters that are not known");
                    }
                    written.push(given.to);
                }
                COPY => {
                    // SAFETY: all members are numbers and addresses.
                    let mut given: CopyParameters = unsafe { std::mem::zeroed() };
                    // SAFETY: the driver's function, which stores the structure.
                    let code =
                        unsafe { (driver.copy_node)(node.node, (&raw mut given).cast::<c_void>()) };
                    if code != 0 || !DEVICE_MEMORY.contains(&given.to_type) {
                        return Err("a copy before the kernel goes to the host or to an array");
                    }
                    written.push(given.to_device);
                }
                KERNEL => {}
                kind if WITHOUT_MEMORY.contains(&kind) => {}
                _ => return Err("a node before the kernel is no kernel, copy, fill or event"),
            }
        }
        Ok(written)
    }

    /// Runs the nodes of which `keeps` says so by their positions, on a stream, as a graph of their own.
    ///
    /// # Errors
    /// The driver's answer.
    pub fn run(
        &self,
        driver: &DriverFunctions,
        stream: *mut c_void,
        keeps: impl Fn(usize) -> bool,
    ) -> Result<(), i32> {
        let check = |code| if code == 0 { Ok(()) } else { Err(code) };
        let (mut part, mut executable) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the driver's functions with graphs and nodes of ours, which they check.
        unsafe {
            check((driver.clone_graph)(&mut part, self.graph))?;
            let run = || {
                for (_, node) in (0..).zip(&self.nodes).filter(|(at, _)| !keeps(*at)) {
                    let mut own = std::ptr::null_mut();
                    check((driver.node_in_clone)(&mut own, node.node, part))?;
                    check((driver.destroy_node)(own))?;
                }
                check((driver.instantiate)(&mut executable, part, 0))?;
                let launched = check((driver.launch_graph)(executable, stream));
                let ended = check((driver.synchronise_stream)(stream));
                (driver.destroy_executable)(executable);
                launched.and(ended)
            };
            let result = { run }();
            (driver.destroy_graph)(part);
            result
        }
    }
}

impl KernelParameters {
    /// Returns the CUfunction, or the CUkernel where there is none.
    fn handle(&self) -> *mut c_void {
        match self.function.is_null() {
            true => self.kernel,
            false => self.function,
        }
    }
}

/// Returns the parameters of a node; `None` unless it is a kernel.
fn kernel_parameters(driver: &DriverFunctions, node: OrderedNode) -> Option<KernelParameters> {
    // SAFETY: all members are numbers and addresses.
    let mut given: KernelParameters = unsafe { std::mem::zeroed() };
    // SAFETY: the driver's function, which stores the structure.
    let code = unsafe { (driver.kernel_node)(node.node, (&raw mut given).cast::<c_void>()) };
    (node.kind == KERNEL && code == 0).then_some(given)
}
