//! Measures what a dispatch costs without and with recording: on the CPU in `vkCmdDispatch`, and on lavapipe (Mesa's
//! software GPU) also during the run of the dispatch.

use anyhow::Result;

use super::runs::{Driver, VARIANTS, Variant, number, planted};
use super::samples::Samples;

const DISPATCHES: u32 = 5000;

/// A row of the table: a way to run `planted bench`, and its times.
struct Row {
    name: String,
    variant: Variant,
    /// Further arguments of `planted bench`.
    flags: &'static str,
    /// The time of the call on lavapipe and on the null driver.
    record_ns: [Samples; 2],
    run_us: Samples,
}

/// Returns the table; the null driver, which does nothing, runs more iterations, because they are short.
pub fn measure(repetitions: u32) -> Result<String> {
    let mut rows = Vec::new();
    for (suffix, flags) in [("", ""), (", set bound each time", " --bind")] {
        for variant in VARIANTS {
            rows.push(row(format!("{}{suffix}", variant.name()), variant, flags));
        }
    }
    rows.insert(
        1,
        row(
            "no layer, the program's own two timestamps".into(),
            Variant::Alone,
            " --timestamps",
        ),
    );
    for _ in 0..repetitions {
        for row in &mut rows {
            for (driver, record_ns) in [Driver::Lavapipe, Driver::Null]
                .into_iter()
                .zip(&mut row.record_ns)
            {
                let iterations = if driver == Driver::Null { 40 } else { 6 };
                let arguments = format!(
                    "bench --n {DISPATCHES} --iterations {iterations} --groups 1 --spin 0{}",
                    row.flags
                );
                let line = planted(row.variant, driver, &arguments)?;
                record_ns.push(number(&line, "record_ns_per_dispatch")?);
                if driver == Driver::Lavapipe {
                    row.run_us
                        .push(number(&line, "submit_to_fence_ns")? / 1e3 / f64::from(DISPATCHES));
                }
            }
        }
    }
    let mut table = String::from(
        "| | `vkCmdDispatch` on lavapipe, ns | on the null driver, ns | execution of a tiny dispatch on lavapipe, µs |\n\
         |---|---|---|---|\n",
    );
    for row in &rows {
        let [lavapipe, null] = &row.record_ns;
        table += &format!(
            "| {} | {} | {} | {} |\n",
            row.name,
            lavapipe.shown(1),
            null.shown(1),
            row.run_us.shown(1)
        );
    }
    Ok(table)
}

fn row(name: String, variant: Variant, flags: &'static str) -> Row {
    Row {
        name,
        variant,
        flags,
        record_ns: Default::default(),
        run_us: Samples::default(),
    }
}
