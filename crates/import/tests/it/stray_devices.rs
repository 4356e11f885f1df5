//! Tests that a device that hardly any row names is no GPU of its own.

use crate::database::database;
use crate::imported::import_bytes;
use crate::perfetto_times::on_devices;
use gapscope_trace::Trace;
use gapscope_trace::tables::Table as _;
use std::fmt::Write;

/// Imports a file of PyTorch's profiler: launches and their kernels, each of which names the device that `device` gives
/// for its number.
fn kineto(count: u32, describes: bool, device: impl Fn(u32) -> u32) -> Trace {
    let mut text = String::from("{");
    if describes {
        text += r#""deviceProperties": [{"id": 0, "name": "NVIDIA A100"}, {"id": 1, "name": "NVIDIA A100"}], "#;
    }
    text += r#""traceEvents": ["#;
    for at in 0..count {
        let (device, at_us) = (device(at), 10 * at + 1);
        write!(
            text,
            r#"{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": {at_us}, "dur": 2,
                "args": {{"correlation": {}}}}},
               {{"ph": "X", "cat": "kernel", "name": "k", "pid": {device}, "tid": 7, "ts": {}, "dur": 4,
                "args": {{"device": {device}, "context": 1, "stream": 7, "correlation": {}}}}},"#,
            at + 1,
            at_us + 3,
            at + 1,
        )
        .unwrap();
    }
    // PyTorch's allocator has memory on every device.
    for device in [0, 77] {
        write!(
            text,
            r#"{{"ph": "i", "name": "[memory]", "pid": 7, "tid": 7, "ts": 5,
                "args": {{"Device Type": 1, "Device Id": {device}, "Total Allocated": 512, "Total Reserved": 1024}}}},"#
        )
        .unwrap();
    }
    let text = format!("{}]}}", text.trim_end_matches(','));
    import_bytes("trace.json", text.as_bytes()).unwrap().trace
}

/// Returns the names of the devices, the number of dispatches, and the numbers of lost ones.
fn seen(trace: &Trace) -> (Vec<&str>, usize, u64) {
    let devices = trace.manifest.devices.iter();
    let losses = trace.manifest.losses.iter();
    let strays = losses.filter(|loss| loss.reason.contains("hardly any row names"));
    (
        devices.map(|device| &*device.name).collect(),
        trace.tables.dispatches.len(),
        strays.map(|loss| loss.count).sum(),
    )
}

#[test]
fn a_device_of_one_row_is_no_gpu() {
    let stray = |at| if at == 500 { 77 } else { 0 };
    let trace = kineto(1200, false, stray);
    assert_eq!(seen(&trace), (vec!["unknown GPU 0"], 1199, 1));
    assert_eq!(trace.manifest.queues.len(), 1);
    // Counters of the device name it by its number.
    assert_eq!(trace.dangling_ids(), []);
    let counters = &trace.tables.counters;
    let of_none =
        (counters.name.iter().zip(&counters.device)).filter(|(_, device)| device.is_none());
    let names: Vec<&str> = of_none.map(|(name, _)| &**name).collect();
    assert!(
        names.iter().all(|name| name.ends_with("on device 77")) && names.len() == 2,
        "{names:?}"
    );
    // Where the file describes the others, fewer rows are enough.
    let trace = kineto(60, true, |at| if at == 30 { 77 } else { 0 });
    assert_eq!(seen(&trace), (vec!["NVIDIA A100"], 59, 1));
}

#[test]
fn a_device_that_the_file_describes_or_that_has_work_stays() {
    // One kernel of a GPU that is described.
    let trace = kineto(1200, true, |at| u32::from(at == 500));
    assert_eq!(seen(&trace), (vec!["NVIDIA A100"; 2], 1200, 0));
    // Some kernels of one that is not.
    let trace = kineto(1200, false, |at| u32::from(at % 100 == 50));
    assert_eq!(
        seen(&trace),
        (vec!["unknown GPU 0", "unknown GPU 1"], 1200, 0)
    );
}

#[test]
fn perfettos_files_have_the_same_rule() {
    let trace = on_devices(1200, |at| if at == 500 { 77 } else { 0 });
    assert_eq!(seen(&trace), (vec!["GPU 0"], 1199, 1));
    let trace = on_devices(1200, |at| u64::from(at % 100 == 50));
    assert_eq!(seen(&trace), (vec!["GPU 0", "GPU 1"], 1200, 0));
}

#[test]
fn a_row_of_nsys_without_a_device_is_lost_beside_thousands_with_one() {
    let mut text = String::from(
        "StringIds id value\n[1, \"scale\"]\nCUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid demangledName\n",
    );
    for at in 0..2000 {
        let device = if at == 900 { "null" } else { "0" };
        let start = 100 * at + 100;
        writeln!(
            text,
            "[{start}, {}, {device}, 1, 0, {}, 117440512, 1]",
            start + 50,
            at + 5
        )
        .unwrap();
    }
    let trace = import_bytes("export.sqlite", &database(&text))
        .unwrap()
        .trace;
    assert_eq!(seen(&trace), (vec!["GPU 0"], 1999, 1));
}
