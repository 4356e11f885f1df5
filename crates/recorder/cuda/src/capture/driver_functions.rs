//! The functions of the CUDA driver that a capture calls, looked up once in the driver that the program uses.

use crate::driver;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Declares the functions by their field, their name in the driver and the types of their parameters.
macro_rules! functions {
    ($($field:ident $name:literal ($($type:ty),*),)+) => {
        /// The functions, each as `cuda.h` declares it. All return a `CUresult`, which is 0 for success.
        #[derive(Debug)]
        pub struct DriverFunctions {
            $(pub $field: unsafe extern "C" fn($($type),*) -> c_int,)+
        }

        impl DriverFunctions {
            /// Looks the functions up.
            ///
            /// # Errors
            /// The name of one that the driver does not have.
            pub fn find() -> Result<DriverFunctions, &'static str> {
                Ok(DriverFunctions {
                    // SAFETY: the driver's functions of these names have these types.
                    $($field: unsafe { driver::function($name) }.ok_or($name)?,)+
                })
            }
        }
    };
}

functions! {
    context_device "cuCtxGetDevice" (*mut c_int),
    set_context "cuCtxSetCurrent" (*mut c_void),
    synchronise_context "cuCtxSynchronize" (),
    exchange_capture_mode "cuThreadExchangeStreamCaptureMode" (*mut c_int),
    device_name "cuDeviceGetName" (*mut c_char, c_int, c_int),
    device_attribute "cuDeviceGetAttribute" (*mut c_int, c_int, c_int),
    device_memory "cuDeviceTotalMem_v2" (*mut usize, c_int),
    function_name "cuFuncGetName" (*mut *const c_char, *mut c_void),
    function_module "cuFuncGetModule" (*mut *mut c_void, *mut c_void),
    function_parameter "cuFuncGetParamInfo" (*mut c_void, usize, *mut usize, *mut usize),
    function_attribute "cuFuncGetAttribute" (*mut c_int, c_int, *mut c_void),
    kernel_name "cuKernelGetName" (*mut *const c_char, *mut c_void),
    kernel_function "cuKernelGetFunction" (*mut *mut c_void, *mut c_void),
    kernel_library "cuKernelGetLibrary" (*mut *mut c_void, *mut c_void),
    kernel_parameter "cuKernelGetParamInfo" (*mut c_void, usize, *mut usize, *mut usize),
    module_global "cuModuleGetGlobal_v2" (*mut u64, *mut usize, *mut c_void, *const c_char),
    address_range "cuMemGetAddressRange_v2" (*mut u64, *mut usize, u64),
    pointer_attribute "cuPointerGetAttribute" (*mut c_void, c_int, u64),
    retain_mapped "cuMemRetainAllocationHandle" (*mut u64, *mut c_void),
    release_mapped "cuMemRelease" (u64),
    copy_to_host "cuMemcpyDtoHAsync_v2" (*mut c_void, u64, usize, *mut c_void),
    allocate_host "cuMemAllocHost_v2" (*mut *mut c_void, usize),
    free_host "cuMemFreeHost" (*mut c_void),
    create_stream "cuStreamCreate" (*mut *mut c_void, c_uint),
    destroy_stream "cuStreamDestroy_v2" (*mut c_void),
    synchronise_stream "cuStreamSynchronize" (*mut c_void),
    create_event "cuEventCreate" (*mut *mut c_void, c_uint),
    record_event "cuEventRecord" (*mut c_void, *mut c_void),
    elapsed "cuEventElapsedTime" (*mut f32, *mut c_void, *mut c_void),
    destroy_event "cuEventDestroy_v2" (*mut c_void),
    copy_to_device "cuMemcpyHtoDAsync_v2" (u64, *const c_void, usize, *mut c_void),
    clone_graph "cuGraphClone" (*mut *mut c_void, *mut c_void),
    destroy_graph "cuGraphDestroy" (*mut c_void),
    graph_nodes "cuGraphGetNodes" (*mut c_void, *mut *mut c_void, *mut usize),
    graph_edges "cuGraphGetEdges_v2" (*mut c_void, *mut *mut c_void, *mut *mut c_void, *mut u64, *mut usize),
    node_type "cuGraphNodeGetType" (*mut c_void, *mut c_int),
    node_in_clone "cuGraphNodeFindInClone" (*mut *mut c_void, *mut c_void, *mut c_void),
    destroy_node "cuGraphDestroyNode" (*mut c_void),
    kernel_node "cuGraphKernelNodeGetParams_v2" (*mut c_void, *mut c_void),
    fill_node "cuGraphMemsetNodeGetParams" (*mut c_void, *mut c_void),
    copy_node "cuGraphMemcpyNodeGetParams" (*mut c_void, *mut c_void),
    node_attribute "cuGraphKernelNodeGetAttribute" (*mut c_void, c_uint, *mut c_void),
    instantiate "cuGraphInstantiateWithFlags" (*mut *mut c_void, *mut c_void, u64),
    launch_graph "cuGraphLaunch" (*mut c_void, *mut c_void),
    destroy_executable "cuGraphExecDestroy" (*mut c_void),
}
