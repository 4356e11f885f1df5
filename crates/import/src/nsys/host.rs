//! Reads calls of CUDA, and the time that the driver and the profiler took from threads.

use super::import::{Import, thread_of};
use crate::Error;
use crate::profile::{ApiCall, CallQueue, Correlation, FunctionId, Overhead, Span};
use gapscope_model::OverheadKind;
use gapscope_trace::LossKind;
use rustc_hash::FxHashMap;

const CALLS: [&str; 6] = [
    "start",
    "end",
    "globalTid",
    "correlationId",
    "nameId",
    "returnValue",
];

impl Import {
    /// Reads the calls of CUDA's runtime and driver, and then the overheads.
    pub(super) fn read_host(&mut self) -> Result<(), Error> {
        let mut functions: FxHashMap<i64, FunctionId> = FxHashMap::default();
        let mut refused = 0;
        for table in ["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"] {
            self.scan(table, &CALLS, |import, row| {
                let Some(process) = import.process(row.integer(2)) else {
                    return;
                };
                let name = row.integer(4).unwrap_or(-1);
                let function = *functions.entry(name).or_insert_with(|| {
                    let name = import.strings.get(name);
                    import
                        .profile
                        .function(&name.unwrap_or("unknown function".into()))
                });
                let (Some(start_ns), Some(end_ns)) = (row.integer(0), row.integer(1)) else {
                    refused += 1;
                    return;
                };
                let Some(span) = Span::checked(start_ns, end_ns) else {
                    refused += 1;
                    return;
                };
                let call = ApiCall {
                    thread: row.integer(2).map(thread_of),
                    correlation: row.small(3).map(Correlation),
                    span,
                    function,
                    result: row.small(5).unwrap_or(gapscope_model::UNKNOWN_RESULT),
                    queue: CallQueue::Unknown,
                    host_functions: None,
                };
                import.profile.add_call(process, call);
            })?;
        }
        let reason = "the file has no times of them, or impossible ones";
        self.profile
            .ledger
            .add(LossKind::HostCalls, refused, reason);
        self.read_overheads()
    }

    fn read_overheads(&mut self) -> Result<(), Error> {
        let mut kinds: FxHashMap<i64, OverheadKind> = FxHashMap::default();
        self.scan("ENUM_CUPTI_OVERHEAD_TYPE", &["id", "name"], |_, row| {
            if let (Some(id), Some(name)) = (row.integer(0), row.string(1)) {
                kinds.insert(id, OverheadKind::from_tool_name(&name));
            }
        })?;
        let columns = ["start", "end", "globalTid", "overheadType"];
        let mut refused = 0;
        self.scan("CUPTI_ACTIVITY_KIND_OVERHEAD", &columns, |import, row| {
            let known = row.integer(3).and_then(|kind| kinds.get(&kind)).copied();
            let kind = known.unwrap_or(OverheadKind::Unknown);
            refused += import.overhead(row, kind, "CUPTI");
        })?;
        self.scan("PROFILER_OVERHEAD", &columns, |import, row| {
            refused += import.overhead(row, OverheadKind::Instrumentation, "Nsight Systems");
        })?;
        let reason = "the file has no times of them, or impossible ones";
        self.profile
            .ledger
            .add(LossKind::Overheads, refused, reason);
        Ok(())
    }

    /// Adds the time of an overhead. Returns 1 if the row has no times, else 0.
    fn overhead(
        &mut self,
        row: &crate::sqlite::Row,
        kind: OverheadKind,
        tool: &'static str,
    ) -> u64 {
        let Some(process) = self.process(row.integer(2)) else {
            return 0;
        };
        let (Some(start_ns), Some(end_ns)) = (row.integer(0), row.integer(1)) else {
            return 1;
        };
        let Some(span) = Span::checked(start_ns, end_ns) else {
            return 1;
        };
        let overhead = Overhead {
            thread: row.integer(2).map(thread_of),
            span,
            kind,
            tool,
        };
        self.profile.add_overhead(process, overhead);
        0
    }
}
