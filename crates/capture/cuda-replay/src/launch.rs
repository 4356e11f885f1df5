//! Launches kernels with the parameters and attributes of a capture, and waits for them with a limit.

use std::ffi::c_void;
use std::ptr;
use std::time::{Duration, Instant};

use gapscope_capture::cuda::{CudaCapture, Launch};

use crate::driver::{Driver, LaunchAttribute, LaunchConfig, Progress};
use crate::error::Error;
use crate::memory::{MemoryAddress, Placed};
use crate::modules::Kernel;

/// The time for which the host asks again and again, before it sleeps between two questions.
const ASK_FOR: Duration = Duration::from_micros(200);
/// The time between two questions after that.
const ASK_EVERY: Duration = Duration::from_micros(50);

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT`, `CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT` and
/// `CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE` name objects of the program.
pub const OF_THE_PROGRAM: [u32; 3] = [7, 12, 13];
/// `CU_LAUNCH_PARAM_BUFFER_POINTER` and `CU_LAUNCH_PARAM_BUFFER_SIZE`
const BUFFER: usize = 1;
const BUFFER_BYTES: usize = 2;

/// A launch that is ready: its kernel, its parameters in this process, and its attributes.
#[derive(Clone)]
pub struct ReadyLaunch {
    kernel: Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    /// The parameters, as words so that they are aligned.
    words: Vec<u64>,
    bytes: usize,
    attributes: Vec<LaunchAttribute>,
    number: u64,
    name: String,
}

impl ReadyLaunch {
    /// Prepares a launch with its number in the capture.
    pub fn new(
        driver: &Driver,
        capture: &CudaCapture,
        placed: &Placed,
        kernel: &Kernel,
        launch: &Launch,
        number: u64,
    ) -> Result<ReadyLaunch, Error> {
        kernel.prepare(driver, &launch.function, launch.shared_bytes)?;
        let parameters = relocated(capture, placed, launch)?;
        let words = parameters.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(word)
        });
        let attributes = launch.attributes.iter();
        let attributes = attributes.filter(|attribute| !OF_THE_PROGRAM.contains(&attribute.id));
        Ok(ReadyLaunch {
            kernel: kernel.clone(),
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            words: words.collect(),
            bytes: parameters.len(),
            attributes: attributes
                .filter_map(|attribute| {
                    Some(LaunchAttribute {
                        id: attribute.id,
                        pad: 0,
                        value: attribute.value.as_slice().try_into().ok()?,
                    })
                })
                .collect(),
            number,
            name: launch.kernel.clone(),
        })
    }

    /// Returns the launch with another kernel and, where they are given, another grid, block and shared memory.
    pub fn with(
        &self,
        kernel: Kernel,
        grid: Option<[u32; 3]>,
        block: Option<[u32; 3]>,
        shared_bytes: Option<u32>,
    ) -> ReadyLaunch {
        ReadyLaunch {
            kernel,
            grid: grid.unwrap_or(self.grid),
            block: block.unwrap_or(self.block),
            shared_bytes: shared_bytes.unwrap_or(self.shared_bytes),
            words: self.words.clone(),
            bytes: self.bytes,
            attributes: self.attributes.clone(),
            number: self.number,
            name: self.name.clone(),
        }
    }

    /// Gives the launch to the GPU.
    pub fn start(&self, driver: &Driver) -> Result<(), Error> {
        let base = self.words.as_ptr().cast::<u8>().cast_mut();
        let at = |offset: u64| base.wrapping_add(offset as usize).cast::<c_void>();
        let config = LaunchConfig {
            grid: self.grid,
            block: self.block,
            shared_bytes: self.shared_bytes,
            stream: ptr::null_mut(),
            attributes: self.attributes.as_ptr(),
            attribute_count: self.attributes.len() as u32,
        };
        let mut size = self.bytes;
        let mut packed = [
            ptr::without_provenance_mut(BUFFER),
            base.cast::<c_void>(),
            ptr::without_provenance_mut(BUFFER_BYTES),
            ptr::from_mut(&mut size).cast(),
            ptr::null_mut(),
        ];
        let fits = |(offset, bytes): &(u64, u64)| {
            offset
                .checked_add(*bytes)
                .is_some_and(|end| end <= self.bytes as u64)
        };
        let known = self
            .kernel
            .parameters
            .as_ref()
            .filter(|all| all.iter().all(fits) && (!all.is_empty() || self.bytes == 0));
        let mut single: Vec<*mut c_void> = known
            .map(|all| all.iter().map(|(offset, _)| at(*offset)).collect())
            .unwrap_or_default();
        let (single, packed) = match known {
            Some(_) => (single.as_mut_ptr(), ptr::null_mut()),
            None => (ptr::null_mut(), packed.as_mut_ptr()),
        };
        // SAFETY: each address has as many bytes behind it as the driver says that the parameter has, or the driver takes
        // the bytes as they were captured. It copies them before it returns.
        let started = unsafe { driver.launch(&config, self.kernel.function, single, packed) };
        started.map_err(|code| self.failed(code))
    }

    /// Waits for the GPU, at most for the limit.
    pub fn wait(&self, driver: &Driver, limit: Duration) -> Result<(), Error> {
        let since = Instant::now();
        loop {
            match driver.progress() {
                Progress::Done => return Ok(()),
                Progress::Failed(code) => return Err(self.failed(code)),
                Progress::Working => {}
            }
            let passed = since.elapsed();
            if passed > limit {
                return Err(Error::TimeLimit {
                    launch: self.number,
                    kernel: self.name.clone(),
                    seconds: limit.as_secs(),
                });
            }
            match passed > ASK_FOR {
                true => std::thread::sleep(ASK_EVERY),
                false => std::hint::spin_loop(),
            }
        }
    }

    fn failed(&self, code: String) -> Error {
        Error::Launch {
            launch: self.number,
            kernel: self.name.clone(),
            code,
        }
    }
}

/// Returns the parameters of a launch with the addresses that globals have in this process.
pub fn relocated(
    capture: &CudaCapture,
    placed: &Placed,
    launch: &Launch,
) -> Result<Vec<u8>, Error> {
    let mut parameters = launch.parameters.clone();
    for relocation in &launch.relocations {
        let at = relocation.at as usize;
        let (Some(bytes), Some(global)) = (
            parameters
                .get_mut(at..)
                .and_then(|rest| rest.first_chunk_mut::<8>()),
            capture.memories.get(&relocation.memory),
        ) else {
            continue;
        };
        let MemoryAddress::Device(address) = placed.place(relocation.memory)? else {
            continue;
        };
        let offset = u64::from_le_bytes(*bytes).wrapping_sub(global.address);
        *bytes = address.wrapping_add(offset).to_le_bytes();
    }
    Ok(parameters)
}
