//! Tests the columns of the table of kernels on the bytes that kernels must move at least.

use super::{assert_says, read, terminal, words};

const CODE: &str =
    "accesses=\"threads 256.1.1; read 0.0 4 at 4*l0+1024*w0; write 0.1 4 at 4*l0+1024*w0\"";

/// Ten dispatches of 8 MB in this many microseconds each, by a kernel with this code.
fn page(device: &str, code: &str, us: u32) -> String {
    let mut text = format!(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=50ms\ndevice id=1 name=GPU uuid=aa {device}\nqueue id=1 device=1\n\
         kernel id=1 name=map {code}\nbuffer id=1 device=1 bytes=4096000\nbuffer id=2 device=1 bytes=4096000\n\
         binding id=1 set=0 binding=0 buffer=1 offset_bytes=0 bytes=4096000 access=read\n\
         binding id=1 set=0 binding=1 buffer=2 offset_bytes=0 bytes=4096000 access=write\n"
    );
    for at in 0..10 {
        text += &format!(
            "dispatch queue=1 kernel=1 start_ns={at}ms duration_ns={us}us bindings=1 groups_x=4000 groups_y=1 groups_z=1\n"
        );
    }
    words(&terminal(&read(&text)))
}

#[test]
fn the_table_of_kernels_has_bytes_rate_and_share_of_the_peak() {
    let measured = "limits.measured.copy_bytes_per_s=163840000000";
    let certain = page(measured, CODE, 100);
    assert_says(&certain, "bytes ≥ a second of peak");
    assert_says(&certain, "78.1 MiB 76.3 GiB/s 50.0 %");
    assert_says(&certain, "bytes ≥: an estimate of what");
    assert_says(&certain, "the code touches them in every case");
    let assumed = page(measured, "", 100);
    assert_says(&assumed, "78.1 MiB * 76.3 GiB/s 50.0 %");
    assert_says(
        &assumed,
        "the kernel moves as much only if it touches all of it",
    );
    let cached = page(measured, CODE, 10);
    assert_says(&cached, "763 GiB/s > 100 %");
    assert_says(&cached, "caches served a part of the bytes");
    let unmeasured = page("", CODE, 100);
    assert_says(
        &unmeasured,
        "run `gapscope bench device` once, then record again",
    );
    assert!(!unmeasured.contains("of peak "), "{unmeasured}");
}
