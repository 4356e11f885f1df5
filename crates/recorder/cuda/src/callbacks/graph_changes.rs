//! Writes how threads make graphs (work that is launched as a whole), node by node: CUPTI calls back while it happens, on the thread that does
//! it, and the thread's log gets a [`GraphChange`]. The session knows from the log in which labels the thread was.
//!
//! A launch of a graph makes no node, and costs nothing here.

use crate::cupti::Cupti;
use crate::cupti::numbers::{domain, resource};
use crate::instructions::ResourceData;
use crate::recorder::{Recorder, recorder};
use crate::subscription::Subscription;
use gapscope_spool::event::{CudaEvent, GraphChange};
use gapscope_spool::{ids, monotonic_ns};
use std::ffi::c_void;

/// The callbacks by which the nodes of graphs are known.
const NEEDED: [u32; 5] = [
    resource::GRAPH_CREATED,
    resource::GRAPH_ENDS,
    resource::GRAPH_NODE_CREATED,
    resource::INSTANTIATED,
    resource::GRAPH_NODE_CLONED,
];

/// CUpti_GraphData: the data of a callback about a graph. The descriptor of [`ResourceData`] points to it.
#[repr(C)]
struct GraphData {
    graph: *mut c_void,
    original_graph: *mut c_void,
    node: *mut c_void,
    original_node: *mut c_void,
    node_type: u32,
    dependency: *mut c_void,
    executable: *mut c_void,
}

/// Asks for the callbacks about graphs. Where CUPTI refuses one, a note says what work lacks.
pub fn switch_on(recorder: &Recorder, subscription: &Subscription) {
    let functions = &subscription.cupti.functions;
    let has_numbers = functions.graph_node_id.is_some()
        && functions.graph_id.is_some()
        && functions.unlaunched_graph_id.is_some();
    let switch_on =
        |number: &u32| subscription.switch_callback(domain::RESOURCE, *number, true) == 0;
    if has_numbers && NEEDED.iter().all(switch_on) {
        // An older CUPTI does not say which nodes an update changes: they keep the labels with which they were made.
        switch_on(&resource::GRAPH_NODE_UPDATED);
        return;
    }
    switch_off(subscription);
    recorder.note(
        "Work of CUDA graphs has only the labels around the launches of the graphs: this CUPTI does not say when the nodes of graphs are made.",
    );
}

/// Ends the callbacks about graphs.
pub fn switch_off(subscription: &Subscription) {
    for number in NEEDED.into_iter().chain([resource::GRAPH_NODE_UPDATED]) {
        subscription.switch_callback(domain::RESOURCE, number, false);
    }
}

/// Returns true for a callback about graphs.
pub fn is_about_graphs(number: u32) -> bool {
    NEEDED.contains(&number) || number == resource::GRAPH_NODE_UPDATED
}

/// Handles a callback about a graph.
///
/// # Safety
/// The data is CUPTI's, of such a callback.
pub unsafe fn changed(number: u32, data: *const c_void, cupti: &Cupti) -> Option<()> {
    // SAFETY: as the caller promises: the descriptor points to the graph's data, whose handles are valid meanwhile.
    let change = unsafe {
        let data = data.cast::<ResourceData>().as_ref()?;
        let data = data.descriptor.cast::<GraphData>().as_ref()?;
        change(number, data, cupti)?
    };
    recorder()?.write(&CudaEvent::GraphChanged(change));
    Some(())
}

/// Returns what a callback says; `None` where CUPTI does not number what it is about.
///
/// # Safety
/// The handles are those of the callback.
unsafe fn change(number: u32, data: &GraphData, cupti: &Cupti) -> Option<GraphChange> {
    // SAFETY: as the caller promises.
    let graph = |handle| unsafe {
        let mut number = 0;
        let code = (cupti.functions.unlaunched_graph_id?)(handle, &mut number);
        (code == 0).then_some(ids::Graph(number))
    };
    // SAFETY: as the caller promises.
    let node = |handle| unsafe {
        let mut number = 0;
        let code = (cupti.functions.graph_node_id?)(handle, &mut number);
        (code == 0).then_some(ids::GraphNode(number))
    };
    Some(match number {
        resource::GRAPH_CREATED => GraphChange::Created {
            graph: graph(data.graph)?,
            at_ns: monotonic_ns(),
        },
        resource::GRAPH_NODE_CREATED => GraphChange::NodeCreated {
            node: node(data.node)?,
            at_ns: monotonic_ns(),
        },
        resource::GRAPH_NODE_CLONED => GraphChange::NodeCloned {
            node: node(data.node)?,
            original: node(data.original_node)?,
        },
        // Here the original is the node of the executable graph.
        resource::GRAPH_NODE_UPDATED => GraphChange::NodeUpdated {
            node: node(data.original_node)?,
            source: node(data.node)?,
            at_ns: monotonic_ns(),
        },
        resource::GRAPH_ENDS => GraphChange::Destroyed {
            graph: graph(data.graph)?,
        },
        resource::INSTANTIATED => {
            let mut number = 0;
            // SAFETY: as the caller promises.
            let code = unsafe { (cupti.functions.graph_id?)(data.executable, &mut number) };
            (code == 0).then_some(GraphChange::Instantiated {
                graph: ids::Graph(number),
            })?
        }
        _ => return None,
    })
}
