//! Reads the metrics that nsys sampled on GPUs, which become counters.

use super::import::Import;
use crate::Error;
use crate::output::NewTrace;
use gapscope_trace::ids::CounterId;
use gapscope_trace::tables::{Counter, CounterUnit, CounterValue, Table};
use rustc_hash::FxHashMap;

impl Import {
    /// Writes metrics as counters at once. Versions of nsys name the device of a metric in different ways, so that a
    /// metric of several GPUs becomes several counters without a device, one for each source (`typeId`).
    pub(super) fn read_metrics(&mut self, new: &mut NewTrace) -> Result<(), Error> {
        let mut names: FxHashMap<(i64, i64), String> = FxHashMap::default();
        let columns = ["typeId", "metricId", "metricName"];
        self.scan("TARGET_INFO_GPU_METRICS", &columns, |_, row| {
            if let (Some(of), Some(metric), Some(name)) =
                (row.integer(0), row.integer(1), row.string(2))
            {
                names.insert((of, metric), name);
            }
        })?;
        let mut ids: FxHashMap<(i64, i64), (CounterId, f64)> = FxHashMap::default();
        let mut refused = 0;
        let mut failed = None;
        let columns = ["timestamp", "typeId", "metricId", "value"];
        self.scan("GPU_METRICS", &columns, |import, row| {
            let (Some(at_ns), Some(of), Some(metric), Some(value)) =
                (row.integer(0), row.integer(1), row.integer(2), row.real(3))
            else {
                refused += 1;
                return;
            };
            let fresh = CounterId(ids.len() as u32);
            let (counter, factor) = *ids.entry((of, metric)).or_insert_with(|| {
                let unnamed = format!("metric {metric}");
                let name = names.get(&(of, metric)).unwrap_or(&unnamed);
                let (name, unit, factor) = unit_of(name);
                new.tables_mut().counters.push(Counter {
                    id: fresh,
                    name: name.into(),
                    unit,
                    device: None,
                    queue: None,
                    source: format!("Nsight Systems, GPU metrics of source {of}").into(),
                });
                (fresh, factor)
            });
            new.tables_mut().counter_values.push(CounterValue {
                counter,
                start_ns: at_ns.saturating_add(import.shift_ns),
                duration_ns: None,
                value: value * factor,
            });
            if let Err(error) = new.flush() {
                failed.get_or_insert(error);
            }
        })?;
        let reason = "the file has no time or value of them";
        let inventory = &mut self.profile.inventory;
        inventory.lose("rows of GPU_METRICS", refused, reason);
        failed.map_or(Ok(()), Err)
    }
}

/// Splits a metric's name, such as `SMs Active [Throughput %]`, into the name and the unit in brackets, and returns
/// also the factor that converts its values to the unit. Units that traces do not have stay in the name.
fn unit_of(name: &str) -> (&str, CounterUnit, f64) {
    let Some((bare, unit)) = name
        .trim_end()
        .strip_suffix(']')
        .and_then(|name| name.rsplit_once(" ["))
    else {
        return (name, CounterUnit::Count, 1.0);
    };
    match unit {
        "MHz" => (bare, CounterUnit::Hertz, 1e6),
        "Hz" => (bare, CounterUnit::Hertz, 1.0),
        unit if unit.ends_with('%') => (bare, CounterUnit::Percent, 1.0),
        _ => (name, CounterUnit::Count, 1.0),
    }
}
