//! Loads the code of a capture, each module once, and finds its kernels with the layout of their parameters.

use std::collections::BTreeMap;
use std::ffi::c_int;

use gapscope_capture::cuda::{CudaCapture, FunctionAttributes, Launch};
use gapscope_capture::model::ModuleId;

use crate::driver::{Driver, FunctionHandle, ModuleHandle, function_attribute};
use crate::error::Error;

/// The most shared memory of a block that needs no attribute of the function.
const USUAL_SHARED_BYTES: u32 = 48 << 10;

/// A kernel that can be launched.
#[derive(Clone)]
pub struct Kernel {
    pub function: FunctionHandle,
    /// Offset and size of each parameter; `None` where the driver cannot tell.
    pub parameters: Option<Vec<(u64, u64)>>,
}

/// The loaded modules.
#[derive(Default)]
pub struct Modules {
    handles: BTreeMap<ModuleId, ModuleHandle>,
    kernels: BTreeMap<(ModuleId, String), Kernel>,
}

impl Modules {
    /// Loads the modules that launches of a capture use, and finds the kernels.
    pub fn load(driver: &Driver, capture: &CudaCapture) -> Result<Modules, Error> {
        let mut modules = Modules::default();
        for module in capture.modules.values() {
            let code = capture.code(module).map_err(Error::Content)?;
            let bytes = code.len();
            let what = format!("module {} of {bytes} bytes", module.id);
            modules
                .handles
                .insert(module.id, driver.load(&code, &what)?);
        }
        for launch in capture.launches() {
            let key = (launch.module, launch.kernel.clone());
            if !modules.kernels.contains_key(&key) {
                let handle = modules.handle(launch.module)?;
                let kernel = Kernel::find(driver, handle, &launch.kernel)?;
                modules.kernels.insert(key, kernel);
            }
        }
        Ok(modules)
    }

    /// Returns a loaded module.
    pub fn handle(&self, module: ModuleId) -> Result<ModuleHandle, Error> {
        let handle = self.handles.get(&module).copied();
        handle.ok_or_else(|| Error::Unsupported(format!("module {module} is not in the capture")))
    }

    /// Returns the kernel of a launch.
    pub fn kernel(&self, launch: &Launch) -> Result<&Kernel, Error> {
        let kernel = self.kernels.get(&(launch.module, launch.kernel.clone()));
        kernel.ok_or_else(|| Error::Unsupported(format!("kernel {} is not loaded", launch.kernel)))
    }
}

impl Kernel {
    /// Finds a kernel of a loaded module.
    pub fn find(driver: &Driver, module: ModuleHandle, name: &str) -> Result<Kernel, Error> {
        let function = driver.function(module, name)?;
        Ok(Kernel {
            function,
            parameters: driver.parameters(function),
        })
    }

    /// Gives the function the attributes that a launch needs.
    pub fn prepare(
        &self,
        driver: &Driver,
        attributes: &FunctionAttributes,
        shared_bytes: u32,
    ) -> Result<(), Error> {
        for (attribute, value) in needed_attributes(attributes, shared_bytes) {
            driver.set_function(self.function, attribute, value)?;
        }
        Ok(())
    }
}

/// Returns the numbers and values of the attributes that a function needs for a launch.
pub fn needed_attributes(attributes: &FunctionAttributes, shared_bytes: u32) -> Vec<(c_int, i32)> {
    let needed = match shared_bytes > USUAL_SHARED_BYTES {
        true => i32::try_from(shared_bytes).unwrap_or(i32::MAX),
        false => 0,
    };
    let most = attributes.max_dynamic_shared_bytes.max(needed);
    let carveout = attributes.shared_carveout;
    let all = [
        (most > USUAL_SHARED_BYTES as i32)
            .then_some((function_attribute::MAX_DYNAMIC_SHARED_BYTES, most)),
        (carveout >= 0).then_some((function_attribute::SHARED_CARVEOUT, carveout)),
        (attributes.non_portable_cluster).then_some((function_attribute::NON_PORTABLE_CLUSTER, 1)),
    ];
    all.into_iter().flatten().collect()
}
