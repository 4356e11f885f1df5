//! The functions of CUPTI that the library calls, with their types, looked up by name at run time.

use gapscope_cupti::SharedLibrary;
use std::ffi::{c_char, c_int, c_void};

/// CUptiResult; 0 is success.
pub type Code = c_int;
/// Our function by which CUPTI asks for a buffer: its address, its bytes, and the most records (all are set by us).
pub type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// Our function by which CUPTI gives a buffer back: context, stream, buffer, its bytes, and the bytes with records.
pub type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
/// Our function that CUPTI calls at calls: our pointer, domain, number and data.
pub type Callback = extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// Declares the functions and how they are looked up. Every libcupti since CUDA 12.0 has the required ones; the
/// optional ones came later.
macro_rules! functions {
    ($(required $name:ident $symbol:literal ($($argument:ty),*),)+ $(optional $other:ident $other_symbol:literal ($($other_argument:ty),*),)+) => {
        /// The functions of one libcupti.
        #[derive(Debug, Clone, Copy)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> Code,)+
            $(pub $other: Option<unsafe extern "C" fn($($other_argument),*) -> Code>,)+
        }

        impl Functions {
            /// Looks up all functions.
            ///
            /// # Errors
            /// The name of a function that the library lacks.
            pub fn load(library: SharedLibrary) -> Result<Functions, &'static str> {
                // SAFETY: the symbols are CUPTI's functions, whose types have been the same since CUDA 12.0.
                unsafe {
                    Ok(Functions {
                        $($name: library.function($symbol).ok_or($symbol)?,)+
                        $($other: library.function($other_symbol),)+
                    })
                }
            }
        }
    };
}

functions! {
    required subscribe "cuptiSubscribe" (*mut *mut c_void, Callback, *mut c_void),
    required enable_callback "cuptiEnableCallback" (u32, *mut c_void, u32, u32),
    required enable "cuptiActivityEnable" (u32),
    required disable "cuptiActivityDisable" (u32),
    required register_callbacks "cuptiActivityRegisterCallbacks" (Requested, Completed),
    required next_record "cuptiActivityGetNextRecord" (*mut u8, usize, *mut *mut u8),
    required flush_all "cuptiActivityFlushAll" (u32),
    required dropped "cuptiActivityGetNumDroppedRecords" (*mut c_void, u32, *mut usize),
    required set_attribute "cuptiActivitySetAttribute" (u32, *mut usize, *mut c_void),
    required result_text "cuptiGetResultString" (Code, *mut *const c_char),
    required callback_name "cuptiGetCallbackName" (u32, u32, *mut *const c_char),
    required timestamp_callback "cuptiActivityRegisterTimestampCallback" (extern "C" fn() -> u64),
    optional thread_ids "cuptiSetThreadIdType" (u32),
    optional stream_id "cuptiGetStreamIdEx" (*mut c_void, *mut c_void, u8, *mut u32),
    optional context_id "cuptiGetContextId" (*mut c_void, *mut u32),
    optional graph_id "cuptiGetGraphExecId" (*mut c_void, *mut u32),
    optional unlaunched_graph_id "cuptiGetGraphId" (*mut c_void, *mut u32),
    optional graph_node_id "cuptiGetGraphNodeId" (*mut c_void, *mut u64),
}
