//! Tests what exports of Nsight Systems say of the nodes of CUDA graphs (`--cuda-graph-trace=node`). The tables have the columns, numbers and names
//! of those that nsys 2025 and 2026 write.

use crate::imported::{Rows, losses, path, planted};
use gapscope_trace::Trace;

/// Two modules that are captured as graph 1, which is instantiated as graph 2 and launched twice: in a label and outside of any.
const CAPTURED: &str = r#"
StringIds id value
[1, "gemm"]
[3, "cudaGraphLaunch_v10000"]
[1006, "Graph Creation"]
[1007, "Graph Node Creation"]
[1009, "GraphExec Creation"]
ENUM_NSYS_EVENT_CLASS id name label
[77, "TRACE_PROCESS_EVENT_CUDA_GRAPH_NODE_CREATION", "CUDA graph node creation"]
NVTX_EVENTS start end eventType text globalTid domainId
[5, 80, 59, "warm-up", 117440513, 0]
[20, 30, 59, "attention", 117440513, 0]
[40, 50, 59, "mlp", 117440513, 0]
[60, 75, 59, "instantiate", 117440513, 0]
[90, 120, 59, "decode", 117440513, 0]
CUPTI_ACTIVITY_KIND_RUNTIME start end globalTid correlationId nameId returnValue
[100, 110, 117440513, 5, 3, 0]
[130, 140, 117440513, 6, 3, 0]
CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid demangledName gridX gridY gridZ blockX blockY blockZ graphNodeId graphId
[200, 250, 0, 1, 7, 5, 117440512, 1, 4, 2, 1, 128, 1, 1, 8589934592, 2]
[260, 300, 0, 1, 7, 5, 117440512, 1, 8, 1, 1, 128, 1, 1, 8589934593, 2]
[400, 450, 0, 1, 7, 6, 117440512, 1, 4, 2, 1, 128, 1, 1, 8589934592, 2]
"#;

const NODES: &str = r#"
CUDA_GRAPH_EVENTS start end eventClass globalTid nameId graphId originalGraphId graphExecId
[10, 10, 95, 117440513, 1006, 1, null, null]
[61, 61, 95, 117440513, 1006, 2, null, null]
[70, 70, 94, 117440513, 1009, 1, null, 2]
CUDA_GRAPH_NODE_EVENTS start end eventClass globalTid nameId graphNodeId originalGraphNodeId
[63, 63, 77, 117440513, 1007, 8589934593, 4294967297]
[62, 62, 77, 117440513, 1007, 8589934592, 4294967296]
[25, 25, 77, 117440513, 1007, 4294967296, null]
[45, 45, 77, 117440513, 1007, 4294967297, null]
"#;

fn labels(trace: &Trace) -> Vec<String> {
    let labels = &trace.tables.dispatches.label;
    (0..labels.len())
        .map(|row| match labels.at(row) {
            Some(label) => path(trace, Some(label)),
            None => String::new(),
        })
        .collect()
}

#[test]
fn work_of_graphs_has_the_labels_in_which_its_nodes_were_made() {
    let trace = planted(&format!("{CAPTURED}{NODES}"));
    assert_eq!(
        labels(&trace),
        ["decode / attention", "decode / mlp", "warm-up / attention"]
    );
    let nodes: Vec<_> = trace.tables.graph_nodes.iter().collect();
    let made = nodes.iter().map(|row| (row.graph, row.node, row.made_ns));
    assert_eq!(
        Vec::from_iter(made),
        [(2, 2 << 32, 25), (2, (2 << 32) + 1, 45)]
    );
    assert!(nodes.iter().all(|row| row.thread.map(|t| t.0) == Some(1)));
    let of_dispatches = &trace.tables.dispatches.graph_node;
    assert_eq!(of_dispatches.at(0), Some(2 << 32));
    assert_eq!(losses(&trace), [] as [&str; 0]);
}

#[test]
fn work_whose_nodes_are_unknown_has_the_label_of_its_launch_and_that_is_a_loss() {
    // Neither table; a table without the columns; the making of the nodes before the recording began.
    let others = "\nCUDA_GRAPH_NODE_EVENTS start id\n[1, 2]\n";
    let late = r#"
CUDA_GRAPH_NODE_EVENTS start end eventClass globalTid nameId graphNodeId originalGraphNodeId
[62, 62, 77, 117440513, 1007, 8589934592, 4294967296]
[63, 63, 77, 117440513, 1007, 8589934593, 4294967297]
"#;
    let unknown = "3 labels of GPU work";
    for (tables, lost) in [
        ("", vec![unknown]),
        (others, vec![unknown, "1 rows of CUDA_GRAPH_NODE_EVENTS"]),
        (late, vec![unknown]),
    ] {
        let trace = planted(&format!("{CAPTURED}{tables}"));
        assert_eq!(labels(&trace), ["decode", "decode", ""], "{tables}");
        assert_eq!(trace.tables.graph_nodes.iter().count(), 0, "{tables}");
        assert_eq!(losses(&trace), lost, "{tables}");
    }
}

#[test]
fn rows_of_nodes_that_are_damaged_or_of_other_kinds_are_counted() {
    let odd = r#"
[9223372036854775807, 0, 77, 117440513, 1007, 4294967299, null]
[null, null, 77, 117440513, 1007, 4294967299, null]
[50, 50, 77, 117440513, 1007, -5, null]
[50, 50, 77, null, 1007, 4294967300, 4294967300]
[50, 50, 112, 117440513, 3, 4294967296, null]
"#;
    let trace = planted(&format!("{CAPTURED}{NODES}{}", odd.trim_start()));
    assert_eq!(
        labels(&trace),
        ["decode / attention", "decode / mlp", "warm-up / attention"]
    );
    assert_eq!(
        losses(&trace),
        [
            "4 rows of CUDA_GRAPH_NODE_EVENTS",
            "1 rows of CUDA_GRAPH_NODE_EVENTS"
        ]
    );
}
