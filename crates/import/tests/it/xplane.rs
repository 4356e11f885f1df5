//! Tests the import of profiles of JAX. A separate script with Google's protobuf library counted the expected
//! figures.

use crate::imported::{self, Import, Rows};
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::*;
use std::path::Path;

fn import(name: &str) -> Import {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/xplane");
    imported::import(&folder.join(format!("{name}.xplane.pb.gz"))).unwrap()
}

/// The numbers that the script also counts.
#[derive(Debug, PartialEq)]
struct Counts {
    dispatches: usize,
    dispatches_ns: i64,
    transfers: usize,
    transfers_ns: i64,
    transfer_bytes: u64,
    kernel_names: usize,
    submissions: usize,
}

fn counts(import: &Import) -> Counts {
    let t = &import.trace.tables;
    let names: std::collections::BTreeSet<_> = t.kernels.iter().map(|kernel| kernel.name).collect();
    Counts {
        dispatches: t.dispatches.len(),
        dispatches_ns: t.dispatches.duration_ns.iter().flatten().sum(),
        transfers: t.transfers.len(),
        transfers_ns: t.transfers.duration_ns.iter().flatten().sum(),
        transfer_bytes: t.transfers.bytes.iter().flatten().sum(),
        kernel_names: names.len(),
        submissions: t.submissions.len(),
    }
}

#[test]
fn work_and_times_are_those_that_a_script_counts() {
    let legacy = import("jax_conv_minimal_legacy");
    let expected = Counts {
        dispatches: 25,
        dispatches_ns: 3_586_493,
        transfers: 53,
        transfers_ns: 889_028,
        transfer_bytes: 34_734_080,
        kernel_names: 5,
        submissions: 78,
    };
    assert_eq!(counts(&legacy), expected);
    // The profiler wrote uninitialised memory in place of the registers.
    assert_eq!(legacy.loss("registers and memory of kernels"), 25);
    let mut kernels = legacy.trace.tables.kernels.iter();
    assert!(kernels.all(|kernel| kernel.registers.is_none()));

    let newer = import("jax_conv_minimal_08");
    let expected = Counts {
        dispatches: 235,
        dispatches_ns: 28_137_077,
        transfers: 0,
        transfers_ns: 0,
        transfer_bytes: 0,
        kernel_names: 6,
        submissions: 234,
    };
    assert_eq!(counts(&newer), expected);

    let attention = import("jax_te_fused_attn");
    let expected = Counts {
        dispatches: 150,
        dispatches_ns: 12_133_585,
        transfers: 0,
        transfers_ns: 0,
        transfer_bytes: 0,
        kernel_names: 19,
        submissions: 150,
    };
    assert_eq!(counts(&attention), expected);
}

#[test]
fn every_event_of_threads_is_a_row() {
    for (name, events) in [
        ("jax_conv_minimal_legacy", 5946),
        ("jax_conv_minimal_08", 3415),
        ("jax_te_fused_attn", 1842),
    ] {
        let import = import(name);
        let t = &import.trace.tables;
        let rows = t.markers.len() + t.host_calls.len() + t.submissions.len();
        // Copies that wait are both a submission and a host call.
        let mut twice = 0;
        for call in t.host_calls.iter() {
            let same = |s: &Submission| s.start_ns == call.start_ns && s.thread == call.thread;
            twice += usize::from(t.submissions.iter().any(|s| same(&s)));
        }
        assert_eq!(rows - twice, events, "{name}");
    }
}

#[test]
fn work_has_its_launch_its_label_and_its_device() {
    let import = import("jax_conv_minimal_08");
    let t = &import.trace.tables;
    let devices = &import.trace.manifest.devices;
    assert_eq!(devices.len(), 8);
    assert!(devices.iter().all(|device| device.api == Api::Hip));
    assert_eq!(
        import.trace.manifest.start_unix_ns.unwrap() / 1_000_000_000,
        1_771_595_639
    );
    let mut kernels = t.kernels.iter();
    let kernel = kernels.find(|k| &*k.name == "Im3d2Col").unwrap();
    assert_eq!(kernel.local_x, Some(256));
    let d = t.dispatches.iter().find(|d| d.kernel == kernel.id).unwrap();
    assert_eq!((d.groups_x, d.groups_y), (Some(1024), Some(1)));
    assert_eq!(
        imported::path(&import.trace, d.label),
        "jit_forward_3d_conv / jit(forward_3d_conv) / conv_general_dilated / cudnn-conv.1"
    );
    let mut submissions = t.submissions.iter();
    let submission = submissions.find(|s| Some(s.id) == d.submission).unwrap();
    let function = submission.function.as_deref();
    assert_eq!(function, Some("hipExtModuleLaunchKernel"));
    assert!(submission.start_ns <= d.start_ns.unwrap());
}
