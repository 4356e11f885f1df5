//! Lists the saved queries, SQL for common questions, which users run by name.

use crate::{Error, Session};

/// A query with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedQuery {
    /// Name of the query.
    pub name: &'static str,
    /// The question that the query answers.
    pub meaning: &'static str,
    /// The SQL, in which `{by}` stands for the columns that tell traces apart, each with a comma.
    sql: &'static str,
}

/// All saved queries.
pub const ALL: [SavedQuery; 10] = [
    SavedQuery {
        name: "kernels",
        meaning: "the kernels by the sum of their dispatches' times",
        sql: "\
select {by}kernel_name, count(*) as dispatches, sum(duration_ns) / 1e6 as total_ms, avg(duration_ns) / 1e3 as mean_us,
  max(duration_ns) / 1e3 as longest_us, count(*) - count(duration_ns) as without_time
from dispatches group by {by}kernel_name order by total_ms desc nulls last limit 20",
    },
    SavedQuery {
        name: "limits",
        meaning: "what limits each kernel, the time that reaching the limit would save at most, and its hardware counters",
        sql: "\
select {by}kernel_name, max(busy_ns) / 1e6 as busy_ms, max(winnable_ns) / 1e6 as winnable_ms, max(\"limit\") as limited,
  max(limited_by) as by_unit, max(reached) as reached, max(covered_share) as covered,
  max(mean) filter (where counter = 'DRAM read') / 1e9 as dram_read_gb_per_s,
  max(mean) filter (where counter = 'DRAM written') / 1e9 as dram_written_gb_per_s,
  max(mean) filter (where counter = 'tensor pipe active') as tensor_percent,
  max(mean) filter (where counter = 'FMA pipe active') as fma_percent,
  max(mean) filter (where counter = 'SMs active') as sms_percent
from kernel_counters group by {by}kernel_name order by winnable_ms desc nulls last, busy_ms desc nulls last limit 20",
    },
    SavedQuery {
        name: "labels",
        meaning: "the labels by the sum of the times of the dispatches under them",
        sql: "\
select {by}label_path, count(*) as dispatches, sum(duration_ns) / 1e6 as total_ms, count(*) - count(duration_ns) as without_time
from dispatches group by {by}label_path order by total_ms desc nulls last limit 20",
    },
    SavedQuery {
        name: "command-buffers",
        meaning: "the slowest command buffers",
        sql: "\
select {by}id, queue_name, coalesce(name, label_path) as name, start_ns, duration_ns / 1e3 as us, dispatches, transfers
from command_buffers where duration_ns is not null order by duration_ns desc limit 20",
    },
    SavedQuery {
        name: "transfers",
        meaning: "bytes moved, by kind; a rate where bytes and times are known",
        sql: "\
select {by}kind, count(*) as transfers, sum(bytes) as bytes, sum(duration_ns) / 1e6 as total_ms,
  sum(bytes) filter (where duration_ns > 0) * 1.0 / sum(duration_ns) filter (where bytes is not null) as gb_per_s
from transfers group by {by}kind order by bytes desc nulls last",
    },
    SavedQuery {
        name: "host-calls",
        meaning: "host calls by the time inside them",
        sql: "\
select {by}call, sum(count) as calls, sum(busy_ns) / 1e6 as busy_ms, max(busy_ns) / 1e3 as longest_us, sum(bytes) as bytes
from host_calls group by {by}call order by busy_ms desc",
    },
    SavedQuery {
        name: "busy",
        meaning: "how long each device ran something and nothing, between its first and its last work",
        sql: "\
select {by}device_name, span_ns / 1e6 as span_ms, busy_ns / 1e6 as busy_ms, (span_ns - busy_ns) / 1e6 as idle_ms,
  round(100.0 * (span_ns - busy_ns) / nullif(span_ns, 0), 1) as idle_percent
from (select *, end_ns - start_ns as span_ns from device_activity) as a order by idle_ms desc",
    },
    SavedQuery {
        name: "code",
        meaning: "the code that the submitting threads ran while a device was idle, by cause; about how long, from their samples",
        // Only gaps and samples of the same 5 ms are compared: comparing all pairs would take too long in a long
        // recording.
        sql: "\
with of_thread as (
  select trace as of_trace, process as of_process, thread as of_thread, time_ns, time_ns / 5000000 as of_slot, period_ns, code
  from samples where source = 'sampled'),
idle as (
  select *, unnest(range(start_ns / 5000000, (start_ns + duration_ns) / 5000000 + 1)) as slot from gaps where not warm_up)
select {by}cause, coalesce(code, 'unknown code') as code, count(*) as samples, sum(period_ns) / 1e6 as about_ms
from idle join of_thread on of_trace = trace and of_process = process and of_thread = thread and of_slot = slot
  and time_ns >= start_ns and time_ns < start_ns + duration_ns
group by {by}cause, code order by samples desc, cause, code limit 20",
    },
    SavedQuery {
        name: "ranks",
        meaning: "what each trace and process ran, and how far it is behind the one that ended its work first",
        sql: "\
select {by}p.pid, pieces, work_ns / 1e6 as work_ms, span_ns / 1e6 as span_ms,
  (span_ns - min(span_ns) over ()) / 1e6 as behind_ms
from (select *, end_ns - start_ns as span_ns from process_activity) as a
left join (select trace as of_trace, id, pid from processes) as p on p.of_trace = a.trace and p.id = a.process
order by behind_ms desc",
    },
    SavedQuery {
        name: "slow-ranks",
        meaning: "the kernels of each trace against their median over all traces, and the time that it is behind by them",
        sql: "\
with each as (
  select {by}coalesce(kernel_full_name, kernel_name) as kernel, count(*) as dispatches, avg(duration_ns) as mean_ns
  from dispatches where duration_ns is not null group by {by}coalesce(kernel_full_name, kernel_name)),
usual as (select kernel as of_kernel, median(mean_ns) as usual_ns from each group by kernel)
select {by}kernel, dispatches, mean_ns / 1e3 as mean_us, usual_ns / 1e3 as usual_us, round(mean_ns / usual_ns, 3) as ratio,
  (mean_ns - usual_ns) * dispatches / 1e6 as behind_ms
from each join usual on of_kernel = kernel order by behind_ms desc limit 20",
    },
];

impl Session {
    /// Returns the SQL of a saved query.
    ///
    /// # Errors
    /// There is no saved query of that name.
    pub fn saved(&self, name: &str) -> Result<String, Error> {
        let saved = ALL.iter().find(|saved| saved.name == name);
        let saved = saved.ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|saved| saved.name).collect();
            Error::NoSaved {
                name: name.to_owned(),
                known: names.join(", "),
            }
        })?;
        Ok(self.sql_of(saved))
    }

    /// Returns the SQL of a saved query for these traces. With several traces, `{by}` becomes `trace` and the columns
    /// of folders (`NAME=VALUE` in a trace's path) that every table has under the same name; with one trace, nothing.
    pub(crate) fn sql_of(&self, saved: &SavedQuery) -> String {
        let mut by = String::new();
        if self.traces().sources.len() > 1 {
            by.push_str("trace, ");
            for partition in self.traces().partitions.iter() {
                // These must have the same name in every table.
                let name = partition.name.as_str();
                let mut tables = self.tables.iter();
                if tables.all(|table| table.column(name).is_some()) && !self.is_own_column(name) {
                    by.push_str(&format!("\"{}\", ", name.replace('"', "\"\"")));
                }
            }
        }
        saved.sql.replace("{by}", &by)
    }

    /// Returns true where a table has a column of this name itself, so that the folder's is called `folder_NAME`.
    fn is_own_column(&self, name: &str) -> bool {
        let folder = format!("folder_{name}");
        let mut tables = self.tables.iter();
        tables.any(|table| table.column(&folder).is_some())
    }
}
