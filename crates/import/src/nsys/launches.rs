//! Reads the launches of GPU work of an export, by thread, without the rest of it.

use super::import::Import;
use crate::offset::Launch;
use crate::profile::Span;
use crate::sqlite::Database;
use crate::{Error, Options};
use gapscope_model::SubmissionKind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::Path;

/// The launches of an export.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExportLaunches {
    /// The wall-clock time of the clock's zero, in nanoseconds since 1970; `None` if the file does not say it.
    pub zero_unix_ns: Option<i64>,
    /// The launches by pid and thread id, in order of time.
    pub threads: BTreeMap<(u32, u32), Vec<Launch>>,
}

/// Reads the launches of kernels and graphs.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn launches(path: &Path, options: &Options) -> Result<ExportLaunches, Error> {
    let mut import = Import::new(Database::open(path)?, options);
    import.read_strings()?;
    let zero_unix_ns = import.read_about()?;
    import.read_host()?;
    let pids: FxHashMap<_, _> = import.profile.inventory.processes().collect();
    let recorded = &import.profile.recorded;
    let mut threads: BTreeMap<(u32, u32), Vec<Launch>> = BTreeMap::new();
    for (process, call) in &recorded.calls {
        let function = &recorded.functions[call.function.0 as usize];
        let kind = function.class.submission_kind();
        let launches = matches!(kind, Some(SubmissionKind::Kernel | SubmissionKind::Graph));
        let (Some(thread), Some(pid), true) = (call.thread, pids.get(process), launches) else {
            continue;
        };
        let launch = Launch {
            span: call.span,
            function: function.name.clone(),
        };
        threads.entry((*pid, thread.0)).or_default().push(launch);
    }
    for launches in threads.values_mut() {
        launches.sort_by_key(|launch| (launch.span.start_ns, -launch.span.duration_ns));
        // The runtime's functions call the driver's.
        let mut last: Option<Span> = None;
        launches.retain(|launch| {
            let is_inner = last.is_some_and(|last| launch.span.end_ns() <= last.end_ns());
            last = if is_inner { last } else { Some(launch.span) };
            !is_inner
        });
    }
    Ok(ExportLaunches {
        zero_unix_ns,
        threads,
    })
}
