//! Checks before anything runs whether a device can run a capture (recorded GPU work of a program): a capture and an
//! adapter (a device that is not opened yet) go in, the features and extensions to enable come out, or all reasons
//! why the device does not fit.

mod dispatch;
pub mod kernel;

use std::collections::{BTreeMap, BTreeSet};

use gapscope_capture::Capture;
use gapscope_capture::model::{Command, PipelineId};

use crate::adapter::Adapter;
use crate::error::{Error, Unfit};
use crate::program::Program;
use crate::regions::Regions;
use crate::shader::Shader;

/// Beyond this number of reasons no further dispatches are checked.
const MAX_UNFIT: usize = 100;

/// The features and extensions that a capture needs on a device that fits, and its shaders.
#[derive(Debug, Default)]
pub struct DeviceNeeds {
    /// Features to enable.
    pub features: BTreeSet<&'static str>,
    /// Extensions to enable, beside those that the features belong to.
    pub extensions: BTreeSet<String>,
    /// Shaders of the pipelines that run.
    pub shaders: BTreeMap<PipelineId, Shader>,
    /// Why results may differ on this device.
    pub notes: Vec<String>,
}

/// Checks all that `program` runs of a capture. With `robust`, accesses shall be kept inside of buffers.
///
/// # Errors
/// The device lacks features, limits or extensions, which are listed by kernel; or content is damaged.
pub fn check(
    capture: &Capture,
    program: &Program<'_>,
    regions: &Regions,
    adapter: &Adapter,
    robust: bool,
) -> Result<DeviceNeeds, Error> {
    let mut asked = DeviceCheck {
        capture,
        adapter,
        needs: DeviceNeeds::default(),
        unfit: BTreeSet::new(),
        checked_kernel: None,
    };
    asked.memory(regions);
    asked.need_feature("synchronization2");
    asked.as_captured(robust);
    let pipelines: BTreeSet<PipelineId> = program.dispatched().map(|(_, d)| d.pipeline).collect();
    for id in pipelines {
        asked.kernel(id)?;
    }
    for (number, dispatch) in program.dispatched() {
        if asked.unfit.len() > MAX_UNFIT {
            break;
        }
        asked.dispatch(number, dispatch);
    }
    asked.checked_kernel = None;
    for submitted in program.submissions() {
        for command in submitted.buffers.iter().flat_map(|buffer| buffer.commands) {
            asked.transfer(command);
        }
    }
    if asked.unfit.is_empty() {
        return Ok(asked.needs);
    }
    Err(Error::Unfit(asked.unfit.into_iter().collect()))
}

/// The state of checking a capture: the needs found so far, and the reasons why the device does not fit.
struct DeviceCheck<'a> {
    capture: &'a Capture,
    adapter: &'a Adapter,
    needs: DeviceNeeds,
    unfit: BTreeSet<Unfit>,
    /// The kernel that is being checked; `None` while the capture as a whole is.
    checked_kernel: Option<String>,
}

impl DeviceCheck<'_> {
    /// Keeps a reason why the device does not fit, once for each kernel.
    fn refuse(&mut self, reason: impl Into<String>) {
        self.unfit.insert(Unfit {
            kernel: self.checked_kernel.clone(),
            reason: reason.into(),
        });
    }

    /// Requires a feature and enables it.
    fn need_feature(&mut self, name: &'static str) {
        match self.adapter.features.has(name) {
            true => self.enable(name),
            false => self.refuse(format!("the device lacks the feature {name}")),
        }
    }

    /// Enables a feature, and the features that it needs.
    fn enable(&mut self, name: &'static str) {
        let also: &[&'static str] = match name {
            "variablePointers" => &["variablePointersStorageBuffer"],
            "robustBufferAccess2" => &["robustBufferAccess"],
            name if name.starts_with("cooperativeMatrix") => &["cooperativeMatrix"],
            _ => &[],
        };
        self.needs.features.insert(name);
        self.needs.features.extend(also);
    }

    /// Enables features that the program had enabled, that no capability requires, and that change what kernels do;
    /// with `robust` also those that keep accesses inside buffers. A note says which of the program's the device
    /// lacks.
    fn as_captured(&mut self, robust: bool) {
        // These features are needed without being declared in a shader.
        const QUIET: [&str; 6] = [
            "robustBufferAccess",
            "robustBufferAccess2",
            "scalarBlockLayout",
            "uniformBufferStandardLayout",
            "shaderSubgroupExtendedTypes",
            "shaderDemoteToHelperInvocation",
        ];
        let captured = &self.capture.header.device.features;
        for name in QUIET {
            let was_on = captured.iter().any(|feature| feature == name);
            let is_asked_for = robust && name.starts_with("robust");
            if !was_on && !is_asked_for {
                continue;
            }
            if self.adapter.features.has(name) {
                self.enable(name);
            } else if was_on {
                self.needs.notes.push(format!(
                    "The program had {name}, which this device lacks: results may differ."
                ));
            }
        }
    }

    /// Checks that the device can allocate the regions, the parts of the program's memory that the capture touches.
    fn memory(&mut self, regions: &Regions) {
        let properties = &self.adapter.properties;
        let most = properties
            .max_buffer_bytes
            .min(properties.max_allocation_bytes);
        let largest = regions.all().iter().map(|region| region.bytes).max();
        if let Some(largest) = largest.filter(|largest| *largest > most) {
            self.refuse(format!(
                "the capture touches {largest} bytes in one piece, and the device allows {most}"
            ));
        }
        let memory = &self.adapter.memory;
        let heaps = &memory.memory_heaps[..memory.memory_heap_count as usize];
        let all = heaps
            .iter()
            .fold(0_u64, |sum, heap| sum.saturating_add(heap.size));
        if regions.bytes() > all {
            let bytes = regions.bytes();
            self.refuse(format!(
                "the capture touches {bytes} bytes, and the device's memory has {all}"
            ));
        }
    }

    /// Checks that fills and updates begin at a word.
    fn transfer(&mut self, command: &Command) {
        let (what, range) = match command {
            Command::Fill(fill) => ("a fill", fill.range),
            Command::Update(update) => ("an update", update.range()),
            _ => return,
        };
        let (_, offset) = self.capture.place(range);
        if !offset.is_multiple_of(4) {
            self.refuse(format!(
                "{what} begins at byte {offset} of its memory, not at a word"
            ));
        }
    }
}
