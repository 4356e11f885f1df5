//! Fills the tables of functions that NVTX offers to a tool, so that the program's NVTX calls reach this library.

use super::{domains, label, names};
use std::ffi::{c_int, c_void};

/// NvtxGetExportTableFunc_t: the function by which NVTX gives a tool its tables.
pub type GetExportTable = unsafe extern "C" fn(u32) -> *const c_void;

/// NVTX_ETID_CALLBACKS: the number of the table of callbacks.
const CALLBACKS: u32 = 1;

/// NvtxExportTableCallbacks: the table of callbacks.
#[repr(C)]
struct Callbacks {
    bytes: usize,
    module_table:
        Option<unsafe extern "C" fn(u32, *mut *mut *mut *const c_void, *mut u32) -> c_int>,
}

/// A module of NVTX: its number, the numbers of its functions, and our functions.
type TableModule = (u32, &'static [(usize, fn() -> *const c_void)]);

/// Lists functions with their numbers in a module of NVTX.
macro_rules! ours {
    ($($number:literal $function:expr,)+) => {
        &[$(($number, || $function as *const c_void),)+]
    };
}

/// All functions that are recorded, by module.
const MODULES: [TableModule; 4] = [
    // NVTX_CB_MODULE_CORE
    (
        1,
        ours! {
            1 label::mark_ex,
            2 label::mark_a,
            3 label::mark_w,
            4 label::start_ex,
            5 label::start_a,
            6 label::start_w,
            7 label::range_end,
            8 label::push_ex,
            9 label::push_a,
            10 label::push_w,
            11 label::pop,
            12 domains::category_a,
            13 domains::category_w,
            14 names::thread_a,
            15 names::thread_w,
        },
    ),
    // NVTX_CB_MODULE_CUDA
    (
        2,
        ours! {
            5 names::stream_a,
            6 names::stream_w,
        },
    ),
    // NVTX_CB_MODULE_CUDART: its streams are those of the driver.
    (
        4,
        ours! {
            3 names::stream_a,
            4 names::stream_w,
        },
    ),
    // NVTX_CB_MODULE_CORE2
    (
        5,
        ours! {
            1 label::domain_mark_ex,
            2 label::domain_start_ex,
            3 label::domain_range_end,
            4 label::domain_push_ex,
            5 label::domain_pop,
            6 names::resource,
            8 domains::domain_category_a,
            9 domains::domain_category_w,
            10 domains::register_a,
            11 domains::register_w,
            12 domains::create_a,
            13 domains::create_w,
        },
    ),
];

/// Puts our functions into a module's tables. Returns false where the module has none: it must not believe that a
/// tool listens.
///
/// # Safety
/// `get` is the function that NVTX passed.
pub unsafe fn attach(get: GetExportTable) -> bool {
    // SAFETY: as the caller promises; the table's size says whether it has the function.
    let module_table = unsafe {
        let callbacks = get(CALLBACKS).cast::<Callbacks>();
        if callbacks.is_null() || (*callbacks).bytes < size_of::<Callbacks>() {
            return false;
        }
        (*callbacks).module_table
    };
    let Some(module_table) = module_table else {
        return false;
    };
    let mut attached = false;
    for (module, functions) in MODULES {
        let mut table: *mut *mut *const c_void = std::ptr::null_mut();
        let mut length = 0;
        // SAFETY: NVTX stores its table and the table's length; each entry is the address of a function pointer.
        unsafe {
            if module_table(module, &mut table, &mut length) == 0 || table.is_null() {
                continue;
            }
            for (number, function) in functions {
                if *number < length as usize {
                    let slot = *table.add(*number);
                    if !slot.is_null() {
                        *slot = function();
                        attached = true;
                    }
                }
            }
        }
    }
    attached
}
