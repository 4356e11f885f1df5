//! The table `kernel_counters` agrees with the report.

use crate::{TestFolder, csv};
use std::fmt::Write;

/// Ten dispatches of 1 ms of a kernel, with samples of 100 µs.
fn text() -> String {
    let mut text = String::from(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=20ms
device id=1 api=cuda name=GPU limits.measured.copy_bytes_per_s=2500000000000
queue id=1 device=1\nkernel id=1 name=copy\nkernel id=2 name=rare
counter id=1 name=\"tensor pipe active\" unit=percent device=1 source=test
counter id=2 name=\"DRAM read\" unit=bytes/s device=1 source=test
counter id=3 name=\"DRAM written\" unit=bytes/s device=1 source=test
dispatch queue=1 kernel=2 start_ns=15ms duration_ns=1ms\n",
    );
    for ms in 0..10 {
        writeln!(
            text,
            "dispatch queue=1 kernel=1 start_ns={ms}ms duration_ns=1ms"
        )
        .unwrap();
        for part in 0..10 {
            for (counter, value) in [(1, "0"), (2, "1000000000000"), (3, "1000000000000")] {
                let start_us = ms * 1000 + part * 100;
                writeln!(text, "counter_value counter={counter} start_ns={start_us}us duration_ns=100us value={value}").unwrap();
            }
        }
    }
    text
}

#[test]
fn it_has_a_row_for_each_kernel_and_counter() {
    let folder = TestFolder::new();
    folder.trace("t.gapscope", &text());
    let session = folder.session(&["t.gapscope"]);
    let rows = csv(
        &session,
        "select kernel_name, dispatches, \"limit\", limited_by, reached, winnable_ns, counter, mean, samples, covered_share
        from kernel_counters order by kernel_name, counter",
    );
    let rows: Vec<&str> = rows.lines().skip(1).collect();
    assert_eq!(
        rows,
        [
            "copy,10,memory,dram,0.8,2000000,DRAM read,1000000000000.0,100,1.0",
            "copy,10,memory,dram,0.8,2000000,DRAM written,1000000000000.0,100,1.0",
            "copy,10,memory,dram,0.8,2000000,tensor pipe active,0.0,100,1.0",
            "rare,1,,,,,,,,",
        ]
    );
    let because = "select unknown_because from kernel_counters where counter is null";
    assert!(csv(&session, because).contains("No sample lies in its dispatches alone."));
    let limits = csv(&session, &session.saved("limits").unwrap());
    assert!(
        limits.contains("copy,10.0,2.0,memory,dram,0.8,1.0,1000.0,1000.0,0.0,,"),
        "{limits}"
    );
    // The samples themselves, by the name of their counter.
    let read = "select avg(value) as mean from counter_values where counter_name = 'DRAM read'";
    assert_eq!(csv(&session, read), "mean\n1000000000000.0\n");
}
