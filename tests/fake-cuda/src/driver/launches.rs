//! Launches of kernels: what a program asks for, the run, and the records of it; `launch_calls.rs` has the functions that launch.

use super::kernels::{Attributes, Fault, Launch, Run};
use super::modules::function_of;
use super::{DeviceWork, Driver, Function, INVALID_HANDLE, INVALID_VALUE, Locked};
use crate::config::config;
use crate::cupti::State;
use crate::records::{self, Kernel};
use crate::truth;
use std::ffi::{CStr, c_char, c_int};

/// A launch as a call asks for it.
#[derive(Clone, Copy, Default)]
pub struct Request {
    pub handle: usize,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub stream: usize,
    /// The pointers to the parameters, or the packed parameters: arrays of the caller, or 0.
    pub parameters: usize,
    pub extra: usize,
    pub attributes: Attributes,
}

/// The most shared memory of a launch, unless the function was allowed more.
const SHARED_BYTES: u32 = 48 << 10;
/// The most blocks of a cluster, and that with leave.
const CLUSTER_BLOCKS: u32 = 8;
const LARGE_CLUSTER_BLOCKS: u32 = 16;
/// CUDA_ERROR_INVALID_CLUSTER_SIZE
const INVALID_CLUSTER: c_int = 912;

impl Request {
    /// Reads the parameters of a kernel with this layout.
    ///
    /// # Safety
    /// The arrays are as CUDA says.
    pub unsafe fn read(&self, known: &Function) -> Result<Vec<u8>, c_int> {
        let Some(program) = known.program else {
            return Ok(Vec::new());
        };
        let mut bytes = vec![0; program.parameter_bytes()];
        // SAFETY: as the caller promises.
        unsafe {
            if self.parameters != 0 {
                let each = self.parameters as *const *const u8;
                for (index, (at, size)) in program.parameters().iter().enumerate() {
                    let from = std::slice::from_raw_parts(*each.add(index), *size);
                    bytes[*at..at + size].copy_from_slice(from);
                }
                return Ok(bytes);
            }
            let (mut from, mut given) = (std::ptr::null::<u8>(), 0);
            let mut each = self.extra as *const usize;
            // CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END
            while !each.is_null() && *each != 0 {
                match *each {
                    1 => from = *each.add(1) as *const u8,
                    2 => given = *(*each.add(1) as *const usize),
                    _ => return Err(INVALID_VALUE),
                }
                each = each.add(2);
            }
            if from.is_null() || given < bytes.len() {
                return Err(INVALID_VALUE);
            }
            bytes.copy_from_slice(std::slice::from_raw_parts(from, program.parameter_bytes()));
        }
        Ok(bytes)
    }

    fn check(&self, known: &Function) -> Result<(), c_int> {
        let [x, y, z] = self.attributes.cluster;
        let blocks = x.saturating_mul(y).saturating_mul(z);
        let most = match known.large_clusters() {
            true => LARGE_CLUSTER_BLOCKS,
            false => CLUSTER_BLOCKS,
        };
        let whole = (self.grid.iter().zip(self.attributes.cluster))
            .all(|(grid, cluster)| cluster > 0 && grid.is_multiple_of(cluster));
        if self.grid.contains(&0) || self.block.contains(&0) {
            return Err(INVALID_VALUE);
        }
        if self.shared > SHARED_BYTES.max(known.dynamic_shared()) {
            return Err(INVALID_VALUE);
        }
        if blocks > most || !whole {
            return Err(INVALID_CLUSTER);
        }
        Ok(())
    }

    /// Returns the launch with its function, whose module is loaded if it is not, and its parameters.
    pub fn prepared(self, locked: Locked) -> (Locked, Result<(Launch, Function), c_int>) {
        let (locked, function) = match locked.modules.is_kernel(self.handle) {
            true => function_of(locked, self.handle),
            false => (locked, Ok(self.handle)),
        };
        let launch = function.and_then(|function| {
            let known = locked.functions.get(&function).ok_or(INVALID_HANDLE)?;
            self.check(known)?;
            // SAFETY: the caller of the driver's function keeps CUDA's rules.
            let parameters = unsafe { self.read(known)? };
            let launch = Launch {
                handle: self.handle,
                function,
                grid: self.grid,
                block: self.block,
                shared: self.shared,
                parameters,
                attributes: self.attributes,
            };
            Ok((launch, *known))
        });
        (locked, launch)
    }
}

impl Driver {
    /// Runs a kernel on this thread, for a context and a stream.
    pub fn execute(&mut self, launch: &Launch, context: u32, stream: usize) {
        let Some(function) = self.functions.get(&launch.function).copied() else {
            return;
        };
        let Some(program) = function.program else {
            return;
        };
        let global = |name: &str| {
            let found = self.modules.global(function.module, name);
            found.map(|(address, _)| address)
        };
        let run = Run {
            space: &self.memory.space,
            launch,
            global: &global,
        };
        match run.run(program) {
            Ok(None) => {}
            Ok(Some(flag)) => {
                if let Some(stream) = self.stream(stream) {
                    stream.flag = flag;
                }
            }
            Err(Fault) => {
                self.faulted.insert(context);
            }
        }
    }

    /// Returns how long a function takes.
    pub fn ns_of(&self, function: usize) -> u64 {
        let known = self.functions.get(&function);
        let said = known.and_then(|known| known.program?.ns);
        said.unwrap_or(config().kernel_ns)
    }
}

/// Returns CUPTI's record of a kernel.
pub fn kernel(name: usize, work: &DeviceWork, launch: &Launch) -> Kernel {
    Kernel {
        kind: records::CONCURRENT_KERNEL,
        registers_per_thread: 32,
        start: work.start,
        end: work.end,
        device_id: work.device,
        context_id: work.context,
        stream_id: work.stream,
        grid: launch.grid.map(|n| n as i32),
        block: launch.block.map(|n| n as i32),
        static_shared_memory: 1024,
        dynamic_shared_memory: launch.shared as i32,
        local_memory_per_thread: 16,
        correlation_id: work.correlation,
        name: name as *const c_char,
        ..Kernel::default()
    }
}

pub fn tell_kernel(cupti: &mut State, kernel: Kernel, is_profiled: bool) {
    // SAFETY: names are NUL-terminated and never freed, only overwritten.
    let name = unsafe { CStr::from_ptr(kernel.name) }.to_string_lossy();
    truth::write(
        "kernel",
        kernel.correlation_id,
        (kernel.start, kernel.end),
        format_args!(
            ",\"name\":\"{name}\",\"context\":{},\"stream\":{},\"device\":{},\"node\":{}",
            kernel.context_id, kernel.stream_id, kernel.device_id, kernel.graph_node_id
        ),
    );
    cupti.kernel(kernel, is_profiled);
}
