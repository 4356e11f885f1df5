//! Runs the examples of `docs/query.md`.

use crate::{TEXT, TestFolder, csv};
use gapscope_query::saved;
use gapscope_trace::Trace;
use gapscope_trace::synthetic::Synthetic;

const PAGE: &str = include_str!("../../../../docs/query.md");

#[test]
fn every_example_runs() {
    let folder = TestFolder::new();
    for seed in 0..2 {
        let of = Synthetic {
            dispatches: 5_000,
            seed,
            ..Synthetic::default()
        };
        let mut trace = of.trace();
        let counters = "counter id=1 name=clock unit=hertz source=driver
            counter_value counter=1 start_ns=0 value=1.5";
        let counters = Trace::from_text(counters).unwrap().tables;
        trace.tables.counters = counters.counters;
        trace.tables.counter_values = counters.counter_values;
        let memory = "allocator_row process=1 device=1 kind=block address=4096 bytes=512";
        trace.tables.allocator_memory = Trace::from_text(memory).unwrap().tables.allocator_memory;
        folder.write(&format!("runs/rank={seed}"), trace);
    }
    let session = folder.session(&["runs/rank=*"]);
    let mut examples = 0;
    for block in PAGE.split("```sql\n").skip(1) {
        let sql = block.split("```").next().unwrap();
        let answer = csv(&session, sql);
        let rows = answer.lines().count() - 1;
        assert!(rows > 0 || sql.contains("losses"), "{sql}\n{answer}");
        examples += 1;
    }
    assert_eq!(examples, 9);
}

#[test]
fn every_saved_query_is_listed() {
    for saved in saved::ALL {
        let row = format!("| `{}` | {} |", saved.name, saved.meaning);
        assert!(PAGE.contains(&row), "{row}");
    }
}

#[test]
fn the_columns_of_names_are_listed() {
    let folder = TestFolder::new();
    folder.trace("t.gapscope", TEXT);
    let session = folder.session(&["t.gapscope"]);
    let schema = session.schema(Some("dispatches")).unwrap();
    for name in ["kernel_name", "label_path", "queue_name", "device_name"] {
        assert!(PAGE.contains(&format!("`{name}`")) && schema.contains(name));
    }
}
