//! Saved queries for the usual questions.

use crate::{Error, Session};

/// A query with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// Its name.
    pub name: &'static str,
    /// What it answers.
    pub meaning: &'static str,
    /// `{by}` stands for the columns that tell traces apart, each with a comma.
    sql: &'static str,
}

/// Pieces of GPU work with the physical device that ran them; command buffers where nothing smaller was timed.
macro_rules! work {
    () => {
        "\
with timed as (
  select trace, queue, start_ns, start_ns + duration_ns as end_ns from dispatches
  union all select trace, queue, start_ns, start_ns + duration_ns from transfers
  union all select trace, queue, start_ns, start_ns + duration_ns from opaque_work
  union all select c.trace, c.queue, c.start_ns, c.start_ns + c.duration_ns
    from command_buffers c join traces t on t.trace = c.trace where t.sampling_mode = 'command-buffer'
), work as (
  select w.trace, d.uuid, d.name as device_name, d.process, w.start_ns, w.end_ns
  from timed w
  join queues q on q.trace = w.trace and q.id = w.queue
  join devices d on d.trace = q.trace and d.id = q.device
  where w.end_ns is not null
)"
    };
}

/// All of them.
pub const ALL: [Saved; 7] = [
    Saved {
        name: "kernels",
        meaning: "the kernels by the sum of their dispatches' times",
        sql: "\
select {by}kernel_name, count(*) as dispatches, sum(duration_ns) / 1e6 as total_ms, avg(duration_ns) / 1e3 as mean_us,
  max(duration_ns) / 1e3 as longest_us, count(*) - count(duration_ns) as without_time
from dispatches group by {by}kernel_name order by total_ms desc nulls last limit 20",
    },
    Saved {
        name: "labels",
        meaning: "the labels by the sum of the times of the dispatches under them",
        sql: "\
select {by}label_path, count(*) as dispatches, sum(duration_ns) / 1e6 as total_ms, count(*) - count(duration_ns) as without_time
from dispatches group by {by}label_path order by total_ms desc nulls last limit 20",
    },
    Saved {
        name: "command-buffers",
        meaning: "the slowest command buffers",
        sql: "\
select {by}id, queue_name, coalesce(name, label_path) as name, start_ns, duration_ns / 1e3 as us, dispatches, transfers
from command_buffers where duration_ns is not null order by duration_ns desc limit 20",
    },
    Saved {
        name: "transfers",
        meaning: "bytes moved, by kind; a rate where bytes and times are known",
        sql: "\
select {by}kind, count(*) as transfers, sum(bytes) as bytes, sum(duration_ns) / 1e6 as total_ms,
  sum(bytes) filter (where duration_ns > 0) * 1.0 / sum(duration_ns) filter (where bytes is not null) as gb_per_s
from transfers group by {by}kind order by bytes desc nulls last",
    },
    Saved {
        name: "host-calls",
        meaning: "host calls by the time inside them",
        sql: "\
select {by}call, sum(count) as calls, sum(busy_ns) / 1e6 as busy_ms, max(busy_ns) / 1e3 as longest_us, sum(bytes) as bytes
from host_calls group by {by}call order by busy_ms desc",
    },
    Saved {
        name: "busy",
        meaning: "how long each device ran something and nothing, between its first and its last work",
        sql: concat!(
            work!(),
            ", runs as (
  select *, max(end_ns) over (
    partition by trace, uuid order by start_ns rows between unbounded preceding and 1 preceding) as before_ns
  from work
), devices_of as (
  select trace, uuid, max(device_name) as device_name, (max(end_ns) - min(start_ns)) / 1e6 as span_ms,
    coalesce(sum(start_ns - before_ns) filter (where start_ns > before_ns), 0) / 1e6 as idle_ms
  from runs group by trace, uuid
)
select {by}device_name, span_ms, round(span_ms - idle_ms, 6) as busy_ms, idle_ms,
  round(100 * idle_ms / span_ms, 1) as idle_percent
from devices_of r join traces t using (trace) order by idle_ms desc"
        ),
    },
    Saved {
        name: "ranks",
        meaning: "what each trace and process ran, and how far it is behind the one that ended its work first",
        sql: concat!(
            work!(),
            ", of_process as (
  select trace, process, count(*) as pieces, sum(end_ns - start_ns) / 1e6 as work_ms,
    (max(end_ns) - min(start_ns)) / 1e6 as span_ms
  from work group by trace, process
)
select {by}p.pid, r.pieces, r.work_ms, r.span_ms, round(r.span_ms - min(r.span_ms) over (), 6) as behind_ms
from of_process r join traces t using (trace)
left join (select trace as of_trace, id, pid from processes) p on p.of_trace = r.trace and p.id = r.process order by behind_ms desc"
        ),
    },
];

impl Session {
    /// The SQL of a saved query.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn saved(&self, name: &str) -> Result<String, Error> {
        let saved = ALL.iter().find(|saved| saved.name == name);
        let saved = saved.ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|saved| saved.name).collect();
            Error::NoSaved {
                name: name.to_owned(),
                known: names.join(", "),
            }
        })?;
        let mut by = String::new();
        if self.traces().sources.len() > 1 {
            by.push_str("trace, ");
            for partition in self.traces().partitions.iter() {
                // Only those that every table has under the same name.
                let name = partition.name.as_str();
                let common =
                    |t: &std::sync::Arc<crate::schema::TableFacts>| t.column(name).is_some();
                if self.tables.iter().all(common) && !self.is_own_column(name) {
                    by.push_str(&format!("\"{}\", ", name.replace('"', "\"\"")));
                }
            }
        }
        Ok(saved.sql.replace("{by}", &by))
    }

    fn is_own_column(&self, name: &str) -> bool {
        let folder = format!("folder_{name}");
        self.tables
            .iter()
            .any(|table| table.column(&folder).is_some())
    }
}
