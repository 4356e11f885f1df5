//! CUDA, loaded as programs do that do not link it.

mod compute;
mod operations;
mod polls;
mod waits;

use libloading::Library;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::sync::Mutex;

macro_rules! functions {
    ($($name:ident $symbol:literal ($($argument:ty),*) -> $result:ty;)+) => {
        /// The library's functions.
        pub struct Cuda {
            $($name: extern "C" fn($($argument),*) -> $result,)+
            functions: Mutex<HashMap<String, usize>>,
        }

        impl Cuda {
            /// Loads libcuda.so.1.
            pub fn load() -> Cuda {
                // SAFETY: the stub, or the driver; its functions have these types, and this program passes pointers only to its own
                // variables, or null where the stub does not touch the memory.
                unsafe {
                    Cuda {
                        $($name: function("libcuda.so.1", $symbol),)+
                        functions: Mutex::default(),
                    }
                }
            }
        }
    };
}

/// Looks up a function of a library, which stays loaded.
///
/// # Safety
/// `F` is the function's type.
pub unsafe fn function<F: Copy>(library: &str, name: &str) -> F {
    // SAFETY: as the caller promises.
    unsafe {
        let library = Library::new(library).map(ManuallyDrop::new);
        let library = library.expect("a library on LD_LIBRARY_PATH");
        *library.get(name.as_bytes()).expect("a function")
    }
}

functions! {
    init "cuInit" (c_uint) -> c_int;
    create_context "cuCtxCreate_v2" (*mut usize, c_uint, c_int) -> c_int;
    set_current "cuCtxSetCurrent" (usize) -> c_int;
    context_of "cuStreamGetCtx" (usize, *mut usize) -> c_int;
    create_stream "cuStreamCreate" (*mut usize, c_uint) -> c_int;
    load_module "cuModuleLoadData" (*mut usize, *const c_char) -> c_int;
    unload_module "cuModuleUnload" (usize) -> c_int;
    destroy_context "cuCtxDestroy_v2" (usize) -> c_int;
    launch "cuLaunchKernel" (usize, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, usize, *mut *mut c_void, *mut *mut c_void) -> c_int;
    runtime_launch "fake_runtime_launch" (usize, c_uint, c_uint, usize) -> c_int;
    get_device "cudaGetDevice" (*mut c_int) -> c_int;
    last_error "cudaGetLastError" () -> c_int;
    copy_in "cuMemcpyHtoDAsync_v2" (u64, *const c_void, usize, usize) -> c_int;
    copy_out "cuMemcpyDtoHAsync_v2" (*mut c_void, u64, usize, usize) -> c_int;
    fill "cuMemsetD8Async" (u64, u8, usize, usize) -> c_int;
    read "cuMemcpyDtoH_v2" (*mut c_void, u64, usize) -> c_int;
    copy_peer "cuMemcpyPeerAsync" (u64, usize, u64, usize, usize, usize) -> c_int;
    allocate_managed "cuMemAllocManaged" (*mut u64, usize, c_uint) -> c_int;
    ask_event "cuEventQuery" (usize) -> c_int;
    ask_stream "cuStreamQuery" (usize) -> c_int;
    runtime_ask_event "cudaEventQuery" (usize) -> c_int;
    attribute "fake_attribute" (c_uint) -> c_int;
    flushes "fake_flushes" () -> u64;
    calls "fake_calls" () -> u64;
    wait_stream "cuStreamSynchronize" (usize) -> c_int;
    wait_context "cuCtxSynchronize" () -> c_int;
    create_event "cuEventCreate" (*mut usize, c_uint) -> c_int;
    record_event "cuEventRecord" (usize, usize) -> c_int;
    stream_waits "cuStreamWaitEvent" (usize, usize, c_uint) -> c_int;
    wait_event "cuEventSynchronize" (usize) -> c_int;
    destroy_event "cuEventDestroy_v2" (usize) -> c_int;
    wait_own_stream "cuStreamSynchronize_ptsz" (usize) -> c_int;
    record_event_own "cuEventRecord_ptsz" (usize, usize) -> c_int;
    add_event_node "cuGraphAddEventRecordNode" (*mut usize, usize, usize, usize, usize) -> c_int;
    begin_capture "cuStreamBeginCapture_v2" (usize, c_uint) -> c_int;
    end_capture "cuStreamEndCapture" (usize, *mut usize) -> c_int;
    runtime_wait_device "cudaDeviceSynchronize" () -> c_int;
    runtime_wait_stream "cudaStreamSynchronize" (usize) -> c_int;
    runtime_record_event "cudaEventRecord" (usize, usize) -> c_int;
    runtime_record_event_with "cudaEventRecordWithFlags" (usize, usize, c_uint) -> c_int;
    runtime_destroy_event "cudaEventDestroy" (usize) -> c_int;
    runtime_wait_event "cudaEventSynchronize" (usize) -> c_int;
    runtime_stream_waits "cudaStreamWaitEvent" (usize, usize, c_uint) -> c_int;
    allocate "cuMemAlloc_v2" (*mut u64, usize) -> c_int;
    free "cuMemFree_v2" (u64) -> c_int;
    allocate_async "cuMemAllocAsync" (*mut u64, usize, usize) -> c_int;
    free_async "cuMemFreeAsync" (u64, usize) -> c_int;
    create_graph "fake_graph_create" (usize, c_uint) -> usize;
    instantiate "cuGraphInstantiateWithFlags" (*mut usize, usize, u64) -> c_int;
    add_to_graph "fake_graph_add" (usize, c_int, usize) -> ();
    destroy_graph "cuGraphExecDestroy" (usize) -> c_int;
    launch_host "cuLaunchHostFunc" (usize, usize, usize) -> c_int;
    runtime_launch_host "cudaLaunchHostFunc" (usize, usize, usize) -> c_int;
    runtime_add_callback "cudaStreamAddCallback" (usize, usize, usize, c_uint) -> c_int;
    wait_value "cuStreamWaitValue32_v2" (usize, usize, c_uint, c_uint) -> c_int;
    batch "cuStreamBatchMemOp_v2" (usize, c_uint, *const operations::Operation, c_uint) -> c_int;
    runtime_wait_external "cudaWaitExternalSemaphoresAsync" (usize, usize, c_uint, usize) -> c_int;
    runtime_prefetch "cudaMemPrefetchAsync" (usize, usize, u64, c_uint, usize) -> c_int;
    decompress "cuMemBatchDecompressAsync" (usize, usize, c_uint, usize, usize) -> c_int;
    get_function "cuModuleGetFunction" (*mut usize, usize, *const c_char) -> c_int;
    get_global "cuModuleGetGlobal_v2" (*mut u64, *mut usize, usize, *const c_char) -> c_int;
    set_attribute "cuFuncSetAttribute" (usize, c_int, c_int) -> c_int;
    load_library "cuLibraryLoadData" (*mut usize, *const c_char, usize, usize, c_uint, usize, usize, c_uint) -> c_int;
    get_kernel "cuLibraryGetKernel" (*mut usize, usize, *const c_char) -> c_int;
    launch_own "cuLaunchKernel_ptsz" (usize, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, usize, *mut *mut c_void, *mut *mut c_void) -> c_int;
    launch_ex "cuLaunchKernelEx" (*const compute::Config, usize, *mut *mut c_void, *mut *mut c_void) -> c_int;
    launch_cooperative "cuLaunchCooperativeKernel" (usize, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, usize, *mut *mut c_void) -> c_int;
    write "cuMemcpyHtoD_v2" (u64, *const c_void, usize) -> c_int;
    copy_device "cuMemcpyDtoDAsync_v2" (u64, u64, usize, usize) -> c_int;
    allocate_host "cuMemAllocHost_v2" (*mut u64, usize) -> c_int;
    register_host "cuMemHostRegister_v2" (u64, usize, c_uint) -> c_int;
    unregister_host "cuMemHostUnregister" (u64) -> c_int;
    launch_graph "cuGraphLaunch" (usize, usize) -> c_int;
    runtime_launch_graph "cudaGraphLaunch" (usize, usize) -> c_int;
}

fn check(code: c_int) {
    assert_eq!(code, 0, "CUDA said");
}

/// Waits until a number has grown by `more`, however slow the machine is.
fn await_count(more: u64, number: impl Fn() -> u64) {
    let enough = number() + more;
    while number() < enough {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Returns the value that a call stores.
fn made<T: Default>(make: impl FnOnce(*mut T) -> c_int) -> T {
    let mut value = T::default();
    check(make(&mut value));
    value
}

impl Cuda {
    /// Initialises CUDA, with a context on device 0.
    pub fn initialise(&self) {
        check((self.init)(0));
        self.context(0);
    }

    /// Makes a context, which is current from here on.
    pub fn context(&self, device: c_int) {
        made::<usize>(|context| (self.create_context)(context, 0, device));
    }

    /// Destroys the current context.
    pub fn end_context(&self) {
        check((self.destroy_context)(self.current()));
    }

    /// Makes a green context, which is current from here on, and launches on a stream of it.
    pub fn green(&self, name: &str) {
        const GREEN: c_uint = 0x8000;
        made::<usize>(|context| (self.create_context)(context, GREEN, 0));
        self.launches(name, 1, self.stream(1));
    }

    /// Returns the current context.
    pub fn current(&self) -> usize {
        made(|context| (self.context_of)(0, context))
    }

    /// Makes another context current on this thread.
    pub fn use_context(&self, context: usize) {
        check((self.set_current)(context));
    }

    /// Makes a stream; with flag 1 it does not synchronise with the default stream.
    pub fn stream(&self, flags: c_uint) -> usize {
        made(|stream| (self.create_stream)(stream, flags))
    }

    fn load_function(&self, name: &str) -> usize {
        let text = format!(".version 9.5\n.visible .entry {name}()\n{{\nret;\n}}\n");
        self.load_code(text.into_bytes())
    }

    fn load_code(&self, code: Vec<u8>) -> usize {
        // The driver expects text to end with a zero.
        let image = [code, vec![0]].concat();
        made(|module| (self.load_module)(module, image.as_ptr().cast()))
    }

    fn function(&self, name: &str) -> usize {
        let mut functions = self.functions.lock().expect("no panic");
        *functions
            .entry(name.to_owned())
            .or_insert_with(|| self.load_function(name))
    }

    fn launch_on(&self, function: usize, grid: c_uint, stream: usize) -> c_int {
        let none = std::ptr::null_mut();
        (self.launch)(function, grid, 1, 1, 256, 1, 1, 64, stream, none, none)
    }

    pub fn launches(&self, name: &str, count: u64, stream: usize) {
        let function = self.function(name);
        for _ in 0..count {
            check(self.launch_on(function, 4, stream));
        }
    }

    pub fn try_launch(&self, name: &str) -> c_int {
        let function = *self
            .functions
            .lock()
            .expect("no panic")
            .get(name)
            .unwrap_or(&0);
        self.launch_on(function, 4, 0)
    }

    pub fn runtime_launches(&self, name: &str, count: u64) {
        let function = self.function(name);
        for _ in 0..count {
            check((self.runtime_launch)(function, 4, 256, 0));
        }
    }

    pub fn grids(&self, name: &str, count: u64) {
        let function = self.function(name);
        for grid in 1..=count {
            check(self.launch_on(function, grid as c_uint, 0));
        }
    }

    pub fn noise(&self, count: u64) {
        for _ in 0..count {
            for _ in 0..3 {
                made::<c_int>(|device| (self.get_device)(device));
            }
            check((self.last_error)());
        }
    }

    pub fn copies(&self) {
        check((self.copy_in)(64, std::ptr::null(), 4096, 0));
        check((self.fill)(64, 0, 1024, 0));
        check((self.copy_out)(std::ptr::null_mut(), 64, 512, 0));
    }

    /// Copies from a context of device 0 to one of device 1, and back.
    pub fn peer(&self) {
        let first = self.current();
        self.context(1);
        let second = self.current();
        check((self.copy_peer)(64, second, 128, first, 4096, 0));
        self.use_context(first);
        check((self.copy_peer)(128, first, 64, second, 512, 0));
        self.synchronise();
        self.use_context(second);
        self.synchronise();
        self.use_context(first);
    }

    /// Copies to the host, which the call itself awaits.
    pub fn read(&self) {
        check((self.read)(std::ptr::null_mut(), 64, 256));
    }

    pub fn managed(&self) {
        let address = made(|address| (self.allocate_managed)(address, 1 << 16, 1));
        check((self.free)(address));
    }

    /// Waits until the client has asked for its records so often. A flush that began after the first one is then complete.
    pub fn await_flushes(&self, count: u64) {
        await_count(count, || (self.flushes)());
    }

    /// Waits until so many calls of the driver were begun.
    pub fn await_calls(&self, count: u64) {
        await_count(count, || (self.calls)());
    }

    /// Prints whether an attribute of CUPTI's is set.
    pub fn attribute(&self, attribute: u32) {
        println!("attribute {attribute}: {}", (self.attribute)(attribute));
    }

    /// Allocates an address that was freed.
    pub fn memory(&self) {
        for bytes in [4096, 4096, 8192] {
            let address = made(|address| (self.allocate)(address, bytes));
            check((self.free)(address));
        }
        made(|address| (self.allocate)(address, 100));
    }

    pub fn pool(&self) {
        let address = made(|address| (self.allocate_async)(address, 1 << 20, 0));
        check((self.free_async)(address, 0));
    }

    /// Loads and launches the kernels of files.
    pub fn load_files(&self, files: &str) {
        for file in files.split(',') {
            let function = self.load_code(std::fs::read(file).expect("the file"));
            check(self.launch_on(function, 1, 0));
        }
    }

    /// Launches a graph through the runtime or the driver.
    pub fn graph(&self, name: &str, nodes: u32, times: u64, runtime: bool) {
        let executable = self.make_graph(name, nodes);
        self.launch_graph(executable, times, runtime);
    }

    /// Makes a graph of kernels and instantiates it.
    pub fn make_graph(&self, name: &str, nodes: u32) -> usize {
        let graph = (self.create_graph)(self.function(name), nodes);
        made(|executable| (self.instantiate)(executable, graph, 0))
    }

    /// Makes a graph of kernels, which are added inside of what `inside` does, and instantiates it.
    pub fn make_graph_inside(
        &self,
        name: &str,
        nodes: u64,
        inside: impl FnOnce(&dyn Fn()),
    ) -> usize {
        let graph = (self.create_graph)(self.function(name), 0);
        inside(&|| (0..nodes).for_each(|_| (self.add_to_graph)(graph, 0, 0)));
        made(|executable| (self.instantiate)(executable, graph, 0))
    }

    pub fn launch_graph(&self, executable: usize, times: u64, runtime: bool) {
        let launch = if runtime {
            self.runtime_launch_graph
        } else {
            self.launch_graph
        };
        for _ in 0..times {
            check(launch(executable, 0));
        }
    }

    /// Launches kernels of two modules, the second of which is loaded when the first is gone.
    pub fn reload(&self, names: [&str; 2]) {
        for name in names {
            let function = self.load_function(name);
            check(self.launch_on(function, 1, 0));
            self.synchronise();
            // The record is delivered before the module goes; CUPTI takes care of that itself.
            std::thread::sleep(std::time::Duration::from_millis(250));
            check((self.unload_module)(function));
        }
    }

    pub fn synchronise(&self) {
        check((self.wait_context)());
    }
}
