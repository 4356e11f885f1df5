//! Tests the import of Xcode's tables of counters, which were written by hand after published descriptions.

use crate::imported::{Rows, import_bytes};
use gapscope_trace::tables::OpaqueWorkKind;

const TABLE: &str = "\
Index,Encoder FunctionIndex,CommandBuffer Label,Encoder Label,,ALU Utilization,Kernel Invocations,Texture Cache Miss Rate,Texture Cache Miss Rate
1,77,\"Command Buffer 2 0xa74c48380\",\"Compute Encoder 0 0xa74c3c960\",,\"0.98\",1237392,0,1.5
2,115,\"Command Buffer 2 0xa74c48380\",\"softmax, scaled\",,0.10,87040,,
3,140,\"Command Buffer 3\",blit,,0,0,0,0
4,160,cut
";

#[test]
fn encoders_have_their_values_and_no_times() {
    let import = import_bytes("run Counters.csv", TABLE.as_bytes()).unwrap();
    let t = &import.trace.tables;
    let kinds = t.opaque_work.iter();
    let kinds: Vec<_> = kinds.map(|work| (work.kind, work.start_ns)).collect();
    let compute = (OpaqueWorkKind::ComputePass, None);
    assert_eq!(kinds, [compute, compute, (OpaqueWorkKind::Other, None)]);
    let names = t.command_buffers.iter();
    let names: Vec<_> = names.map(|row| row.name.unwrap().to_string()).collect();
    assert_eq!(names, ["Command Buffer 2 0xa74c48380", "Command Buffer 3"]);
    let payloads = t.markers.iter();
    let payloads: Vec<_> = payloads.map(|row| row.payload.unwrap()).collect();
    let first = "ALU Utilization=0.98, Kernel Invocations=1237392, Texture Cache Miss Rate=0, Texture Cache Miss Rate (2)=1.5";
    assert_eq!(&*payloads[0], first);
    assert_eq!(
        &*payloads[1],
        "ALU Utilization=0.10, Kernel Invocations=87040"
    );
    let mut labels = t.labels.iter();
    assert!(labels.any(|label| &*label.text == "softmax, scaled"));
    assert_eq!(import.loss("rows of encoders"), 1);
    assert!(import.notes("it states no units"));
}

#[test]
fn a_table_without_rows_is_refused_by_a_sentence() {
    let header = TABLE.lines().next().unwrap();
    let error = import_bytes("run Counters.csv", header.as_bytes()).unwrap_err();
    assert!(
        error.to_string().ends_with("has no rows of encoders"),
        "{error}"
    );
}
