//! Loaded code: modules with their functions and globals, and libraries, whose module is loaded when a function of it is needed.

use super::address_space::{AddressSpace, MemoryKind};
use super::code::{self, Code};
use super::kernels::Program;
use super::memory::OUT_OF_MEMORY;
use super::{
    Api, CONTEXT, Driver, Function, INVALID_HANDLE, INVALID_VALUE, Locked, NOT_FOUND, SUCCESS,
    call, driver, of_driver, run,
};
use crate::config::config;
use crate::cupti::{callbacks, pc_sampling};
use crate::names;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

/// The room for a kernel's name.
const NAME_BYTES: usize = 512;

/// The loaded code, by handle.
#[derive(Default)]
pub struct Modules {
    modules: HashMap<usize, Module>,
    libraries: HashMap<usize, Library>,
    kernels: HashMap<usize, KernelOf>,
    free_names: Vec<usize>,
}

pub struct Module {
    functions: Vec<(String, usize)>,
    /// The name of each global, its address and its size.
    globals: Vec<(String, u64, u64)>,
}

struct Library {
    image: Vec<u8>,
    /// The module, once it is loaded.
    module: Option<usize>,
    kernels: Vec<(String, usize)>,
}

/// A kernel of a library. Its handle can be launched like a function's, but is none.
pub struct KernelOf {
    pub library: usize,
    pub name: CString,
}

/// Returns the bytes of an image: an ELF file, which ends with its section or segment headers, or a text.
///
/// # Safety
/// The image is a text, or an ELF file.
unsafe fn bytes_of<'a>(image: *const u8) -> &'a [u8] {
    // SAFETY: as the caller promises.
    unsafe {
        let text = CStr::from_ptr(image.cast()).to_bytes();
        if text.first_chunk() != Some(b"\x7fELF\x02") {
            return text;
        }
        let word = |at: usize| image.add(at).cast::<u64>().read_unaligned() as usize;
        let half = |at: usize| usize::from(image.add(at).cast::<u16>().read_unaligned());
        let segments = word(0x20) + half(0x36) * half(0x38);
        let sections = word(0x28) + half(0x3a) * half(0x3c);
        std::slice::from_raw_parts(image, segments.max(sections))
    }
}

fn cubin(image: &[u8]) -> Option<&[u8]> {
    image.starts_with(b"\x7fELF").then_some(image)
}

/// Returns the code of an ELF file, or that of a text in PTX, which has no globals here.
fn code_of(image: &[u8]) -> Option<Code> {
    if cubin(image).is_some() {
        return code::read(image);
    }
    let text = String::from_utf8_lossy(image);
    let entries = text.split(".entry ").skip(1);
    let names = entries.filter_map(|rest| rest.split(['(', ' ', '\n']).next());
    let kernels: Vec<_> = names
        .map(|name| (name.to_owned(), Program::of_name(name)))
        .collect();
    (!kernels.is_empty()).then(|| Code {
        kernels,
        globals: Vec::new(),
    })
}

impl Modules {
    /// Returns the address of a global of a module.
    pub fn global(&self, module: usize, name: &str) -> Option<(u64, u64)> {
        let globals = &self.modules.get(&module)?.globals;
        let (_, address, bytes) = globals.iter().find(|(known, ..)| known == name)?;
        Some((*address, *bytes))
    }

    /// Returns the address of the name of a kernel of a library.
    pub fn kernel_name(&self, kernel: usize) -> Option<usize> {
        Some(self.kernels.get(&kernel)?.name.as_ptr() as usize)
    }

    pub fn kernel(&self, handle: usize) -> Result<&KernelOf, c_int> {
        self.kernels.get(&handle).ok_or(INVALID_HANDLE)
    }

    /// Returns the program of a kernel of a library, whether that is loaded or not.
    pub fn program_of(&self, kernel: usize) -> Result<Option<Program>, c_int> {
        let kernel = self.kernel(kernel)?;
        let library = self.libraries.get(&kernel.library).ok_or(INVALID_HANDLE)?;
        let code = code_of(&library.image).ok_or(INVALID_HANDLE)?;
        let name = kernel.name.to_string_lossy();
        let found = code.kernels.iter().find(|(known, _)| *known == name);
        Ok(found.and_then(|(_, program)| *program))
    }

    pub fn is_kernel(&self, handle: usize) -> bool {
        self.kernels.contains_key(&handle)
    }
}

/// Adds the module of an image. Its handle is that of its first function.
fn add_module(driver: &mut Driver, image: &[u8]) -> Result<usize, c_int> {
    let code = code_of(image).ok_or(INVALID_VALUE)?;
    if code
        .kernels
        .iter()
        .any(|(name, _)| name.len() >= NAME_BYTES)
    {
        return Err(INVALID_VALUE);
    }
    let module = driver.handle();
    let mut functions = Vec::new();
    for (name, program) in code.kernels {
        let handle = match functions.is_empty() {
            true => module,
            false => driver.handle(),
        };
        let place = (driver.modules.free_names.pop())
            .unwrap_or_else(|| Box::leak(Box::new([0u8; NAME_BYTES])).as_mut_ptr() as usize);
        let text = format!("{name}\0");
        // SAFETY: the place has room, and is in use by no other module.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), place as *mut u8, text.len()) };
        let function = Function {
            name: place,
            loaded: false,
            crc: cubin(image).map_or(0, pc_sampling::crc),
            program,
            module,
            attributes: Function::ATTRIBUTES,
        };
        driver.functions.insert(handle, function);
        functions.push((name, handle));
    }
    let mut globals = Vec::new();
    for (name, bytes) in code.globals {
        let (size, context) = (bytes.len() as u64, CONTEXT.get());
        let address = driver
            .memory
            .space
            .allocate(size, MemoryKind::Global, context);
        let address = address.ok_or(OUT_OF_MEMORY)?;
        // SAFETY: the memory is new, and has so many bytes.
        unsafe { AddressSpace::copy(address, bytes.as_ptr() as u64, size) };
        globals.push((name, address, size));
    }
    let made = Module { functions, globals };
    driver.modules.modules.insert(module, made);
    Ok(module)
}

fn remove_module(driver: &mut Driver, module: usize) -> bool {
    let Some(module) = driver.modules.modules.remove(&module) else {
        return false;
    };
    for (_, handle) in module.functions {
        if let Some(function) = driver.functions.remove(&handle) {
            driver.modules.free_names.push(function.name);
        }
    }
    for (_, address, _) in module.globals {
        driver.memory.space.remove(address);
    }
    true
}

/// Loads an image; CUPTI is told of it inside the call.
fn load(api: Api<'_>, module: *mut usize, image: &[u8]) -> c_int {
    run(api, |mut locked, _, _| {
        match add_module(&mut locked, image) {
            Ok(handle) => {
                // SAFETY: the variable of the call's caller.
                unsafe { *module = handle };
                drop(locked);
                callbacks::deliver_resource(callbacks::MODULE_LOADED, CONTEXT.get(), cubin(image));
                (driver(), SUCCESS)
            }
            Err(code) => (locked, code),
        }
    })
}

// Every pointer is the caller's variable, text or array, as in CUDA.

/// Loads the kernels of a text in PTX, or of an ELF file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(module: *mut usize, image: *const c_char) -> c_int {
    let parameters = [module as usize, image as usize];
    // SAFETY: the caller's text or ELF file.
    let bytes = unsafe { bytes_of(image.cast()) };
    load(
        of_driver(names::CU_MODULE_LOAD_DATA, &parameters),
        module,
        bytes,
    )
}

/// Loads a module without regard to the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut usize,
    image: *const c_char,
    count: c_uint,
    options: *mut c_int,
    values: *mut *mut c_void,
) -> c_int {
    let parameters = [
        module as usize,
        image as usize,
        count as usize,
        options as usize,
        values as usize,
    ];
    // SAFETY: the caller's text or ELF file.
    let bytes = unsafe { bytes_of(image.cast()) };
    load(
        of_driver(names::CU_MODULE_LOAD_DATA_EX, &parameters),
        module,
        bytes,
    )
}

/// Takes what [`cuModuleLoadData`] takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadFatBinary(module: *mut usize, image: *const c_char) -> c_int {
    let parameters = [module as usize, image as usize];
    // SAFETY: the caller's text or ELF file.
    let bytes = unsafe { bytes_of(image.cast()) };
    load(
        of_driver(names::CU_MODULE_LOAD_FAT_BINARY, &parameters),
        module,
        bytes,
    )
}

/// Reads a file that a call names.
///
/// # Safety
/// `path` is a text.
unsafe fn file(path: *const c_char) -> Option<Vec<u8>> {
    // SAFETY: as the caller promises.
    let path = unsafe { CStr::from_ptr(path) };
    std::fs::read(path.to_str().ok()?).ok()
}

/// CUDA_ERROR_FILE_NOT_FOUND
const NO_FILE: c_int = 301;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoad(module: *mut usize, path: *const c_char) -> c_int {
    let parameters = [module as usize, path as usize];
    // SAFETY: the caller's text.
    let Some(bytes) = (unsafe { file(path) }) else {
        return NO_FILE;
    };
    load(
        of_driver(names::CU_MODULE_LOAD, &parameters),
        module,
        &bytes,
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: usize) -> c_int {
    let parameters = [module];
    run(
        of_driver(names::CU_MODULE_UNLOAD, &parameters),
        |locked, _, _| {
            drop(locked);
            callbacks::deliver_resource(callbacks::MODULE_ENDS, CONTEXT.get(), None);
            let mut driver = driver();
            let code = match remove_module(&mut driver, module) {
                true => SUCCESS,
                false => INVALID_HANDLE,
            };
            (driver, code)
        },
    )
}

/// Returns the value that a caller's variable gets, or a code.
pub fn store<T>(place: *mut T, value: Result<T, c_int>) -> c_int {
    match value {
        Ok(value) => {
            if !place.is_null() {
                // SAFETY: the caller's variable, as each function here promises.
                unsafe { *place = value };
            }
            SUCCESS
        }
        Err(code) => code,
    }
}

/// Returns the text of a caller.
///
/// # Safety
/// `name` is a text.
unsafe fn text<'a>(name: *const c_char) -> &'a str {
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(name) }.to_str().unwrap_or_default()
}

fn named(all: &[(String, usize)], name: &str) -> Result<usize, c_int> {
    let found = all.iter().find(|(known, _)| known == name);
    found.map(|(_, handle)| *handle).ok_or(NOT_FOUND)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(
    function: *mut usize,
    module: usize,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller's text.
    let name = unsafe { text(name) };
    let driver = driver();
    let found = driver.modules.modules.get(&module).ok_or(INVALID_HANDLE);
    store(
        function,
        found.and_then(|module| named(&module.functions, name)),
    )
}

/// Stores the address and the size of a global.
///
/// # Safety
/// Both are variables of the caller, or null.
unsafe fn store_global(address: *mut u64, bytes: *mut usize, global: Option<(u64, u64)>) -> c_int {
    let Some((at, size)) = global else {
        return NOT_FOUND;
    };
    store(address, Ok(at));
    store(bytes, Ok(size as usize))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetGlobal_v2(
    address: *mut u64,
    bytes: *mut usize,
    module: usize,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller's text and variables.
    unsafe {
        let found = driver().modules.global(module, text(name));
        store_global(address, bytes, found)
    }
}

/// Loads a library's module, unless it is loaded, with a callback inside the call that needs it.
fn load_library(mut locked: Locked, library: usize) -> (Locked, Result<usize, c_int>) {
    let Some(known) = locked.modules.libraries.get(&library) else {
        return (locked, Err(INVALID_HANDLE));
    };
    if let Some(module) = known.module {
        return (locked, Ok(module));
    }
    let image = known.image.clone();
    let made = add_module(&mut locked, &image);
    if let (Ok(module), Some(known)) = (made, locked.modules.libraries.get_mut(&library)) {
        known.module = Some(module);
        drop(locked);
        callbacks::deliver_resource(callbacks::MODULE_LOADED, CONTEXT.get(), cubin(&image));
        locked = driver();
    }
    (locked, made)
}

/// Returns the function of a kernel of a library, whose module it loads.
pub fn function_of(locked: Locked, kernel: usize) -> (Locked, Result<usize, c_int>) {
    let Some(known) = locked.modules.kernels.get(&kernel) else {
        return (locked, Err(INVALID_HANDLE));
    };
    let (library, name) = (known.library, known.name.clone());
    let (locked, module) = load_library(locked, library);
    let found = module.and_then(|module| {
        let module = locked.modules.modules.get(&module).ok_or(INVALID_HANDLE)?;
        named(&module.functions, &name.to_string_lossy())
    });
    (locked, found)
}

/// Makes a library; `FAKE_CUDA_LAZY=1` puts the loading of its module off.
fn make_library(api: Api<'_>, library: *mut usize, image: &[u8]) -> c_int {
    run(api, |mut locked, _, _| {
        let Some(code) = code_of(image) else {
            return (locked, INVALID_VALUE);
        };
        let handle = locked.handle();
        let mut kernels = Vec::new();
        for (name, _) in code.kernels {
            let kernel = locked.handle();
            let known = KernelOf {
                library: handle,
                name: CString::new(name.clone()).unwrap_or_default(),
            };
            locked.modules.kernels.insert(kernel, known);
            kernels.push((name, kernel));
        }
        let made = Library {
            image: image.to_owned(),
            module: None,
            kernels,
        };
        locked.modules.libraries.insert(handle, made);
        // SAFETY: the variable of the call's caller.
        unsafe { *library = handle };
        if config().lazy {
            return (locked, SUCCESS);
        }
        let (locked, loaded) = load_library(locked, handle);
        (locked, loaded.map_or_else(|code| code, |_| SUCCESS))
    })
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn cuLibraryLoadData(
    library: *mut usize,
    image: *const c_char,
    options: usize,
    values: usize,
    count: c_uint,
    more: usize,
    more_values: usize,
    more_count: c_uint,
) -> c_int {
    let parameters = [
        library as usize,
        image as usize,
        options,
        values,
        count as usize,
        more,
        more_values,
        more_count as usize,
    ];
    // SAFETY: the caller's text or ELF file.
    let bytes = unsafe { bytes_of(image.cast()) };
    make_library(
        of_driver(names::CU_LIBRARY_LOAD_DATA, &parameters),
        library,
        bytes,
    )
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn cuLibraryLoadFromFile(
    library: *mut usize,
    path: *const c_char,
    options: usize,
    values: usize,
    count: c_uint,
    more: usize,
    more_values: usize,
    more_count: c_uint,
) -> c_int {
    let parameters = [
        library as usize,
        path as usize,
        options,
        values,
        count as usize,
        more,
        more_values,
        more_count as usize,
    ];
    // SAFETY: the caller's text.
    let Some(bytes) = (unsafe { file(path) }) else {
        return NO_FILE;
    };
    let api = of_driver(names::CU_LIBRARY_LOAD_FROM_FILE, &parameters);
    make_library(api, library, &bytes)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLibraryUnload(library: usize) -> c_int {
    let parameters = [library];
    call(
        of_driver(names::CU_LIBRARY_UNLOAD, &parameters),
        |driver, _, _| {
            let Some(known) = driver.modules.libraries.remove(&library) else {
                return INVALID_HANDLE;
            };
            for (_, kernel) in known.kernels {
                driver.modules.kernels.remove(&kernel);
            }
            if let Some(module) = known.module {
                remove_module(driver, module);
            }
            SUCCESS
        },
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLibraryGetKernel(
    kernel: *mut usize,
    library: usize,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller's text.
    let name = unsafe { text(name) };
    let driver = driver();
    let found = driver.modules.libraries.get(&library).ok_or(INVALID_HANDLE);
    store(
        kernel,
        found.and_then(|library| named(&library.kernels, name)),
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLibraryGetModule(module: *mut usize, library: usize) -> c_int {
    let parameters = [module as usize, library];
    run(
        of_driver(names::CU_LIBRARY_GET_MODULE, &parameters),
        |locked, _, _| {
            let (locked, found) = load_library(locked, library);
            (locked, store(module, found))
        },
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLibraryGetGlobal(
    address: *mut u64,
    bytes: *mut usize,
    library: usize,
    name: *const c_char,
) -> c_int {
    let parameters = [address as usize, bytes as usize, library, name as usize];
    run(
        of_driver(names::CU_LIBRARY_GET_GLOBAL, &parameters),
        |locked, _, _| {
            let (locked, module) = load_library(locked, library);
            let code = match module {
                // SAFETY: the caller's text and variables.
                Ok(module) => unsafe {
                    let found = locked.modules.global(module, text(name));
                    store_global(address, bytes, found)
                },
                Err(code) => code,
            };
            (locked, code)
        },
    )
}
