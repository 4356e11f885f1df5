//! Tests databases of rocmProfileData, whose rows are planted after the schema that it creates.

use crate::imported::{kernel, loss, path, planted};
use gapscope_trace::tables::{HostCallKind, TransferKind};

/// A database: two kernels and a copy of a process on two GPUs, with calls, a range and a barrier.
const DATABASE: &str = r#"
    rocpd_metadata id tag value
    [1, "schema_version", "2"]
    rocpd_string id string
    [1, ""]
    [2, "hipLaunchKernel"]
    [3, "hipMemcpyAsync"]
    [4, "hipDeviceSynchronize"]
    [5, "UserMarker"]
    [6, "KernelExecution"]
    [7, "CopyHostToDevice"]
    [8, "scale(float*, int) [clone .kd]"]
    [9, "Barrier"]
    rocpd_ustring id string
    [1, ""]
    [2, "step 1"]
    rocpd_api id pid tid start end apiName_id domain_id category_id args_id
    [10, 4242, 4243, 1000000, 1010000, 3, 1, 1, 1]
    [11, 4242, 4243, 1020000, 1030000, 2, 1, 1, 1]
    [12, 4242, 4243, 1040000, 1050000, 2, 1, 1, 1]
    [13, 4242, 4243, 1060000, 1900000, 4, 1, 1, 1]
    [14, 4242, 4243, 990000, 1950000, 5, 1, 1, 2]
    rocpd_op id gpuId queueId sequenceId start end description_id opType_id
    [1, 0, 0, 0, 1005000, 1105000, 1, 7]
    [2, 0, 0, 0, 1110000, 1310000, 8, 6]
    [3, 1, 0, 0, 1110000, 1890000, 8, 6]
    [4, 1, 0, 0, 1890000, 1895000, 1, 9]
    rocpd_api_ops id api_id op_id
    [1, 10, 1]
    [2, 11, 2]
    [3, 12, 3]
    rocpd_kernelapi api_ptr_id stream gridX gridY gridZ workgroupX workgroupY workgroupZ groupSegmentSize privateSegmentSize kernelName_id
    [11, "0", 64, 1, 1, 256, 1, 1, 512, 0, 8]
    rocpd_copyapi api_ptr_id stream size width height kind dst src dstDevice srcDevice sync pinned
    [10, "0", 4096, 0, 0, 1, "", "", 0, 0, 0, 0]
    rocpd_monitor id deviceType deviceId monitorType start end value
    [1, "gpu", 0, "sclk", 1000000, 1500000, "1700"]
"#;

#[test]
fn calls_work_and_ranges_of_rpd_are_in_the_trace() {
    let trace = planted(DATABASE);
    let tables = &trace.tables;
    let names = trace.manifest.devices.iter().map(|device| &*device.name);
    assert_eq!(Vec::from_iter(names), ["GPU 0", "GPU 1"]);
    assert_eq!(
        tables.dispatches.duration_ns,
        [Some(200_000), Some(780_000)]
    );
    assert_eq!(tables.transfers.kind, [TransferKind::HostToDevice]);
    assert_eq!(tables.transfers.bytes, [Some(4096)]);
    let of_kernel = kernel(&trace, tables.dispatches.kernel[0]);
    assert_eq!(&*of_kernel.name, "scale(float*, int)");
    assert_eq!(of_kernel.local_x, Some(256));
    // Some writers give work-items in place of workgroups, so that the number of groups is not known.
    assert_eq!(tables.dispatches.groups_x.at(0), None);
    let functions = tables.submissions.function.iter().flatten();
    let functions: Vec<&str> = functions.map(|function| &**function).collect();
    assert_eq!(
        functions,
        ["hipMemcpyAsync", "hipLaunchKernel", "hipLaunchKernel"]
    );
    assert_eq!(tables.host_calls.call, [HostCallKind::WaitDeviceIdle]);
    assert_eq!(path(&trace, tables.dispatches.label.at(0)), "step 1");
    assert_eq!(loss(&trace, "rows of rocpd_monitor"), 1);
}

#[test]
fn older_databases_have_the_texts_of_ranges_among_the_others() {
    let old = DATABASE
        .replace(
            "rocpd_ustring id string\n    [1, \"\"]\n    [2, \"step 1\"]\n",
            "",
        )
        .replace("[9, \"Barrier\"]", "[9, \"Barrier\"]\n    [20, \"step 1\"]")
        .replace("1950000, 5, 1, 1, 2]", "1950000, 5, 1, 1, 20]");
    let trace = planted(&old);
    let dispatches = &trace.tables.dispatches;
    assert_eq!(path(&trace, dispatches.label.at(0)), "step 1");
}
