//! Calls the subscriber at calls of the runtime and the driver, at the start and end of contexts and modules, and while graphs are made.

use super::state;
use crate::config::config;
use crate::names::Call;
use std::ffi::{c_char, c_int, c_void};

/// CUpti_CallbackFunc
pub type Callback = extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// CUpti_CallbackData
#[repr(C)]
pub struct Data {
    pub callback_site: c_int,
    pub function_name: *const c_char,
    pub function_parameters: *const c_void,
    pub function_return_value: *const c_int,
    pub symbol_name: *const c_char,
    pub context: *mut c_void,
    pub context_uid: u32,
    pub correlation_data: *mut u64,
    pub correlation_id: u32,
}

// `sizeof` gives this number for the header's structure.
const _: () = assert!(size_of::<Data>() == 72);

/// CUPTI_API_ENTER, CUPTI_API_EXIT
pub const ENTER: c_int = 0;
pub const EXIT: c_int = 1;

/// Returns whether the subscriber wants a callback at this call.
pub fn are_wanted((domain, number, _): Call) -> bool {
    let state = state();
    state.callback.is_some() && state.callbacks.contains(&(domain, number))
}

/// Calls the subscriber, if it wants that, at the start of a call, or at its end where there is a result. `symbol` is the address of the
/// name of a launched kernel, or 0.
pub fn deliver(
    call: Call,
    parameters: &[usize],
    correlation: u32,
    (context, symbol): (u32, usize),
    result: Option<c_int>,
) {
    let callback = match are_wanted(call) {
        true => state().callback,
        false => None,
    };
    let Some(callback) = callback else { return };
    let (domain, number, name) = call;
    let mut shared = 0;
    let data = Data {
        callback_site: if result.is_some() { EXIT } else { ENTER },
        function_name: name.as_ptr(),
        function_parameters: parameters.as_ptr().cast(),
        function_return_value: result.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
        symbol_name: symbol as *const c_char,
        context: context as usize as *mut c_void,
        context_uid: context,
        correlation_data: &mut shared,
        correlation_id: correlation,
    };
    callback(
        std::ptr::null_mut(),
        domain,
        number,
        (&raw const data).cast(),
    );
}

/// CUPTI_CB_DOMAIN_RESOURCE
pub const RESOURCE: u32 = 3;
/// CUpti_CallbackIdResource
pub const CONTEXT_CREATED: u32 = 1;
pub const CONTEXT_ENDS: u32 = 2;
pub const MODULE_LOADED: u32 = 6;
pub const MODULE_ENDS: u32 = 7;
pub const GRAPH_CREATED: u32 = 9;
pub const GRAPH_ENDS: u32 = 10;
pub const GRAPH_NODE_CREATED: u32 = 13;
pub const INSTANTIATED: u32 = 18;
pub const GRAPH_NODE_CLONED: u32 = 20;
/// CUPTI has this callback since CUDA 13.0.
pub const GRAPH_NODE_UPDATED: u32 = 22;

/// CUpti_ResourceData
#[repr(C)]
struct ResourceData {
    context: *mut c_void,
    handle: *mut c_void,
    descriptor: *const c_void,
}

/// CUpti_ModuleResourceData
#[repr(C)]
struct Module {
    id: u32,
    bytes: usize,
    cubin: *const u8,
}

/// CUpti_GraphData
#[repr(C)]
#[derive(Default)]
pub struct Graph {
    pub graph: usize,
    pub original_graph: usize,
    pub node: usize,
    pub original_node: usize,
    pub node_type: u32,
    pub dependency: usize,
    pub executable: usize,
}

/// Returns whether there is such a callback.
pub fn is_of_resource(domain: u32, number: u32) -> bool {
    let known = [
        CONTEXT_CREATED,
        CONTEXT_ENDS,
        MODULE_LOADED,
        MODULE_ENDS,
        GRAPH_CREATED,
        GRAPH_ENDS,
        GRAPH_NODE_CREATED,
        INSTANTIATED,
        GRAPH_NODE_CLONED,
    ];
    let is_new = number == GRAPH_NODE_UPDATED && config().api_version >= 130_000;
    domain == RESOURCE && (known.contains(&number) || is_new)
}

/// Calls the subscriber, if it wants that, at the start or end of a context or a module.
pub fn deliver_resource(number: u32, context: u32, cubin: Option<&[u8]>) {
    let module = Module {
        id: 1,
        bytes: cubin.map_or(0, <[u8]>::len),
        cubin: cubin.map_or(std::ptr::null(), <[u8]>::as_ptr),
    };
    deliver_about(number, context, (&raw const module).cast());
}

/// Calls the subscriber, if it wants that, while a graph is made.
pub fn deliver_graph(number: u32, graph: &Graph) {
    deliver_about(number, 0, std::ptr::from_ref(graph).cast());
}

fn deliver_about(number: u32, context: u32, descriptor: *const c_void) {
    let callback = {
        let state = state();
        let is_wanted = state.callbacks.contains(&(RESOURCE, number));
        state.callback.filter(|_| is_wanted)
    };
    let Some(callback) = callback else { return };
    let data = ResourceData {
        context: context as usize as *mut c_void,
        handle: std::ptr::null_mut(),
        descriptor,
    };
    callback(
        std::ptr::null_mut(),
        RESOURCE,
        number,
        (&raw const data).cast(),
    );
}
