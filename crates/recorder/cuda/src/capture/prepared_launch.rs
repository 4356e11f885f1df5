//! Finds out what a launch runs on, before anything is copied or written: a call goes in, its code, its parameters and
//! the attributes of its function come out, or the reason why it cannot be captured.

use super::copier::Range;
use super::driver_functions::DriverFunctions;
use super::launch_call::LaunchCall;
use super::loaded_code::{self, Cubin, FunctionHandles};
use super::refusal::{Refusal, waits_for_others};
use super::texture_handles;
use super::{MAX_PARAMETER_BYTES, function_name};
use gapscope_capture::cuda::FunctionAttributes;
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// CUfunction_attribute: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, …_PREFERRED_SHARED_MEMORY_CARVEOUT,
/// …_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
const MAX_DYNAMIC_SHARED: i32 = 8;
const CARVEOUT: i32 = 9;
const NON_PORTABLE_CLUSTER: i32 = 14;
/// CUDA_ERROR_INVALID_VALUE: there is no such parameter.
const INVALID_VALUE: i32 = 1;
/// What code calls that allocates memory on the GPU.
const ALLOCATING: [&str; 2] = ["malloc", "free"];

/// A launch that can be captured, as far as is known before its memory is read.
#[derive(Debug)]
pub struct PreparedLaunch {
    pub kernel: String,
    pub cubin: Arc<Cubin>,
    /// The CUmodule; null where the driver does not say it.
    pub module: *mut c_void,
    pub parameters: Vec<u8>,
    pub attributes: FunctionAttributes,
}

impl PreparedLaunch {
    /// Prepares a launch.
    ///
    /// # Errors
    /// The launch cannot be captured right.
    ///
    /// # Safety
    /// The call is the program's, and has begun.
    pub unsafe fn new(driver: &DriverFunctions, call: &LaunchCall) -> Result<Self, Refusal> {
        // SAFETY: as the caller promises.
        let handles = unsafe { FunctionHandles::find(driver, call.function) };
        let kernel = function_name(driver, call.function).map_err(Refusal::NoName)?;
        if waits_for_others(&kernel) {
            return Err(Refusal::WaitsForOthers { kernel });
        }
        let mut cubins = loaded_code::candidates(&handles.code(), &kernel);
        let count = cubins.len();
        let cubin = match (cubins.pop(), count) {
            (Some(cubin), 1) => cubin,
            (None, _) => return Err(Refusal::NoCode { kernel }),
            _ => return Err(Refusal::SeveralCodes { kernel, count }),
        };
        if cubin.symbols().is_none() {
            return Err(Refusal::UnreadableCode { kernel });
        }
        if cubin.refers_to(&kernel, &ALLOCATING) {
            return Err(Refusal::Allocates { kernel });
        }
        // SAFETY: as the caller promises.
        let Some(parameters) = (unsafe { parameters(driver, call, &handles) }) else {
            return Err(Refusal::NoParameters { kernel });
        };
        if texture_handles::is_among(&parameters) {
            return Err(Refusal::Texture { kernel });
        }
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: the driver's function, which stores a number.
            let code =
                unsafe { (driver.function_attribute)(&mut value, attribute, handles.function) };
            (code == 0).then_some(value)
        };
        let usual = FunctionAttributes::default();
        Ok(PreparedLaunch {
            attributes: FunctionAttributes {
                max_dynamic_shared_bytes: (attribute(MAX_DYNAMIC_SHARED))
                    .unwrap_or(usual.max_dynamic_shared_bytes),
                shared_carveout: attribute(CARVEOUT).unwrap_or(usual.shared_carveout),
                non_portable_cluster: attribute(NON_PORTABLE_CLUSTER) == Some(1),
            },
            kernel,
            cubin,
            module: handles.module,
            parameters,
        })
    }
}

impl PreparedLaunch {
    /// Returns where the variables of the code are. Names that the driver does not know belong to functions that no
    /// kernel here uses.
    pub fn variables(&self, driver: &DriverFunctions) -> Vec<(&str, Range)> {
        let mut found = Vec::new();
        for name in self
            .cubin
            .symbols()
            .into_iter()
            .flat_map(|symbols| &symbols.variables)
        {
            let (mut address, mut bytes) = (0, 0);
            let Ok(text) = CString::new(name.as_str()) else {
                continue;
            };
            // SAFETY: the driver's function with the module of the launch; it stores numbers.
            let code = unsafe {
                (driver.module_global)(&mut address, &mut bytes, self.module, text.as_ptr())
            };
            if code == 0 && bytes > 0 {
                let bytes = bytes as u64;
                found.push((name.as_str(), Range { address, bytes }));
            }
        }
        found
    }
}

/// Returns the parameters as the kernel reads them; `None` where the driver does not say their places.
///
/// # Safety
/// The call is the program's, and has begun.
unsafe fn parameters(
    driver: &DriverFunctions,
    call: &LaunchCall,
    handles: &FunctionHandles,
) -> Option<Vec<u8>> {
    if let Some(packed) = &call.packed {
        return Some(packed.clone());
    }
    let mut parameters: Vec<u8> = Vec::new();
    for index in 0.. {
        let (mut offset, mut bytes) = (0, 0);
        // SAFETY: the driver's functions, which store numbers, or answer with an error after the last parameter.
        let code = unsafe {
            match handles.kernel {
                Some(kernel) => (driver.kernel_parameter)(kernel, index, &mut offset, &mut bytes),
                None => {
                    (driver.function_parameter)(handles.function, index, &mut offset, &mut bytes)
                }
            }
        };
        match code {
            0 => {}
            INVALID_VALUE => break,
            _ => return None,
        }
        let end = offset.checked_add(bytes)?;
        if end > MAX_PARAMETER_BYTES || call.parameters.is_null() {
            return None;
        }
        if parameters.len() < end {
            parameters.resize(end, 0);
        }
        // SAFETY: the program hands over an address for each parameter of the kernel, with so many bytes.
        unsafe {
            let from = *call.parameters.add(index);
            if from.is_null() {
                return None;
            }
            std::ptr::copy_nonoverlapping(from, parameters[offset..].as_mut_ptr(), bytes);
        }
    }
    Some(parameters)
}
