//! What the driver says of functions, and of the kernels of libraries.

use super::kernels::Program;
use super::modules::{function_of, store};
use super::{Function, INVALID_HANDLE, INVALID_VALUE, SUCCESS, driver, names, of_driver, run};
use std::ffi::c_int;

// Every pointer is the caller's variable, as in CUDA.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuKernelGetFunction(function: *mut usize, kernel: usize) -> c_int {
    let parameters = [function as usize, kernel];
    run(
        of_driver(names::CU_KERNEL_GET_FUNCTION, &parameters),
        |locked, _, _| {
            let (locked, found) = function_of(locked, kernel);
            (locked, store(function, found))
        },
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuKernelGetLibrary(library: *mut usize, kernel: usize) -> c_int {
    let driver = driver();
    let found = driver.modules.kernel(kernel);
    store(library, found.map(|kernel| kernel.library))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuKernelGetName(name: *mut usize, kernel: usize) -> c_int {
    store(
        name,
        driver().modules.kernel_name(kernel).ok_or(INVALID_HANDLE),
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetName(name: *mut usize, function: usize) -> c_int {
    store(name, with_function(function, |function| Ok(function.name)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetModule(module: *mut usize, function: usize) -> c_int {
    store(
        module,
        with_function(function, |function| Ok(function.module)),
    )
}

fn with_function<T>(
    function: usize,
    value: impl FnOnce(&mut Function) -> Result<T, c_int>,
) -> Result<T, c_int> {
    let mut driver = driver();
    value(driver.functions.get_mut(&function).ok_or(INVALID_HANDLE)?)
}

/// Stores the offset and size of a parameter. Kernels that the stub does not know have none.
fn store_parameter(
    program: Result<Option<Program>, c_int>,
    index: usize,
    offset: *mut usize,
    size: *mut usize,
) -> c_int {
    let parameters = match program {
        Ok(program) => program.map_or(&[][..], Program::parameters),
        Err(code) => return code,
    };
    let Some((at, bytes)) = parameters.get(index) else {
        return INVALID_VALUE;
    };
    store(offset, Ok(*at));
    store(size, Ok(*bytes))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetParamInfo(
    function: usize,
    index: usize,
    offset: *mut usize,
    size: *mut usize,
) -> c_int {
    let program = with_function(function, |function| Ok(function.program));
    store_parameter(program, index, offset, size)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuKernelGetParamInfo(
    kernel: usize,
    index: usize,
    offset: *mut usize,
    size: *mut usize,
) -> c_int {
    let program = driver().modules.program_of(kernel);
    store_parameter(program, index, offset, size)
}

/// CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, …_NUM_REGS, …_PTX_VERSION, …_BINARY_VERSION
const SAID: [(c_int, c_int); 4] = [(0, 1024), (4, 32), (5, 90), (6, 90)];

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    function: usize,
) -> c_int {
    let found = with_function(function, |function| {
        let settable = Function::SETTABLE
            .iter()
            .position(|known| *known == attribute);
        let said = SAID.iter().find(|(known, _)| *known == attribute);
        match (settable, attribute) {
            (Some(index), _) => Ok(function.attributes[index]),
            (None, 0..16) => Ok(said.map_or(0, |(_, said)| *said)),
            _ => Err(INVALID_VALUE),
        }
    });
    store(value, found)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(function: usize, attribute: c_int, value: c_int) -> c_int {
    let set = with_function(function, |function| {
        let settable = Function::SETTABLE
            .iter()
            .position(|known| *known == attribute);
        function.attributes[settable.ok_or(INVALID_VALUE)?] = value;
        Ok(())
    });
    set.map_or_else(|code| code, |()| SUCCESS)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuKernelGetAttribute(
    value: *mut c_int,
    attribute: c_int,
    kernel: usize,
    _device: c_int,
) -> c_int {
    let (locked, function) = function_of(driver(), kernel);
    drop(locked);
    match function {
        // SAFETY: the caller's variable.
        Ok(function) => unsafe { cuFuncGetAttribute(value, attribute, function) },
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuKernelSetAttribute(
    attribute: c_int,
    value: c_int,
    kernel: usize,
    _device: c_int,
) -> c_int {
    let (locked, function) = function_of(driver(), kernel);
    drop(locked);
    match function {
        Ok(function) => cuFuncSetAttribute(function, attribute, value),
        Err(code) => code,
    }
}
