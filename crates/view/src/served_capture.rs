//! Serves a capture (a recording of the commands and memory of some submissions): its overview, and the dependencies
//! between its commands.

use crate::Error;
use crate::dependencies::{DependenciesPart, MAX_DEPENDENCY_NODES};
use crate::protocol::{
    CaptureOverview, CapturedDevice, CapturedKernel, Dependencies, DependencySubmission, Overview,
};
use crate::texts::cut;
use gapscope_capture::model::{Command, EndReason, PipelineId, Submission};
use gapscope_capture::{Capture, RECORDS};
use gapscope_dependencies::{Dependencies as FoundDependencies, Limits};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The most kernels that are listed.
const MAX_LISTED_KERNELS: usize = 2_000;

/// A capture that is served.
pub struct ServedCapture {
    name: String,
    capture: Capture,
    /// Sentences about reading the capture.
    remarks: Vec<String>,
    /// The dependencies; empty until they have been analysed, `None` where that failed.
    found: OnceLock<Option<FoundDependencies>>,
}

/// Returns true when a folder holds a capture.
pub fn is_capture(folder: &Path) -> bool {
    folder.join(RECORDS).exists()
}

impl ServedCapture {
    /// Opens a capture, and starts to analyse its dependencies.
    ///
    /// # Errors
    /// The capture cannot be opened.
    pub fn open(folder: &Path, name: String) -> Result<Arc<ServedCapture>, Error> {
        let (capture, problem) =
            Capture::open(folder).map_err(|error| Error::Capture(error.to_string()))?;
        let mut remarks: Vec<String> = problem
            .iter()
            .map(|problem| sentence(&problem.to_string()))
            .collect();
        match capture.end.as_ref().map(|end| &end.reason) {
            None if problem.is_none() => {
                remarks.push("The capture was cut off: it is shown as far as it goes.".to_owned());
            }
            Some(EndReason::Refused(reason)) => {
                remarks.push(format!(
                    "The window ended before what cannot be captured right: {reason}"
                ));
            }
            Some(EndReason::Failed(reason)) => {
                remarks.push(format!("The window ended early: {reason}"))
            }
            _ => {}
        }
        let captured = Arc::new(ServedCapture {
            name,
            capture,
            remarks,
            found: OnceLock::new(),
        });
        let looking = captured.clone();
        std::thread::spawn(move || {
            let _ = looking.found();
        });
        Ok(captured)
    }

    /// Returns the dependencies, and waits for their analysis where it is not over.
    fn found(&self) -> Option<&FoundDependencies> {
        let find = || {
            catch_unwind(AssertUnwindSafe(|| {
                FoundDependencies::from_capture(&self.capture, Limits::default(), &mut |_| {})
            }))
        };
        self.found.get_or_init(|| find().ok()).as_ref()
    }

    /// Makes the overview.
    pub fn overview(&self) -> Overview {
        let ServedCapture { capture, .. } = self;
        let header = &capture.header;
        let device = &header.device;
        let (mut dispatches, mut transfers, mut barriers) = (0u64, 0u64, 0u64);
        let mut runs: HashMap<PipelineId, u64> = HashMap::new();
        for command in capture.executed() {
            match command {
                Command::Dispatch(dispatch) => {
                    dispatches += 1;
                    *runs.entry(dispatch.pipeline).or_default() += 1;
                }
                Command::Copy(_) | Command::Fill(_) | Command::Update(_) => transfers += 1,
                Command::Barrier(_) => barriers += 1,
                Command::Label(_) => {}
            }
        }
        let kernels = capture
            .pipelines
            .values()
            .take(MAX_LISTED_KERNELS)
            .map(|pipeline| {
                let code = capture
                    .modules
                    .get(&pipeline.module)
                    .map(|module| module.code);
                CapturedKernel {
                    name: cut(&pipeline.name),
                    entry: cut(&pipeline.entry),
                    dispatch_count: runs.get(&pipeline.id).copied().unwrap_or(0),
                    constant_count: pipeline.constants.len(),
                    required_subgroup_size: pipeline.required_subgroup_size,
                    code_bytes: code.and_then(|code| capture.chunk_bytes(code)),
                    code: code.map(|code| code.to_string()),
                }
            });
        let command: Vec<String> = header.command.iter().map(|word| cut(word)).collect();
        let end = capture.end.as_ref();
        let buffers = capture.buffers.values().map(|buffer| buffer.bytes);
        let capture = CaptureOverview {
            name: self.name.clone(),
            gapscope: cut(&header.gapscope),
            command: command.join(" "),
            process: header.pid,
            window: cut(&header.window),
            started_unix_ns: header.started_unix_ns.to_string(),
            device: CapturedDevice {
                name: cut(&device.name),
                driver: cut(&device.driver),
                subgroup_size: device.subgroup_size,
            },
            end: end.map(|end| match &end.reason {
                EndReason::Complete => "complete",
                EndReason::ProgramEnded => "the program ended",
                EndReason::Refused(_) => "refused",
                EndReason::Failed(_) => "failed",
            }),
            window_ns: end.map(|end| end.after_ns.to_string()),
            submission_count: capture.submission_count(),
            dispatch_count: dispatches,
            transfer_count: transfers,
            barrier_count: barriers,
            buffer_count: capture.buffers.len(),
            buffer_bytes: buffers.fold(0, u64::saturating_add).to_string(),
            kernel_count: capture.pipelines.len(),
            kernels: kernels.collect(),
            remarks: self.remarks.iter().map(|remark| cut(remark)).collect(),
        };
        Overview {
            capture: Some(capture),
            ..Overview::new(Vec::new(), None, None)
        }
    }

    /// Returns a part of the dependencies, from node `first` on.
    ///
    /// # Errors
    /// The analysis of dependencies failed.
    pub fn dependencies(&self, first: usize) -> Result<Dependencies, Error> {
        let found = self.found().ok_or(Error::Analysis)?;
        let count = found.graph.nodes.len();
        let first = first.min(count);
        let submissions: Vec<&Submission> = self.capture.submissions().collect();
        let part = DependenciesPart {
            found,
            nodes: first..count.min(first.saturating_add(MAX_DEPENDENCY_NODES)),
            before: 0,
            count,
            place: &|_| None,
            submission: &|number| {
                let submission = submissions.get(number);
                let device_ns = submission.and_then(|submission| submission.device_ns);
                DependencySubmission {
                    number,
                    name: None,
                    queue: submission.map(|submission| format!("queue {}", submission.queue)),
                    called_ns: submission.map(|submission| submission.called_ns.to_string()),
                    device_ns: device_ns.map(|ns| ns.to_string()),
                }
            },
            remarks: Vec::new(),
        };
        Ok(part.answer())
    }
}

/// Returns the text of a problem with a full stop at its end.
fn sentence(problem: &str) -> String {
    match problem.ends_with('.') {
        true => problem.to_owned(),
        false => format!("{problem}."),
    }
}
