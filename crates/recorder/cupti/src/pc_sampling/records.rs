//! Memory that CUPTI puts samples of instructions into.

use super::layouts::{Data, PcData, ReasonSamples};
use std::ffi::CStr;

/// Room for samples. CUPTI keeps the addresses: nothing of it moves.
#[derive(Debug)]
pub struct Records {
    data: Vec<Data>,
    pcs: Vec<PcData>,
    samples: Vec<ReasonSamples>,
}

/// Samples of one instruction.
#[derive(Debug, Clone, Copy)]
pub struct Pc<'a> {
    /// CUPTI's checksum of the cubin.
    pub cubin_crc: u64,
    /// The function, as the code calls it.
    pub function: Option<&'a CStr>,
    /// Bytes from the function's start.
    pub offset: u64,
    samples: &'a [ReasonSamples],
}

impl Pc<'_> {
    /// Numbers of reasons with their samples, as far as there are any.
    pub fn samples(&self) -> impl Iterator<Item = (u32, u32)> {
        let some = self.samples.iter().filter(|of| of.samples > 0);
        some.map(|of| (of.reason, of.samples))
    }
}

/// What was handed over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Instructions.
    pub pcs: usize,
    /// Instructions that CUPTI has besides.
    pub remaining: usize,
    /// Samples that the hardware had no room for.
    pub dropped_samples: u64,
    /// Samples of code that is not the program's, of which CUPTI says nothing more.
    pub other_samples: u64,
    /// The hardware's buffer was full: samples are lost, and not counted.
    pub is_full: bool,
}

impl Taken {
    pub(super) fn add(&mut self, other: &Taken) {
        self.pcs += other.pcs;
        self.remaining = other.remaining;
        self.dropped_samples = self.dropped_samples.saturating_add(other.dropped_samples);
        self.other_samples = self.other_samples.saturating_add(other.other_samples);
        self.is_full |= other.is_full;
    }
}

impl Records {
    /// Without room.
    pub fn none() -> Records {
        Records::new(0, 0)
    }

    /// Room for so many instructions, each with so many reasons.
    pub fn new(pcs: usize, reasons: usize) -> Records {
        let mut samples = vec![ReasonSamples::default(); pcs * reasons];
        let first = samples.as_mut_ptr();
        let pc = |at: usize| PcData {
            size: size_of::<PcData>(),
            cubin_crc: 0,
            offset: 0,
            function_index: 0,
            padding: 0,
            function: std::ptr::null(),
            reason_count: 0,
            reasons: first.wrapping_add(at * reasons),
            correlation: 0,
        };
        let mut pcs: Vec<PcData> = (0..pcs).map(pc).collect();
        let data = vec![Data {
            size: size_of::<Data>(),
            room: pcs.len(),
            total_samples: 0,
            dropped_samples: 0,
            pcs: 0,
            remaining: 0,
            range: 0,
            data: pcs.as_mut_ptr(),
            other_samples: 0,
            is_full: 0,
        }];
        Records { data, pcs, samples }
    }

    pub fn as_mut_ptr(&mut self) -> *mut Data {
        self.data.as_mut_ptr()
    }

    /// Forgets what is in it.
    pub fn clear(&mut self) {
        let data = &mut self.data[0];
        (data.pcs, data.remaining, data.is_full) = (0, 0, 0);
        (data.dropped_samples, data.other_samples) = (0, 0);
    }

    /// Hands over what is in it.
    pub fn read(&mut self, each: &mut impl FnMut(Pc<'_>)) -> Taken {
        let data = &self.data[0];
        let pcs = data.pcs.min(self.pcs.len());
        let reasons = self.samples.len().checked_div(self.pcs.len()).unwrap_or(0);
        for (at, pc) in self.pcs[..pcs].iter().enumerate() {
            let samples = &self.samples[at * reasons..][..pc.reason_count.min(reasons)];
            // SAFETY: null, or CUPTI's text, which nobody frees.
            let function = (!pc.function.is_null()).then(|| unsafe { CStr::from_ptr(pc.function) });
            each(Pc {
                cubin_crc: pc.cubin_crc,
                function,
                offset: pc.offset,
                samples,
            });
        }
        Taken {
            pcs,
            remaining: data.remaining,
            dropped_samples: data.dropped_samples,
            other_samples: data.other_samples,
            is_full: data.is_full != 0,
        }
    }
}
