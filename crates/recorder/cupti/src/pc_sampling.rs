//! PC sampling: how often each instruction of a context's kernels was the next one of a sampled warp, and why the warp did not issue
//! it. Kernels run as ever, side by side (CUPTI's continuous mode).

pub mod layouts;
mod records;

use crate::failure::{Failure, code};
use crate::functions::{PcFunctions, SourceFunctions};
use crate::layouts as of;
use crate::library::{self, Missing};
use layouts::{Attribute, attribute};
use records::Records;
pub use records::{Pc, Taken};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::RangeInclusive;
use std::path::Path;

/// CUPTI_STALL_REASON_STRING_SIZE
const NAME_BYTES: usize = 128;
/// CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS
const CONTINUOUS: u64 = 1;
/// No GPU has nearly so many.
const MOST_REASONS: usize = 1024;
/// Instructions that are taken at once.
const ROOM: usize = 4096;
/// The hardware's: at 16 bytes a sample those of eight seconds.
const BUFFER_BYTES: u64 = 128 << 20;
/// How often at most: what is left comes the next time.
const MOST_ROUNDS: usize = 64;

/// A libcupti that can sample instructions.
#[derive(Debug, Clone, Copy)]
pub struct PcLibrary {
    functions: PcFunctions,
    device_of: unsafe extern "C" fn(*mut c_void, *mut u32) -> c_int,
}

/// What a libcupti itself says of cubins, which takes no GPU.
#[derive(Debug, Clone, Copy)]
pub struct CubinLibrary(SourceFunctions);

/// A reason: its number and CUPTI's name.
pub type Reason = (u32, String);

/// How often a context is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Between two samples of a multiprocessor lie 2 to the power of this many cycles.
    period_power: u32,
}

impl Pace {
    /// What CUPTI takes.
    const POWERS: RangeInclusive<u32> = 5..=31;
    /// CUPTI's threads take 60 ns of a processor for a sample, as measured on an H200. With the period of CUPTI's own choice there, 2,048
    /// cycles, there were 127 million a second: they filled 512 MB in 0.3 s, CUPTI threw all of it away, time and again, and 2 % were left.
    const MOST_SAMPLES_A_SECOND: u64 = 1_000_000;
    /// The one for a device with so many multiprocessors, each of which gives a sample a period, and this clock.
    pub fn of_device(multiprocessors: u64, clock_hz: u64) -> Pace {
        let cycles = multiprocessors.saturating_mul(clock_hz);
        let least = (cycles / Pace::MOST_SAMPLES_A_SECOND).clamp(1, 1 << Pace::POWERS.end());
        let power = least.next_power_of_two().ilog2();
        Pace {
            period_power: power.max(*Pace::POWERS.start()),
        }
    }
}

/// A context whose instructions are sampled, until [`PcSampling::stop`]; it must not be dropped before, since CUPTI uses its memory.
#[derive(Debug)]
pub struct PcSampling {
    functions: PcFunctions,
    context: *mut c_void,
    /// Which are counted. CUPTI may look at them again.
    numbers: Vec<u32>,
    names: Vec<String>,
    period_cycles: Option<u64>,
    taken: Records,
    /// What CUPTI itself fills when sampling ends.
    left: Records,
}

// SAFETY: CUPTI takes contexts from any thread, and `&mut self` and the lack of Sync keep two from using one at once.
unsafe impl Send for PcSampling {}

impl PcLibrary {
    /// Of a libcupti, which is loaded where it is not yet.
    ///
    /// # Errors
    /// It is not there, or too old to sample instructions.
    pub fn open(path: &Path) -> Result<PcLibrary, Missing> {
        library::preload_host_library(path);
        let find = finder(path)?;
        let missing = |function| Missing::Function {
            path: path.to_owned(),
            function,
        };
        // SAFETY: it is a libcupti, or lacks these names.
        unsafe {
            let name = "cuptiGetDeviceId";
            Ok(PcLibrary {
                functions: PcFunctions::of(&find).map_err(missing)?,
                device_of: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_void, *mut u32) -> c_int,
                >(find(name).ok_or(name).map_err(missing)?),
            })
        }
    }

    /// CUPTI's number of a context's device.
    ///
    /// # Safety
    /// The context is one of CUDA's that lives.
    pub unsafe fn device(&self, context: *mut c_void) -> Option<u32> {
        let mut device = 0;
        // SAFETY: as the caller promises; it stores a number.
        let code = unsafe { (self.device_of)(context, &mut device) };
        (code == 0).then_some(device)
    }
}

impl CubinLibrary {
    /// Of a libcupti, which is loaded where it is not yet.
    ///
    /// # Errors
    /// It is not there, or too old.
    pub fn open(path: &Path) -> Result<CubinLibrary, Missing> {
        let find = finder(path)?;
        // SAFETY: it is a libcupti, or lacks these names.
        let functions = unsafe { SourceFunctions::of(&find) };
        functions
            .map(CubinLibrary)
            .map_err(|function| Missing::Function {
                path: path.to_owned(),
                function,
            })
    }

    /// The checksum by which samples name a cubin.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn crc(&self, cubin: &[u8]) -> Result<u64, Failure> {
        let mut parameters = layouts::CubinCrc::new();
        parameters.cubin_size = cubin.len();
        parameters.cubin = cubin.as_ptr().cast();
        // SAFETY: so many bytes are there, which CUPTI reads.
        unsafe { self.0.cubin_crc.call(&mut parameters)? };
        Ok(parameters.crc)
    }

    /// Folder, file and line of an instruction, so many bytes from a function's start; `None` where CUPTI knows no line of it.
    ///
    /// # Errors
    /// The cubin has no such function.
    pub fn line(
        &self,
        cubin: &[u8],
        function: &CStr,
        offset: u64,
    ) -> Result<Option<(CString, CString, u32)>, Failure> {
        let mut parameters = layouts::SassToSource::new();
        parameters.cubin = cubin.as_ptr().cast();
        parameters.cubin_size = cubin.len();
        parameters.function = function.as_ptr();
        parameters.offset = offset;
        // SAFETY: so many bytes are there, and the name ends in a zero byte. CUPTI stores texts that are the caller's.
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
    /// Starts to sample what a context runs.
    ///
    /// # Errors
    /// CUPTI refuses it: [`code`].
    ///
    /// # Safety
    /// The context is one of CUDA's, which lives until sampling is stopped.
    pub unsafe fn start(
        library: &PcLibrary,
        context: *mut c_void,
        pace: Pace,
    ) -> Result<PcSampling, Failure> {
        let functions = library.functions;
        let mut parameters = of::PcEnable::new();
        parameters.context = context;
        // SAFETY: as the caller promises.
        unsafe { functions.enable.call(&mut parameters)? };
        let mut sampling = PcSampling {
            functions,
            context,
            numbers: Vec::new(),
            names: Vec::new(),
            period_cycles: None,
            taken: Records::none(),
            left: Records::none(),
        };
        match sampling.configure(pace) {
            Ok(()) => Ok(sampling),
            Err(failure) => {
                // That CUPTI refuses to end it too says nothing more.
                let _ = sampling.end();
                Err(failure)
            }
        }
    }

    fn configure(&mut self, pace: Pace) -> Result<(), Failure> {
        let all = self.reasons()?;
        // A reason's part in whose cycles no warp issued is counted by the reason itself.
        let is_part = |name: &str| name.ends_with("_not_issued");
        let wanted = all.into_iter().filter(|(_, name)| !is_part(name));
        (self.numbers, self.names) = wanted.unzip();
        self.taken = Records::new(ROOM, self.numbers.len());
        self.left = Records::new(ROOM, self.numbers.len());
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
        let mut parameters = of::PcConfiguration::new();
        parameters.context = self.context;
        parameters.count = attributes.len();
        parameters.attributes = attributes.as_mut_ptr().cast();
        // SAFETY: so many attributes, whose pointers are to what lives as long as the sampling.
        unsafe { self.functions.configure.call(&mut parameters)? };
        self.period_cycles = self.period();
        Ok(())
    }

    /// All reasons that the device knows.
    fn reasons(&self) -> Result<Vec<Reason>, Failure> {
        let mut count = 0usize;
        let mut parameters = of::PcCountReasons::new();
        parameters.context = self.context;
        parameters.count = &raw mut count;
        // SAFETY: it stores a number there.
        unsafe { self.functions.count_reasons.call(&mut parameters)? };
        let count = count.min(MOST_REASONS);
        let mut numbers = vec![0u32; count];
        let mut texts = vec![[0u8; NAME_BYTES]; count];
        let mut names: Vec<*mut c_char> = texts
            .iter_mut()
            .map(|text| text.as_mut_ptr().cast())
            .collect();
        let mut parameters = of::PcReasons::new();
        parameters.context = self.context;
        parameters.count = count;
        parameters.numbers = numbers.as_mut_ptr();
        parameters.names = names.as_mut_ptr();
        // SAFETY: so many numbers and names, each with the room that the header says.
        unsafe { self.functions.reasons.call(&mut parameters)? };
        let named = numbers.into_iter().zip(&texts).map(|(number, text)| {
            let end = text.iter().position(|byte| *byte == 0);
            let name = &text[..end.unwrap_or(NAME_BYTES)];
            (number, String::from_utf8_lossy(name).into_owned())
        });
        Ok(named.collect())
    }

    fn period(&self) -> Option<u64> {
        let mut attributes = [Attribute::new(attribute::SAMPLING_PERIOD, [0; 2])];
        let mut parameters = of::PcConfiguration::new();
        parameters.context = self.context;
        parameters.count = attributes.len();
        parameters.attributes = attributes.as_mut_ptr().cast();
        // SAFETY: one attribute, which CUPTI fills.
        unsafe { self.functions.configuration.call(&mut parameters).ok()? };
        let [period] = attributes;
        let power = period.first_number();
        Pace::POWERS.contains(&power).then(|| 1 << power)
    }

    /// The reasons that are counted.
    pub fn counted_reasons(&self) -> impl Iterator<Item = (u32, &str)> {
        let names = self.names.iter().map(String::as_str);
        self.numbers.iter().copied().zip(names)
    }

    /// Cycles between two samples, where CUPTI says it.
    pub fn period_cycles(&self) -> Option<u64> {
        self.period_cycles
    }

    /// Hands over what was sampled since the last time. It does not wait for the device.
    ///
    /// # Errors
    /// CUPTI refuses it. That the hardware's buffer was full is none: [`Taken`] says it.
    pub fn take(&mut self, mut each: impl FnMut(Pc<'_>)) -> Result<Taken, Failure> {
        let mut sum = Taken::default();
        for _ in 0..MOST_ROUNDS {
            self.taken.clear();
            let mut parameters = of::PcGetData::new();
            parameters.context = self.context;
            parameters.data = self.taken.as_mut_ptr().cast();
            // SAFETY: the buffer has the room that it says.
            let said = unsafe { self.functions.data.call(&mut parameters) };
            let page = self.taken.read(&mut each);
            sum.add(&page);
            match said {
                Err(failure) if failure.code == code::OUT_OF_MEMORY && page.is_full => break,
                other => other?,
            }
            if page.remaining == 0 || page.pcs == 0 {
                break;
            }
        }
        Ok(sum)
    }

    /// Ends it, and hands over what is left.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn stop(mut self, mut each: impl FnMut(Pc<'_>)) -> Result<Taken, Failure> {
        let taken = self.take(&mut each);
        let mut left = self.end()?;
        let mut sum = left.read(&mut each);
        sum.add(&taken?);
        Ok(sum)
    }

    /// Gives what CUPTI had left.
    fn end(self) -> Result<Records, Failure> {
        let mut parameters = of::PcDisable::new();
        parameters.context = self.context;
        // SAFETY: the context lives, as the maker of this promised.
        match unsafe { self.functions.disable.call(&mut parameters) } {
            Ok(()) => Ok(self.left),
            Err(failure) => {
                // CUPTI may go on using its memory.
                std::mem::forget(self);
                Err(failure)
            }
        }
    }
}

fn finder(path: &Path) -> Result<impl Fn(&str) -> Option<*mut c_void>, Missing> {
    let library = library::open(path).map_err(|said| Missing::Library {
        path: path.to_owned(),
        said,
    })?;
    Ok(move |name: &str| library::symbol(library, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_gives_at_most_as_many_samples_as_cupti_takes() {
        let power = |multiprocessors, clock| Pace::of_device(multiprocessors, clock).period_power;
        assert_eq!(power(132, 1_980_000_000), 18);
        assert_eq!(power(20, 1_500_000_000), 15);
        assert_eq!(power(1, 1), 5);
        assert_eq!(power(u64::MAX, u64::MAX), 31);
    }

    #[test]
    fn an_older_library_lacks_the_functions_by_name() {
        let path = Path::new("libc.so.6");
        let Err(Missing::Function { function, .. }) = PcLibrary::open(path) else {
            panic!("libc samples nothing")
        };
        assert_eq!(function, "cuptiPCSamplingEnable");
        assert!(CubinLibrary::open(path).is_err());
        let missing = Path::new("/nowhere/libcupti.so.13");
        assert!(matches!(
            PcLibrary::open(missing),
            Err(Missing::Library { .. })
        ));
    }
}
