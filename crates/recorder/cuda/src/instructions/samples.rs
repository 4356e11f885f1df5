//! Filters CUPTI's samples by function, and collects those of one function into one event.

use crate::recorder::Recorder;
use gapscope_cupti::PcSamples;
use gapscope_spool::event::{CudaEvent, FunctionSamples};
use gapscope_spool::ids;
use gapscope_spool::model::kernel_names::Spellings;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The most names that are remembered.
const MAX_NAMES: usize = 1 << 14;
/// The most samples of an event.
const MAX_SAMPLES: usize = 1 << 12;

/// The functions that the user wants.
#[derive(Clone)]
pub struct FunctionFilter {
    /// A part of the name; empty for all functions.
    wanted: String,
    /// The answers for names that were asked about.
    known: FxHashMap<Box<str>, bool>,
}

impl FunctionFilter {
    pub fn new(wanted: String) -> FunctionFilter {
        FunctionFilter {
            wanted,
            known: FxHashMap::default(),
        }
    }

    /// Returns whether one of the spellings of a function's name contains the wanted text.
    fn wants(&mut self, function: &str) -> bool {
        if self.wanted.is_empty() {
            return true;
        }
        if let Some(known) = self.known.get(function) {
            return *known;
        }
        if self.known.len() >= MAX_NAMES {
            self.known.clear();
        }
        let wants = Spellings::new(function).contain(&self.wanted);
        self.known.insert(function.into(), wants);
        wants
    }
}

/// Collects samples that follow each other and are of one function.
pub struct SampleBatches<'a> {
    recorder: &'a Recorder,
    device: ids::Device,
    filter: &'a mut FunctionFilter,
    /// Whether the samples are written; otherwise they are thrown away.
    are_recorded: bool,
    /// The checksum of the cubin (file with machine code) of the current function.
    cubin: u64,
    /// The current function, by its name in the code; empty where CUPTI has none.
    function: String,
    /// Whether the user wants samples of the current function.
    is_wanted: bool,
    /// Each entry has the instruction's offset in the function, the number of the reason, and the count of samples.
    samples: Vec<(u64, u32, u32)>,
}

impl<'a> SampleBatches<'a> {
    pub fn new(
        recorder: &'a Recorder,
        device: ids::Device,
        filter: &'a mut FunctionFilter,
        are_recorded: bool,
    ) -> SampleBatches<'a> {
        let is_wanted = filter.wants("");
        SampleBatches {
            recorder,
            device,
            filter,
            are_recorded,
            cubin: 0,
            function: String::new(),
            is_wanted,
            samples: Vec::new(),
        }
    }

    /// Adds the samples of one instruction, if its function is wanted. Samples of another function are written
    /// before.
    pub fn add(&mut self, pc: &PcSamples<'_>) {
        if !self.are_recorded {
            return;
        }
        let function = pc.function.map(|name| name.to_string_lossy());
        let function = function.unwrap_or_default();
        if (self.cubin, &*self.function) != (pc.cubin_crc, &*function) {
            self.write();
            self.cubin = pc.cubin_crc;
            self.is_wanted = self.filter.wants(&function);
            self.function = function.into_owned();
        }
        if self.is_wanted {
            let of_pc = pc
                .samples()
                .map(|(reason, samples)| (pc.offset, reason, samples));
            self.samples.extend(of_pc);
            if self.samples.len() >= MAX_SAMPLES {
                self.write();
            }
        }
    }

    /// Writes the samples that have been collected.
    pub fn write(&mut self) {
        if self.samples.is_empty() {
            return;
        }
        self.recorder
            .write(&CudaEvent::InstructionSamples(FunctionSamples {
                device: self.device,
                cubin: self.cubin,
                function: Cow::Borrowed(&self.function),
                samples: Cow::Borrowed(&self.samples),
            }));
        self.samples.clear();
    }
}
