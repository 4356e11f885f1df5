//! Keeps the code that the driver has loaded, and says which code a function comes from.
//!
//! CUPTI hands over each cubin while the driver loads it, also those that the driver has made of PTX, but not the handle
//! that the program gets. With lazy loading, the driver loads the code of a library only when a kernel of it is first
//! asked for, inside of that call. So a cubin is noted as loaded inside the thread's current call, and at the end of the
//! call its handle says whose it is. Names alone do not: kernels that compilers generate have one name in many modules.

use super::driver_functions::DriverFunctions;
use crate::instructions::loaded_cubin;
use gapscope_capture::Hash;
use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A handle of code: a CUmodule or a CUlibrary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeHandle {
    Module(usize),
    Library(usize),
}

/// A cubin.
#[derive(Debug)]
pub struct Cubin {
    /// The hash of the bytes.
    pub hash: Hash,
    pub bytes: Vec<u8>,
    /// Its symbols, once they were asked for; `None` in it where the bytes are no ELF file.
    symbols: OnceLock<Option<Symbols>>,
}

/// What a cubin says of itself.
#[derive(Debug, Default)]
pub struct Symbols {
    /// The names of its kernels and device functions.
    pub functions: Vec<String>,
    /// The variables of the GPU.
    pub variables: Vec<String>,
}

/// The loaded cubins.
#[derive(Debug, Default)]
struct Loaded {
    by_handle: FxHashMap<CodeHandle, Vec<Arc<Cubin>>>,
    /// The libraries of modules: the driver makes a module of a library in each context.
    libraries: FxHashMap<usize, usize>,
    /// The CUkernels of CUfunctions that the driver has made of them.
    kernels: FxHashMap<usize, usize>,
    /// Cubins whose handle is not known.
    unclaimed: Vec<Arc<Cubin>>,
}

static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

thread_local! {
    /// The cubins that were loaded inside of the thread's current call.
    static IN_CALL: RefCell<Vec<Arc<Cubin>>> = const { RefCell::new(Vec::new()) };
}

fn loaded() -> MutexGuard<'static, Option<Loaded>> {
    LOADED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a copy of the cubin that CUPTI describes.
///
/// # Safety
/// The pointer is null, or CUPTI's description of a module, whose code exists.
pub unsafe fn keep(module: *const c_void) {
    // SAFETY: as the caller promises.
    let Some(bytes) = (unsafe { loaded_cubin(module) }) else {
        return;
    };
    let cubin = Arc::new(Cubin {
        hash: Hash::new(bytes),
        bytes: bytes.to_vec(),
        symbols: OnceLock::new(),
    });
    IN_CALL.with_borrow_mut(|inside| inside.push(Arc::clone(&cubin)));
    (loaded().get_or_insert_default().unclaimed).push(cubin);
}

/// Forgets which cubins were loaded inside of earlier calls of this thread: another call begins.
pub fn call_begins() {
    IN_CALL.with_borrow_mut(Vec::clear);
}

/// Returns whether code was loaded inside of the thread's current call.
pub fn is_new_in_call() -> bool {
    IN_CALL.with_borrow(|inside| !inside.is_empty())
}

/// Notes that the cubins which were loaded inside of the thread's current call belong to this handle.
pub fn claim(handle: CodeHandle) {
    let inside = IN_CALL.take();
    if inside.is_empty() {
        return;
    }
    let mut locked = loaded();
    let all = locked.get_or_insert_default();
    all.unclaimed
        .retain(|cubin| !inside.iter().any(|other| Arc::ptr_eq(cubin, other)));
    all.by_handle.entry(handle).or_default().extend(inside);
}

/// Notes that a module is one of a library.
pub fn module_of_library(module: usize, library: usize) {
    let mut locked = loaded();
    let all = locked.get_or_insert_default();
    all.libraries.insert(module, library);
}

/// Notes that a CUfunction is one of a CUkernel.
pub fn function_of_kernel(function: usize, kernel: usize) {
    let mut locked = loaded();
    let all = locked.get_or_insert_default();
    all.kernels.insert(function, kernel);
}

/// Returns the CUkernel of a CUfunction, where it is known.
fn kernel_of(function: usize) -> Option<*mut c_void> {
    let mut locked = loaded();
    let kernel = locked.get_or_insert_default().kernels.get(&function);
    kernel.map(|kernel| *kernel as *mut c_void)
}

/// Forgets the code of a handle, which another module may get next.
pub fn forget(handle: CodeHandle) {
    if let Some(all) = &mut *loaded() {
        all.by_handle.remove(&handle);
        match handle {
            CodeHandle::Module(module) => {
                all.libraries.remove(&module);
            }
            CodeHandle::Library(library) => {
                all.libraries.retain(|_, of| *of != library);
                // Its kernels are not known as such, and their handles may get another meaning.
                all.kernels.clear();
            }
        }
    }
}

/// Returns the different cubins that may be a function's: those of its module or library, or else those of which no
/// handle is known, or else any.
pub fn candidates(handles: &[CodeHandle], function: &str) -> Vec<Arc<Cubin>> {
    let (own, unclaimed, others) = {
        let mut locked = loaded();
        let all = locked.get_or_insert_default();
        let libraries = handles.iter().filter_map(|handle| match handle {
            CodeHandle::Module(module) => {
                all.libraries.get(module).copied().map(CodeHandle::Library)
            }
            CodeHandle::Library(_) => None,
        });
        let mut own = Vec::new();
        for handle in handles.iter().copied().chain(libraries) {
            own.extend(all.by_handle.get(&handle).into_iter().flatten().cloned());
        }
        let others: Vec<_> = all.by_handle.values().flatten().cloned().collect();
        (own, all.unclaimed.clone(), others)
    };
    let with_function = |cubins: Vec<Arc<Cubin>>| {
        let mut found: Vec<Arc<Cubin>> = Vec::new();
        for cubin in cubins {
            let is_new = found.iter().all(|other| other.hash != cubin.hash);
            if is_new && cubin.contains(function) {
                found.push(cubin);
            }
        }
        found
    };
    let parts = [own, unclaimed, others].into_iter().map(with_function);
    parts
        .into_iter()
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

impl Cubin {
    /// Returns whether the code has a function of this name.
    fn contains(&self, function: &str) -> bool {
        // The name in the table of names is looked for first, which is much faster than reading the symbols.
        let name = [b"\0", function.as_bytes(), b"\0"].concat();
        memchr::memmem::find(&self.bytes, &name).is_some()
            && self
                .symbols()
                .is_some_and(|symbols| symbols.functions.iter().any(|name| name == function))
    }

    /// Returns the symbols; `None` where the bytes are no ELF file.
    pub fn symbols(&self) -> Option<&Symbols> {
        self.symbols.get_or_init(|| self.read_symbols()).as_ref()
    }

    fn read_symbols(&self) -> Option<Symbols> {
        let file = ElfFile64::<Endianness>::parse(&*self.bytes).ok()?;
        file.elf_header().endian().ok()?;
        let mut symbols = Symbols::default();
        for symbol in file.symbols() {
            let Ok(name) = symbol.name() else { continue };
            if symbol.is_undefined() {
                continue;
            }
            match symbol.kind() {
                SymbolKind::Text => symbols.functions.push(name.to_owned()),
                SymbolKind::Data if symbol.size() > 0 => {
                    let section = symbol.section_index();
                    let section = section.and_then(|index| file.section_by_index(index).ok());
                    let section = section.as_ref().and_then(|section| section.name().ok());
                    if section.is_some_and(is_of_variables) {
                        symbols.variables.push(name.to_owned());
                    }
                }
                _ => {}
            }
        }
        Some(symbols)
    }

    /// Returns whether a function, or one that it calls, refers to a function that the driver provides under one of
    /// these names.
    pub fn refers_to(&self, function: &str, names: &[&str]) -> bool {
        let Ok(file) = ElfFile64::<Endianness>::parse(&*self.bytes) else {
            return false;
        };
        let (mut seen, mut waiting) = (FxHashSet::default(), vec![function.to_owned()]);
        while let Some(function) = waiting.pop() {
            let Some(section) = file.section_by_name(&format!(".text.{function}")) else {
                continue;
            };
            for (_, relocation) in section.relocations() {
                let RelocationTarget::Symbol(index) = relocation.target() else {
                    continue;
                };
                let Ok(symbol) = file.symbol_by_index(index) else {
                    continue;
                };
                let Ok(name) = symbol.name() else { continue };
                if symbol.is_undefined() && names.contains(&name) {
                    return true;
                }
                if symbol.kind() == SymbolKind::Text && seen.insert(name.to_owned()) {
                    waiting.push(name.to_owned());
                }
            }
        }
        false
    }
}

/// Returns whether a section holds variables of the GPU's memory, and not parameters or shared memory.
fn is_of_variables(section: &str) -> bool {
    section.starts_with(".nv.global") || section == ".nv.constant3"
}

/// A function of the driver by its handles.
#[derive(Debug, Clone, Copy)]
pub struct FunctionHandles {
    /// The CUfunction.
    pub function: *mut c_void,
    /// The CUkernel, where the program has launched one.
    pub kernel: Option<*mut c_void>,
    /// The CUmodule; null where the driver does not say it.
    pub module: *mut c_void,
    /// The CUlibrary; null where there is none.
    pub library: *mut c_void,
}

impl FunctionHandles {
    /// Asks the driver what a handle in a launch is: a CUfunction, or a CUkernel in its place. Its code is loaded by
    /// this, if it was not.
    ///
    /// # Safety
    /// The handle is the program's, in a launch that has begun.
    pub unsafe fn find(driver: &DriverFunctions, handle: *mut c_void) -> FunctionHandles {
        let mut found = FunctionHandles {
            function: handle,
            kernel: None,
            module: std::ptr::null_mut(),
            library: std::ptr::null_mut(),
        };
        let mut name = std::ptr::null();
        // SAFETY: the driver's functions. cuFuncGetName checks which kind the handle is of; the others get what they take.
        unsafe {
            if (driver.function_name)(&mut name, handle) != 0 || name.is_null() {
                let mut function = std::ptr::null_mut();
                if (driver.kernel_function)(&mut function, handle) == 0 {
                    found.kernel = Some(handle);
                    found.function = function;
                }
            }
            let of = found.kernel.or_else(|| kernel_of(handle as usize));
            if let Some(kernel) = of
                && (driver.kernel_library)(&mut found.library, kernel) == 0
            {
                claim(CodeHandle::Library(found.library as usize));
            }
            if (driver.function_module)(&mut found.module, found.function) != 0 {
                found.module = std::ptr::null_mut();
            }
        }
        found
    }

    /// Returns the handles of the code.
    pub fn code(&self) -> Vec<CodeHandle> {
        let mut handles = Vec::new();
        if !self.library.is_null() {
            handles.push(CodeHandle::Library(self.library as usize));
        }
        if !self.module.is_null() {
            handles.push(CodeHandle::Module(self.module as usize));
        }
        handles
    }
}
