//! Reads calls of CUDA, and the time that the driver and the profiler took from threads (overheads), into the
//! profile.

use super::import::Import;
use crate::Error;
use crate::profile::{ApiCall, CallQueue, Correlation, FunctionId, Overhead};
use gapscope_model::OverheadKind;
use gapscope_trace::LossKind;
use rustc_hash::FxHashMap;

impl Import {
    /// Reads the calls of CUDA's runtime and driver, and then the overheads.
    pub(super) fn read_host(&mut self) -> Result<(), Error> {
        let mut functions: FxHashMap<i64, FunctionId> = FxHashMap::default();
        let columns = ["correlationId", "nameId", "returnValue"];
        for table in ["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"] {
            let table = (table, LossKind::HostCalls);
            self.scan_spans(table, &columns, |import, row, (process, thread, span)| {
                let name = row.integer(4).unwrap_or(-1);
                let function = *functions.entry(name).or_insert_with(|| {
                    let text = import.strings.get(name).filter(|text| !text.is_empty());
                    match text {
                        Some(text) => import.profile.function(&text),
                        None => {
                            let name = format!("unknown function {name}");
                            let function = import.profile.function(&name);
                            import.unnamed.functions.insert(function);
                            function
                        }
                    }
                });
                let call = ApiCall {
                    thread,
                    correlation: row.small(3).map(Correlation),
                    span,
                    function,
                    result: row.small(5).unwrap_or(gapscope_model::UNKNOWN_RESULT),
                    queue: CallQueue::Unknown,
                    host_functions: None,
                    graph: None,
                };
                import.profile.recorded.calls.push((process, call));
            })?;
        }
        self.read_overheads()
    }

    /// Reads the overheads of CUPTI, by the names of their kinds, and of nsys, which are all instrumentation.
    fn read_overheads(&mut self) -> Result<(), Error> {
        let mut kinds: FxHashMap<i64, OverheadKind> = FxHashMap::default();
        self.scan("ENUM_CUPTI_OVERHEAD_TYPE", &["id", "name"], |_, row| {
            if let (Some(id), Some(name)) = (row.integer(0), row.string(1)) {
                kinds.insert(id, OverheadKind::from_tool_name(&name));
            }
        })?;
        let tables = [
            ("CUPTI_ACTIVITY_KIND_OVERHEAD", "CUPTI"),
            ("PROFILER_OVERHEAD", "Nsight Systems"),
        ];
        for (table, tool) in tables {
            let table = (table, LossKind::Overheads);
            self.scan_spans(table, &["overheadType"], |import, row, place| {
                let (process, thread, span) = place;
                let known = row.integer(3).and_then(|kind| kinds.get(&kind)).copied();
                let overhead = Overhead {
                    thread,
                    span,
                    kind: match tool {
                        "CUPTI" => known.unwrap_or(OverheadKind::Unknown),
                        _ => OverheadKind::Instrumentation,
                    },
                    tool,
                };
                import.profile.recorded.overheads.push((process, overhead));
            })?;
        }
        Ok(())
    }
}
