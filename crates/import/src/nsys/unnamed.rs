//! Says what functions do whose names an export lacks, as exports do whose table of texts (`StringIds`) is missing or damaged: by the work
//! and the waits that have the correlations of their calls. The calls and the work of a profile go in; the functions get their classes, so
//! that launches without work are counted, and the losses say how much has no name.

use super::import::Import;
use crate::Error;
use crate::profile::{ApiCall, Correlation, DeviceWorkKind, FunctionId};
use gapscope_model::LossKind;
use gapscope_model::cuda::FunctionClass;
use gapscope_trace::ids::ProcessId;
use rustc_hash::FxHashMap;

/// The reason of losses of names.
pub(super) const NO_TEXTS: &str = "the export lacks their texts (table StringIds)";

/// What the work of calls says of their functions: how often each class fits.
type Votes = FxHashMap<FunctionId, Vec<(FunctionClass, u64)>>;

/// The functions of calls by process and correlation.
type Called = FxHashMap<(ProcessId, Correlation), FunctionId>;

impl Import {
    /// Gives functions without names their classes, and counts what has no name.
    pub(super) fn classify_unnamed(&mut self) -> Result<(), Error> {
        let unnamed = std::mem::take(&mut self.unnamed);
        let calls = &self.profile.recorded.calls;
        let is_unnamed =
            |(_, call): &&(ProcessId, ApiCall)| unnamed.functions.contains(&call.function);
        let calls: Vec<&(ProcessId, ApiCall)> = calls.iter().filter(is_unnamed).collect();
        let count = calls.len() as u64;
        let called: Called = (calls.iter())
            .filter_map(|(process, call)| Some(((*process, call.correlation?), call.function)))
            .collect();
        let inventory = &mut self.profile.inventory;
        inventory.lose("names of host calls", count, NO_TEXTS);
        inventory.lose(LossKind::DispatchKernels, unnamed.kernels, NO_TEXTS);
        inventory.lose("names of labels", unnamed.labels, NO_TEXTS);
        if called.is_empty() {
            return Ok(());
        }
        let mut votes = Votes::default();
        for (process, correlation, work) in &self.profile.recorded.work {
            let class = match work.kind {
                _ if work.of_graph => FunctionClass::LaunchGraph,
                DeviceWorkKind::Kernel { .. } => FunctionClass::LaunchKernel,
                DeviceWorkKind::Transfer { .. } => FunctionClass::Transfer,
                DeviceWorkKind::Graph => FunctionClass::LaunchGraph,
                DeviceWorkKind::PageMove { .. } => continue,
            };
            let call = correlation.and_then(|id| called.get(&(*process, id)));
            call.into_iter()
                .for_each(|call| vote(&mut votes, *call, class));
        }
        let columns = ["globalPid", "correlationId", "syncType"];
        self.scan(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            &columns,
            |import, row| {
                // The numbers of kinds of waits, as `device.rs` has them.
                let class = match row.integer(2) {
                    Some(1) => FunctionClass::WaitEvent,
                    Some(2) => FunctionClass::StreamWaitEvent,
                    Some(3) => FunctionClass::WaitStream,
                    Some(4) => FunctionClass::WaitContext,
                    _ => return,
                };
                let process = import.process(row.integer(0));
                let key = process.zip(row.small(1).map(Correlation));
                let call = key.and_then(|key| called.get(&key));
                call.into_iter()
                    .for_each(|call| vote(&mut votes, *call, class));
            },
        )?;
        for (function, votes) in votes {
            let most = votes.iter().max_by_key(|(_, count)| *count);
            let functions = &mut self.profile.recorded.functions;
            if let (Some((class, _)), Some(function)) =
                (most, functions.get_mut(function.0 as usize))
            {
                function.class = *class;
            }
        }
        Ok(())
    }
}

/// Counts that a class fits a function.
fn vote(votes: &mut Votes, function: FunctionId, class: FunctionClass) {
    let votes = votes.entry(function).or_default();
    match votes.iter_mut().find(|(of, _)| *of == class) {
        Some((_, count)) => *count += 1,
        None => votes.push((class, 1)),
    }
}
