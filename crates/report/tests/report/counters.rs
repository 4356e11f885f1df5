//! Tests counters and conditions in the report.

use super::*;

#[test]
fn measured_counters_are_in_the_report_where_there_are_some() {
    let counters = "
        counter id=1 name=power unit=watts device=1 source=driver
        counter id=2 name=\"memory read\" unit=bytes/s queue=1 source=sampler
        counter_value counter=1 start_ns=0 value=100
        counter_value counter=1 start_ns=5ms value=200
        counter_value counter=2 start_ns=1ms duration_ns=1ms value=1048576";
    let with = read(&format!("{HOST_BOUND}{counters}"));
    let words = words(&terminal(&with));
    let power = "power Example GPU 2 150.0 W 100.0 W 200.0 W driver";
    assert!(words.contains(power), "{words}");
    let read_rate = "memory read queue 0.0 1 1.00 MiB/s 1.00 MiB/s 1.00 MiB/s sampler";
    assert!(words.contains(read_rate), "{words}");
    let json = json_of(&with);
    assert_eq!(json["counters"][0]["mean"], 150.0);
    assert_eq!(json["counters"][0]["unit"], "watts");
    assert_eq!(json["counters"][1]["queue_id"], 1);
    assert!(json_of(&read(HOST_BOUND)).get("counters").is_none());
}

#[test]
fn conditions_are_said_with_their_times_and_what_is_usual_is_in_json_only() {
    let with = read(&format!(
        r#"{HOST_BOUND}
        manifest end_ns=9s
        unmeasured what="temperature of Example GPU" reason="NVML says: Not Supported (3)"
        counter id=1 name="machine stalled on memory (some)" unit=percent source=/proc/pressure/memory
        counter id=2 name="cgroup at memory.max" unit=count source=memory.events
        counter_value counter=1 start_ns=2s value=50
        counter_value counter=1 start_ns=4s value=0
        counter_value counter=2 start_ns=0 value=0
        counter_value counter=2 start_ns=3s value=7"#
    ));
    let page = markdown_of(&with);
    let stalled = "**Condition:** **The machine stalled on memory for 1.00 s of 2.00 s";
    assert_says(&page, stalled);
    assert_lacks(&page, "memory limit");
    assert_lacks(&page, "Not Supported");
    let json = json_of(&with);
    assert_eq!(json["conditions"][0]["kind"], "memory-stall");
    assert_eq!(json["conditions"][0]["start_ns"], 2_000_000_000i64);
    assert_eq!(json["conditions"][1]["is_usual"], true);
    assert_eq!(json["unmeasured"][0]["what"], "temperature of Example GPU");
    let info = markdown::draw(&info::document("t", &with.manifest, &[], None, &[]));
    let said = "Not measured: temperature of Example GPU: NVML says: Not Supported (3).";
    assert!(info.contains(said), "{info}");
    let without = json_of(&read(HOST_BOUND));
    assert!(without.get("conditions").is_none() && without.get("unmeasured").is_none());
}

#[test]
fn the_table_of_counters_keeps_to_its_rows_with_those_of_gpus_first() {
    let hosts: String = (10..25)
        .map(|id| format!("counter id={id} name=host{id} unit=count source=test\n"))
        .collect();
    let gpu = "counter id=1 name=power unit=watts device=1 source=driver";
    let page = markdown_of(&read(&format!("{HOST_BOUND}\n{hosts}{gpu}")));
    assert!(page.contains("| `power` | Example GPU |"), "{page}");
    assert!(!page.contains("host24"), "{page}");
    assert!(page.contains("and 6 more counters"), "{page}");
}

#[test]
fn counters_keep_their_names_beside_a_long_source() {
    let names = ["SMs active", "DRAM read", "tensor pipe active"];
    let counters: String = (names.iter().zip(1..))
        .map(|(name, id)| {
            let metric = "TPC.TriageCompute.sm__cycles_active.avg.pct_of_peak_sustained_elapsed";
            format!(
                "counter id={id} name=\"{name}\" unit=percent device=1 source=\"CUPTI PM sampling, {metric}, every 100 us\"\n\
                 counter id={} name=other{id} unit=percent device=1 source={}\n\
                 counter_value counter={id} start_ns=0 duration_ns=1ms value=100\n",
                id + 10,
                "long".repeat(30)
            )
        })
        .collect();
    let trace = read(&format!("{HOST_BOUND}\n{counters}"));
    let wide = Terminal {
        columns: 110,
        ..Terminal::default()
    };
    let page = with_report(&trace, &Options::default(), |report| {
        wide.draw(&report.document())
    });
    for name in names {
        assert!(page.contains(name), "{page}");
    }
    assert!(page.contains("CUPTI PM sampling, every"), "{page}");
}
