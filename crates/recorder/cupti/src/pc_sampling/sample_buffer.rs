//! Holds the memory into which CUPTI puts samples of instructions, and reads them.

use crate::layouts::pc_sampling::{Data, PcData, ReasonSamples};
use std::ffi::CStr;

/// A buffer for samples. CUPTI keeps the addresses, so none of it may move.
#[derive(Debug)]
pub struct SampleBuffer {
    /// CUPTI's description of the buffer, a single element.
    data: Vec<Data>,
    /// A place for each instruction.
    pcs: Vec<PcData>,
    /// The places for reasons: as many for each instruction, in the order of `pcs`.
    samples: Vec<ReasonSamples>,
}

/// The samples of one instruction.
#[derive(Debug, Clone, Copy)]
pub struct PcSamples<'a> {
    /// CUPTI's checksum of the cubin, the file with the machine code.
    pub cubin_crc: u64,
    /// The function's name in the code.
    pub function: Option<&'a CStr>,
    /// The offset from the function's start, in bytes.
    pub offset: u64,
    samples: &'a [ReasonSamples],
}

impl PcSamples<'_> {
    /// Returns the numbers of the reasons that have samples, with their counts.
    pub fn samples(&self) -> impl Iterator<Item = (u32, u32)> {
        let some = self.samples.iter().filter(|of| of.samples > 0);
        some.map(|of| (of.reason, of.samples))
    }
}

/// A summary of the samples that were handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TakenSamples {
    /// The number of instructions.
    pub pcs: usize,
    /// The number of instructions that CUPTI still has.
    pub remaining: usize,
    /// The number of samples for which the hardware had no room.
    pub dropped_samples: u64,
    /// The number of samples of code that is not the program's, for which CUPTI gives no more detail.
    pub other_samples: u64,
    /// The hardware's buffer was full: samples were lost without being counted.
    pub is_full: bool,
}

impl TakenSamples {
    pub(super) fn add(&mut self, other: &TakenSamples) {
        self.pcs += other.pcs;
        self.remaining = other.remaining;
        self.dropped_samples = self.dropped_samples.saturating_add(other.dropped_samples);
        self.other_samples = self.other_samples.saturating_add(other.other_samples);
        self.is_full |= other.is_full;
    }
}

impl SampleBuffer {
    /// Creates a buffer without room.
    pub fn none() -> SampleBuffer {
        SampleBuffer::new(0, 0)
    }

    /// Creates a buffer for a number of instructions, each with a number of reasons.
    pub fn new(pcs: usize, reasons: usize) -> SampleBuffer {
        let mut samples = vec![ReasonSamples::default(); pcs * reasons];
        let first = samples.as_mut_ptr();
        let pc = |at: usize| PcData {
            reasons: first.wrapping_add(at * reasons),
            ..PcData::new()
        };
        let mut pcs: Vec<PcData> = (0..pcs).map(pc).collect();
        let data = vec![Data {
            room: pcs.len(),
            data: pcs.as_mut_ptr(),
            ..Data::new()
        }];
        SampleBuffer { data, pcs, samples }
    }

    pub fn as_mut_ptr(&mut self) -> *mut Data {
        self.data.as_mut_ptr()
    }

    /// Empties the buffer.
    pub fn clear(&mut self) {
        let data = &mut self.data[0];
        (data.pcs, data.remaining, data.is_full) = (0, 0, 0);
        (data.dropped_samples, data.other_samples) = (0, 0);
    }

    /// Calls `each` once for every instruction in the buffer, and returns the sums.
    pub fn read(&mut self, each: &mut impl FnMut(PcSamples<'_>)) -> TakenSamples {
        let data = &self.data[0];
        let pcs = data.pcs.min(self.pcs.len());
        let reasons = self.samples.len().checked_div(self.pcs.len()).unwrap_or(0);
        for (at, pc) in self.pcs[..pcs].iter().enumerate() {
            let samples = &self.samples[at * reasons..][..pc.reason_count.min(reasons)];
            // SAFETY: null, or a text of CUPTI's that is never freed.
            let function = (!pc.function.is_null()).then(|| unsafe { CStr::from_ptr(pc.function) });
            each(PcSamples {
                cubin_crc: pc.cubin_crc,
                function,
                offset: pc.offset,
                samples,
            });
        }
        TakenSamples {
            pcs,
            remaining: data.remaining,
            dropped_samples: data.dropped_samples,
            other_samples: data.other_samples,
            is_full: data.is_full != 0,
        }
    }
}
