//! Graphs: chains of one kernel, whose neighbours overlap by 64 ns, as on an H200.

use super::{Api, INVALID_CONTEXT, INVALID_HANDLE, SUCCESS, call, driver, kernel, tell_kernel};
use crate::config::config;
use crate::{cupti, names, records, truth};
use std::ffi::c_int;

const OVERLAP_NS: u64 = 64;

#[derive(Debug, Clone, Copy)]
pub struct Graph {
    id: u32,
    function: usize,
    nodes: u32,
}

/// Makes a graph of `nodes` launches of a function. Not a function of CUDA's, which has many for it.
pub fn create(function: usize, nodes: u32) -> usize {
    let mut driver = driver();
    let handle = driver.handle();
    let graph = Graph {
        id: handle as u32,
        function,
        nodes,
    };
    driver.graphs.insert(handle, graph);
    handle
}

pub fn instantiate(graph: usize) -> Result<usize, c_int> {
    let mut executable = Err(INVALID_HANDLE);
    call(names::CU_GRAPH_INSTANTIATE_WITH_FLAGS, |driver, _, _| {
        let Some(known) = driver.graphs.get(&graph).copied() else {
            return INVALID_HANDLE;
        };
        let handle = driver.handle();
        driver.graphs.insert(
            handle,
            Graph {
                id: handle as u32,
                ..known
            },
        );
        cupti::state().graphs += 1;
        executable = Ok(handle);
        SUCCESS
    });
    executable
}

pub fn launch(api: Api<'_>, executable: usize, stream: usize) -> c_int {
    call(api, |driver, correlation, asked| {
        let Some(graph) = driver.graphs.get(&executable).copied() else {
            return INVALID_HANDLE;
        };
        let Some(name) = driver.functions.get(&graph.function).map(|f| f.name) else {
            return INVALID_HANDLE;
        };
        if cupti::state().graphs_traced_late {
            // As libcupti 13.0.85 does.
            // SAFETY: it ends the process, as it should.
            unsafe { libc::raise(libc::SIGSEGV) };
        }
        let each = config().kernel_ns;
        let step = each.saturating_sub(OVERLAP_NS);
        let ns = u64::from(graph.nodes) * step + OVERLAP_NS;
        let Some(mut work) = driver.submit(stream, correlation, asked, ns) else {
            return INVALID_CONTEXT;
        };
        let (start, end) = (work.start, work.end);
        let mut cupti = cupti::state();
        if cupti.is_on(records::GRAPH_TRACE) {
            let record = records::GraphTrace {
                kind: records::GRAPH_TRACE,
                correlation_id: correlation,
                start: cupti.of_device(start),
                end: cupti.of_device(end),
                device_id: work.device,
                graph_id: graph.id,
                context_id: work.context,
                stream_id: work.stream,
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
        for node in 0..graph.nodes {
            work.start = start + u64::from(node) * step;
            work.end = work.start + each;
            let mut kernel = kernel(name, &work, [1, 1, 1], [32, 1, 1], 0);
            kernel.graph_id = graph.id;
            kernel.graph_node_id = u64::from(graph.id) << 32 | u64::from(node + 1);
            tell_kernel(&mut cupti, kernel);
        }
        SUCCESS
    })
}
