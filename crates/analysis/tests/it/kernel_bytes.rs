//! The bytes that kernels must move at least, without counters.

use crate::program::findings_of;
use gapscope_analysis::limits::{BytesEvidence, NoPeakShare};

/// A device that was measured: 100 GB/s for writing, 120 for copying, 140 for reading.
const MEASURED: &str = "device id=1 api=vulkan uuid=aa limits.measured.write_bytes_per_s=100000000000 \
    limits.measured.copy_bytes_per_s=120000000000 limits.measured.read_bytes_per_s=140000000000 limits.measured.driver=1\n";
const UNMEASURED: &str = "device id=1 api=vulkan uuid=aa\n";
/// Two buffers of 4 MB, bound for reading and for writing.
const BOUND: &str = "buffer id=1 device=1 bytes=4000000\nbuffer id=2 device=1 bytes=4000000\n\
    binding id=1 set=0 binding=0 buffer=1 offset_bytes=0 bytes=4000000 access=read\n\
    binding id=1 set=0 binding=1 buffer=2 offset_bytes=0 bytes=4000000 access=write\n";
/// Each invocation reads and writes an element of its own, if that is in the bounds of the output.
const MAP: &str = "threads 256.1.1; read 0.0 4 at 4*l0+1024*w0 if 1*l0+256*w0 < 0.1+0/4; write 0.1 4 at 4*l0+1024*w0 if 1*l0+256*w0 < 0.1+0/4; read 0.0 most 4; write 0.1 most 4";
/// The same under a condition that is not understood, such as a length among the push constants.
const GUARDED: &str = "threads 256.1.1; read 0.0 most 4; write 0.1 most 4";

type KernelFigures = (
    Option<u64>,
    Option<u64>,
    Option<f64>,
    Option<BytesEvidence>,
    Option<NoPeakShare>,
);

/// Ten dispatches of a kernel with this code, of so many workgroups and microseconds each; tells bytes, gigabytes a second, share of the peak.
fn told(device: &str, code: &str, groups: u32, us: u32) -> KernelFigures {
    let code = match code {
        "" => String::new(),
        code => format!(" accesses=\"{code}\""),
    };
    let mut text = format!("{device}queue id=1 device=1\nkernel id=1 name=map{code}\n{BOUND}");
    for at in 0..10 {
        text += &format!(
            "dispatch queue=1 kernel=1 start_ns={}us duration_ns={us}us bindings=1 groups_x={groups} groups_y=1 groups_z=1\n",
            at * 1000
        );
    }
    let kernel = findings_of(&text).kernels[0].clone();
    let share = kernel
        .share_of_peak
        .map(|share| (share * 1000.0).round() / 1000.0);
    (
        kernel.bytes_at_least,
        kernel.bytes_per_s.map(|bytes| bytes / 1_000_000_000),
        share,
        kernel.bytes_evidence,
        kernel.no_peak_share,
    )
}

#[test]
fn bytes_are_as_certain_as_their_evidence() {
    use BytesEvidence::{BoundRanges, Code};
    use NoPeakShare::{AbovePeak, NotMeasured};
    let some =
        |bytes, rate, share, evidence, none| (Some(bytes), Some(rate), share, Some(evidence), none);
    let cases = [
        // 8 MB in 100 µs are 80 GB/s of 120; the code touches all of it.
        (
            MEASURED,
            MAP,
            3907,
            100,
            some(80_000_000, 80, Some(0.667), Code, None),
        ),
        // Half of the workgroups touch half.
        (
            MEASURED,
            MAP,
            1953,
            100,
            some(39_997_440, 39, Some(0.333), Code, None),
        ),
        (
            UNMEASURED,
            MAP,
            3907,
            100,
            some(80_000_000, 80, None, Code, Some(NotMeasured)),
        ),
        // The bytes came from a cache.
        (
            MEASURED,
            MAP,
            3907,
            10,
            some(80_000_000, 800, None, Code, Some(AbovePeak)),
        ),
        // All that is bound, but no more than the invocations reach.
        (
            MEASURED,
            GUARDED,
            3907,
            100,
            some(80_000_000, 80, Some(0.667), BoundRanges, None),
        ),
        (
            MEASURED,
            GUARDED,
            1953,
            100,
            some(39_997_440, 39, Some(0.333), BoundRanges, None),
        ),
        // Nothing is known of the code.
        (
            MEASURED,
            "",
            1953,
            100,
            some(80_000_000, 80, Some(0.667), BoundRanges, None),
        ),
        (
            MEASURED,
            "",
            1,
            1,
            some(80_000_000, 8000, None, BoundRanges, Some(AbovePeak)),
        ),
        (
            MEASURED,
            "no such text",
            3907,
            100,
            some(80_000_000, 80, Some(0.667), BoundRanges, None),
        ),
    ];
    for (device, code, groups, us, expected) in cases {
        assert_eq!(
            told(device, code, groups, us),
            expected,
            "{code} {groups} {us}"
        );
    }
}

#[test]
fn dispatches_without_bindings_or_times_have_no_bytes() {
    let unbound = "queue id=1 device=1\nkernel id=1 name=map\ndispatch queue=1 kernel=1 start_ns=0 duration_ns=1ms\n";
    let untimed =
        "queue id=1 device=1\nkernel id=1 name=map\ndispatch queue=1 kernel=1 bindings=1\n";
    for rows in [unbound, untimed] {
        let found = findings_of(&format!("{MEASURED}{BOUND}{rows}"));
        let kernel = &found.kernels[0];
        assert_eq!(
            (
                kernel.bytes_at_least,
                kernel.bytes_per_s,
                kernel.bytes_evidence
            ),
            (None, None, None)
        );
    }
}

#[test]
fn ranges_that_overlap_count_once() {
    // The same buffer is read through two bindings.
    let rows = "queue id=1 device=1\nbuffer id=1 device=1 bytes=4096\n\
        kernel id=1 name=map accesses=\"threads 256.1.1; read 0.0 4 at 4*l0+1024*w0; read 0.1 4 at 4*l0+1024*w0\"\n\
        binding id=1 set=0 binding=0 buffer=1 offset_bytes=0 bytes=4096 access=read\n\
        binding id=1 set=0 binding=1 buffer=1 offset_bytes=0 bytes=4096 access=read\n\
        dispatch queue=1 kernel=1 start_ns=0 duration_ns=1ms bindings=1 groups_x=4 groups_y=1 groups_z=1\n";
    let found = findings_of(&format!("{MEASURED}{rows}"));
    assert_eq!(found.kernels[0].bytes_at_least, Some(4096));
    assert_eq!(found.kernels[0].bytes_evidence, Some(BytesEvidence::Code));
}
