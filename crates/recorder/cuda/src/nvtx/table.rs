//! The tables of functions that NVTX lets a tool fill.

use super::{domains, names};
use std::ffi::{c_int, c_void};

/// NvtxGetExportTableFunc_t
pub type GetExportTable = unsafe extern "C" fn(u32) -> *const c_void;

/// NVTX_ETID_CALLBACKS
const CALLBACKS: u32 = 1;

/// NvtxExportTableCallbacks
#[repr(C)]
struct Callbacks {
    bytes: usize,
    module_table:
        Option<unsafe extern "C" fn(u32, *mut *mut *mut *const c_void, *mut u32) -> c_int>,
}

/// A module of NVTX with the numbers of its functions, and ours.
type Module = (u32, &'static [(usize, fn() -> *const c_void)]);

macro_rules! ours {
    ($($number:literal $function:expr,)+) => {
        &[$(($number, || $function as *const c_void),)+]
    };
}

const MODULES: [Module; 4] = [
    // NVTX_CB_MODULE_CORE
    (
        1,
        ours! {
            1 super::mark_ex,
            2 super::mark_a,
            3 super::mark_w,
            4 super::start_ex,
            5 super::start_a,
            6 super::start_w,
            7 super::range_end,
            8 super::push_ex,
            9 super::push_a,
            10 super::push_w,
            11 super::pop,
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
            1 super::domain_mark_ex,
            2 super::domain_start_ex,
            3 super::domain_range_end,
            4 super::domain_push_ex,
            5 super::domain_pop,
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

/// Puts our functions into a module's tables. False when it has none: then it must not think that a tool listens.
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
