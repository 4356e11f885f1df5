//! The tables of NVTX's functions, which a tool fills at the first call, as NVTX's header hands them out.

use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;

/// The longest table: NVTX_CBID_CORE2_SIZE.
const LENGTH: usize = 16;
pub const CORE: usize = 1;
pub const CUDA: usize = 2;
pub const CUDART: usize = 4;
pub const CORE2: usize = 5;

struct Tables {
    /// The functions; null where no tool has put one.
    functions: [[*const c_void; LENGTH]; 6],
    /// The addresses of the functions, as NVTX hands them out.
    slots: [[*mut *const c_void; LENGTH]; 6],
}

#[repr(C)]
struct Callbacks {
    size: usize,
    module_table: unsafe extern "C" fn(u32, *mut *mut *mut *const c_void, *mut u32) -> c_int,
}

static CALLBACKS: Callbacks = Callbacks {
    size: size_of::<Callbacks>(),
    module_table,
};

struct Nvtx(*mut Tables);
// SAFETY: the tables are written by the tool before they are shared.
unsafe impl Send for Nvtx {}
// SAFETY: as above.
unsafe impl Sync for Nvtx {}

static NVTX: OnceLock<Nvtx> = OnceLock::new();

unsafe extern "C" fn export_table(id: u32) -> *const c_void {
    if id == 1 {
        (&raw const CALLBACKS).cast()
    } else {
        std::ptr::null()
    }
}

static BEING_FILLED: OnceLock<Nvtx> = OnceLock::new();

unsafe extern "C" fn module_table(
    module: u32,
    table: *mut *mut *mut *const c_void,
    length: *mut u32,
) -> c_int {
    let Some(Nvtx(tables)) = BEING_FILLED.get() else {
        return 0;
    };
    if ![CORE, CUDA, CUDART, CORE2].contains(&(module as usize)) {
        return 0;
    }
    // SAFETY: the tables live as long as the program; the others are the tool's variables.
    unsafe {
        *table = (&raw mut (**tables).slots[module as usize]).cast();
        *length = LENGTH as u32;
    }
    1
}

/// Returns a function of the tool's library, of the type `F`, where there is a tool.
///
/// # Safety
/// `F` is the type of the function.
pub unsafe fn function_of_tool<F>(name: &CStr) -> Option<F> {
    let path = std::env::var_os("NVTX_INJECTION64_PATH")?;
    let path = CString::new(path.into_vec()).expect("no NUL");
    // SAFETY: as NVTX's header does.
    unsafe {
        let tool = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!tool.is_null(), "{path:?} cannot be loaded");
        let function = libc::dlsym(tool, name.as_ptr());
        assert!(!function.is_null(), "{path:?} has no {name:?}");
        Some(std::mem::transmute_copy(&function))
    }
}

/// Returns the function of this number, null where no tool has put one. The first call asks the tool for them.
pub fn function(module: usize, number: usize) -> *const c_void {
    let Nvtx(tables) = NVTX.get_or_init(|| {
        let tables = Box::leak(Box::new(Tables {
            functions: [[std::ptr::null(); LENGTH]; 6],
            slots: [[std::ptr::null_mut(); LENGTH]; 6],
        }));
        for (functions, slots) in tables.functions.iter_mut().zip(&mut tables.slots) {
            for (function, slot) in functions.iter_mut().zip(slots).skip(1) {
                *slot = function;
            }
        }
        let tables: *mut Tables = tables;
        let _ = BEING_FILLED.set(Nvtx(tables));
        type Attach = extern "C" fn(unsafe extern "C" fn(u32) -> *const c_void) -> c_int;
        // SAFETY: the function has this type in NVTX's header.
        if let Some(attach) = unsafe { function_of_tool::<Attach>(c"InitializeInjectionNvtx2") } {
            attach(export_table);
        }
        Nvtx(tables)
    });
    // SAFETY: the tables are leaked, and not written any more.
    unsafe { (**tables).functions[module][number] }
}
