//! PC sampling: counts how often each instruction of a context's kernels was the next one of a sampled warp, and why
//! the warp did not issue it. A warp is a group of 32 threads that run together, a context a program's state on one
//! GPU, and a cubin a file with machine code. Kernels run side by side as always (CUPTI's continuous mode).

mod sample_buffer;

use crate::failure::{Failure, code};
use crate::functions::{PcFunctions, SourceFunctions};
use crate::layouts::pc_sampling::{Attribute, attribute};
use crate::library::{LibraryError, open, preload_host_library};
use sample_buffer::SampleBuffer;
pub use sample_buffer::{PcSamples, TakenSamples};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::RangeInclusive;
use std::path::Path;

/// CUPTI_STALL_REASON_STRING_SIZE: the room for the name of a reason, in bytes.
const NAME_BYTES: usize = 128;
/// CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS
const CONTINUOUS: u64 = 1;
/// The most reasons that are asked for: more than any GPU has.
const MAX_REASONS: usize = 1024;
/// The number of instructions that are taken at once.
const PCS_PER_ROUND: usize = 4096;
/// The size of the hardware's buffer: at 16 bytes a sample enough for eight seconds.
const BUFFER_BYTES: u64 = 128 << 20;
/// The most rounds of one call; what is left comes with the next call.
const MAX_ROUNDS: usize = 64;

/// The functions of a libcupti that sample instructions.
#[derive(Debug, Clone, Copy)]
pub struct PcLibrary {
    functions: PcFunctions,
    device_of: unsafe extern "C" fn(*mut c_void, *mut u32) -> c_int,
}

/// The functions of a libcupti that describe cubins, which need no GPU.
#[derive(Debug, Clone, Copy)]
pub struct CubinLibrary(SourceFunctions);

/// A reason for not issuing: its number and CUPTI's name.
pub type StallReason = (u32, String);

/// How often a context is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingPace {
    /// The exponent of the period: a multiprocessor is sampled every 2 to this power cycles.
    period_power: u32,
}

impl SamplingPace {
    /// The exponents that CUPTI accepts.
    const POWERS: RangeInclusive<u32> = 5..=31;
    /// CUPTI's threads need 60 ns of processor time for a sample, measured on an H200. CUPTI's own choice there, a
    /// period of 2,048 cycles, gave 127 million samples a second: they filled 512 MB in 0.3 s, CUPTI threw all of it
    /// away again and again, and 2 % were left.
    const MAX_SAMPLES_PER_SECOND: u64 = 1_000_000;
    /// Returns the pace for a device with this many multiprocessors, each of which gives a sample in a period, and
    /// this clock.
    pub fn for_device(multiprocessors: u64, clock_hz: u64) -> SamplingPace {
        let cycles = multiprocessors.saturating_mul(clock_hz);
        let least = (cycles / SamplingPace::MAX_SAMPLES_PER_SECOND)
            .clamp(1, 1 << SamplingPace::POWERS.end());
        let power = least.next_power_of_two().ilog2();
        SamplingPace {
            period_power: power.max(*SamplingPace::POWERS.start()),
        }
    }
}

/// A context whose instructions are sampled until [`PcSampling::stop`]. It must not be dropped before, because CUPTI
/// uses its memory.
#[derive(Debug)]
pub struct PcSampling {
    functions: PcFunctions,
    context: *mut c_void,
    /// The reasons that are counted. CUPTI may read them again.
    numbers: Vec<u32>,
    /// Their names, in the same order.
    names: Vec<String>,
    /// The cycles between two samples; `None` where CUPTI does not tell them.
    period_cycles: Option<u64>,
    /// The buffer into which each round takes samples.
    taken: SampleBuffer,
    /// The buffer that CUPTI itself fills when sampling ends.
    left: SampleBuffer,
}

// SAFETY: CUPTI takes contexts from any thread, and `&mut self` and the lack of Sync keep two threads from using one
// at once.
unsafe impl Send for PcSampling {}

impl PcLibrary {
    /// Loads a libcupti, or finds it where it is loaded already.
    ///
    /// # Errors
    /// It does not exist, or is too old to sample instructions.
    pub fn open(path: &Path) -> Result<PcLibrary, LibraryError> {
        preload_host_library(path);
        let library = open(path)?;
        let missing = |function| LibraryError::no_function(path, function);
        let name = "cuptiGetDeviceId";
        // SAFETY: the library is a libcupti, or lacks these names.
        unsafe {
            Ok(PcLibrary {
                functions: PcFunctions::load(library).map_err(missing)?,
                device_of: library.function(name).ok_or_else(|| missing(name))?,
            })
        }
    }

    /// Returns CUPTI's number of a context's device.
    ///
    /// # Safety
    /// The context is one of CUDA's that lives.
    pub unsafe fn device(&self, context: *mut c_void) -> Option<u32> {
        let mut device = 0;
        // SAFETY: as the caller promises; the function stores a number.
        let code = unsafe { (self.device_of)(context, &mut device) };
        (code == 0).then_some(device)
    }
}

impl CubinLibrary {
    /// Loads a libcupti, or finds it where it is loaded already.
    ///
    /// # Errors
    /// It does not exist, or is too old.
    pub fn open(path: &Path) -> Result<CubinLibrary, LibraryError> {
        // SAFETY: the library is a libcupti, or lacks these names.
        let functions = unsafe { SourceFunctions::load(open(path)?) };
        functions
            .map(CubinLibrary)
            .map_err(|function| LibraryError::no_function(path, function))
    }

    /// Returns the checksum by which samples name a cubin.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn crc(&self, cubin: &[u8]) -> Result<u64, Failure> {
        let mut parameters = crate::layouts::CubinCrc::new();
        parameters.cubin_size = cubin.len();
        parameters.cubin = cubin.as_ptr().cast();
        // SAFETY: the bytes are there, and CUPTI only reads them.
        unsafe { self.0.cubin_crc.call(&mut parameters)? };
        Ok(parameters.crc)
    }

    /// Returns folder, file and line of an instruction at an offset from its function's start; `None` where CUPTI
    /// knows no line.
    ///
    /// # Errors
    /// The cubin has no such function.
    pub fn line(
        &self,
        cubin: &[u8],
        function: &CStr,
        offset: u64,
    ) -> Result<Option<(CString, CString, u32)>, Failure> {
        let mut parameters = crate::layouts::SassToSource::new();
        parameters.cubin = cubin.as_ptr().cast();
        parameters.cubin_size = cubin.len();
        parameters.function = function.as_ptr();
        parameters.offset = offset;
        // SAFETY: the bytes are there, and the name ends in a zero byte. CUPTI stores texts that the caller has to
        // free.
        unsafe {
            self.0.line.call(&mut parameters)?;
            let [file, folder] = [parameters.file, parameters.folder].map(|text| {
                let owned = (!text.is_null()).then(|| CStr::from_ptr(text).to_owned());
                libc::free(text.cast());
                owned
            });
            let found = folder.zip(file).filter(|_| parameters.line > 0);
            Ok(found.map(|(folder, file)| (folder, file, parameters.line)))
        }
    }
}

impl PcSampling {
    /// Starts to sample the instructions of a context.
    ///
    /// # Errors
    /// CUPTI refuses it: [`code`].
    ///
    /// # Safety
    /// The context is a CUDA context that lives until sampling is stopped.
    pub unsafe fn start(
        library: &PcLibrary,
        context: *mut c_void,
        pace: SamplingPace,
    ) -> Result<PcSampling, Failure> {
        let functions = library.functions;
        // SAFETY: as the caller promises.
        unsafe { functions.enable.call_with(context)? };
        let mut sampling = PcSampling {
            functions,
            context,
            numbers: Vec::new(),
            names: Vec::new(),
            period_cycles: None,
            taken: SampleBuffer::none(),
            left: SampleBuffer::none(),
        };
        match sampling.configure(pace) {
            Ok(()) => Ok(sampling),
            Err(failure) => {
                // A refusal to end it adds nothing.
                let _ = sampling.end();
                Err(failure)
            }
        }
    }

    /// Sets the reasons, the pace and the buffers.
    fn configure(&mut self, pace: SamplingPace) -> Result<(), Failure> {
        let all = self.reasons()?;
        // The samples of a reason include those in whose cycle no warp issued.
        let is_part = |name: &str| name.ends_with("_not_issued");
        let wanted = all.into_iter().filter(|(_, name)| !is_part(name));
        (self.numbers, self.names) = wanted.unzip();
        self.taken = SampleBuffer::new(PCS_PER_ROUND, self.numbers.len());
        self.left = SampleBuffer::new(PCS_PER_ROUND, self.numbers.len());
        let numbers = self.numbers.as_mut_ptr() as u64;
        let mut attributes = [
            Attribute::new(attribute::COLLECTION_MODE, [CONTINUOUS, 0]),
            Attribute::new(attribute::SAMPLING_PERIOD, [pace.period_power.into(), 0]),
            Attribute::new(attribute::HARDWARE_BUFFER_SIZE, [BUFFER_BYTES, 0]),
            Attribute::new(
                attribute::STALL_REASON,
                [self.numbers.len() as u64, numbers],
            ),
            Attribute::new(
                attribute::SAMPLING_DATA_BUFFER,
                [self.left.as_mut_ptr() as u64, 0],
            ),
        ];
        let mut parameters = crate::layouts::PcConfiguration::new();
        parameters.context = self.context;
        parameters.count = attributes.len();
        parameters.attributes = attributes.as_mut_ptr().cast();
        // SAFETY: the attributes are as many as stated, and their pointers are to what lives as long as the sampling.
        unsafe { self.functions.configure.call(&mut parameters)? };
        self.period_cycles = self.period();
        Ok(())
    }

    /// Returns all reasons that the device knows.
    fn reasons(&self) -> Result<Vec<StallReason>, Failure> {
        let mut count = 0usize;
        let mut parameters = crate::layouts::PcCountReasons::new();
        parameters.context = self.context;
        parameters.count = &raw mut count;
        // SAFETY: CUPTI stores a number there.
        unsafe { self.functions.count_reasons.call(&mut parameters)? };
        let count = count.min(MAX_REASONS);
        let mut numbers = vec![0u32; count];
        let mut texts = vec![[0u8; NAME_BYTES]; count];
        let mut names: Vec<*mut c_char> = texts
            .iter_mut()
            .map(|text| text.as_mut_ptr().cast())
            .collect();
        let mut parameters = crate::layouts::PcReasons::new();
        parameters.context = self.context;
        parameters.count = count;
        parameters.numbers = numbers.as_mut_ptr();
        parameters.names = names.as_mut_ptr();
        // SAFETY: there are as many numbers and names as stated, each with the room that the header asks for.
        unsafe { self.functions.reasons.call(&mut parameters)? };
        let named = numbers.into_iter().zip(&texts).map(|(number, text)| {
            let end = text.iter().position(|byte| *byte == 0);
            let name = &text[..end.unwrap_or(NAME_BYTES)];
            (number, String::from_utf8_lossy(name).into_owned())
        });
        Ok(named.collect())
    }

    /// Asks CUPTI for the cycles between two samples; `None` where the answer makes no sense.
    fn period(&self) -> Option<u64> {
        let mut attributes = [Attribute::new(attribute::SAMPLING_PERIOD, [0; 2])];
        let mut parameters = crate::layouts::PcConfiguration::new();
        parameters.context = self.context;
        parameters.count = attributes.len();
        parameters.attributes = attributes.as_mut_ptr().cast();
        // SAFETY: there is one attribute, which CUPTI fills.
        unsafe { self.functions.configuration.call(&mut parameters).ok()? };
        let [period] = attributes;
        let power = period.first_number();
        SamplingPace::POWERS.contains(&power).then(|| 1 << power)
    }

    /// Returns the reasons that are counted.
    pub fn counted_reasons(&self) -> impl Iterator<Item = (u32, &str)> {
        let names = self.names.iter().map(String::as_str);
        self.numbers.iter().copied().zip(names)
    }

    /// Returns the cycles between two samples, where CUPTI tells them.
    pub fn period_cycles(&self) -> Option<u64> {
        self.period_cycles
    }

    /// Hands over the samples since the last call, without waiting for the device: `each` is called once for every
    /// instruction that CUPTI returns.
    ///
    /// # Errors
    /// CUPTI refuses it. A full hardware buffer is no error: [`TakenSamples`] tells it.
    pub fn take(&mut self, mut each: impl FnMut(PcSamples<'_>)) -> Result<TakenSamples, Failure> {
        let mut sum = TakenSamples::default();
        for _ in 0..MAX_ROUNDS {
            self.taken.clear();
            let mut parameters = crate::layouts::PcGetData::new();
            parameters.context = self.context;
            parameters.data = self.taken.as_mut_ptr().cast();
            // SAFETY: the buffer has the room that it states.
            let result = unsafe { self.functions.data.call(&mut parameters) };
            let page = self.taken.read(&mut each);
            sum.add(&page);
            match result {
                Err(failure) if failure.code == code::OUT_OF_MEMORY && page.is_full => break,
                other => other?,
            }
            if page.remaining == 0 || page.pcs == 0 {
                break;
            }
        }
        Ok(sum)
    }

    /// Ends sampling and hands over the samples that are left, to `each` as in [`Self::take`].
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn stop(mut self, mut each: impl FnMut(PcSamples<'_>)) -> Result<TakenSamples, Failure> {
        let taken = self.take(&mut each);
        let mut left = self.end()?;
        let mut sum = left.read(&mut each);
        sum.add(&taken?);
        Ok(sum)
    }

    /// Ends sampling, and returns the samples that CUPTI had left.
    fn end(self) -> Result<SampleBuffer, Failure> {
        // SAFETY: the context lives, as the caller of `start` promised.
        match unsafe { self.functions.disable.call_with(self.context) } {
            Ok(()) => Ok(self.left),
            Err(failure) => {
                // CUPTI may go on using the memory.
                std::mem::forget(self);
                Err(failure)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_gives_at_most_as_many_samples_as_cupti_takes() {
        let power =
            |multiprocessors, clock| SamplingPace::for_device(multiprocessors, clock).period_power;
        assert_eq!(power(132, 1_980_000_000), 18);
        assert_eq!(power(20, 1_500_000_000), 15);
        assert_eq!(power(1, 1), 5);
        assert_eq!(power(u64::MAX, u64::MAX), 31);
    }

    #[test]
    fn an_older_library_lacks_the_functions_by_name() {
        let path = Path::new("libc.so.6");
        let Err(LibraryError::NoFunction { function, .. }) = PcLibrary::open(path) else {
            panic!("libc samples nothing")
        };
        assert_eq!(function, "cuptiPCSamplingEnable");
        assert!(CubinLibrary::open(path).is_err());
        let missing = Path::new("/nowhere/libcupti.so.13");
        assert!(matches!(
            PcLibrary::open(missing),
            Err(LibraryError::NotLoaded { .. })
        ));
    }
}
