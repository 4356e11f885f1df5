//! The functions of the driver, and the one of the runtime, that launch kernels.

use super::kernels::{Attributes, Launch};
use super::launches::{Request, kernel, tell_kernel};
use super::{
    Api, Driver, Function, INVALID_CONTEXT, SUCCESS, driver, graphs, names, of_driver, own, run,
};
use crate::cupti::{self, State};
use crate::records;
use std::ffi::{c_int, c_uint, c_void};

/// Launches a kernel.
fn launch(api: Api<'_>, asked: Request) -> c_int {
    let words = |low: u32, high: u32| low as usize | (high as usize) << 32;
    // cuLaunchKernel_params, with which cuLaunchCooperativeKernel_params begins, too.
    let parameters = [
        asked.handle,
        words(asked.grid[0], asked.grid[1]),
        words(asked.grid[2], asked.block[0]),
        words(asked.block[1], asked.block[2]),
        words(asked.shared, 0),
        asked.stream,
        asked.parameters,
        asked.extra,
    ];
    let symbol = {
        let driver = driver();
        let function = driver.functions.get(&asked.handle).map(|f| f.name);
        function.or_else(|| driver.modules.kernel_name(asked.handle))
    };
    let parameters = match api.parameters.is_empty() {
        true => &parameters[..],
        false => api.parameters,
    };
    let api = Api {
        parameters,
        symbol: symbol.unwrap_or(0),
        ..api
    };
    run(api, |locked, correlation, at| {
        let (mut locked, prepared) = asked.prepared(locked);
        let (launch, known) = match prepared {
            Ok(prepared) => prepared,
            Err(code) => return (locked, code),
        };
        if locked.is_capturing(asked.stream) {
            return (graphs::capture_launch(locked, launch), SUCCESS);
        }
        let code = submit(&mut locked, (correlation, at), launch, known, asked.stream);
        (locked, code)
    })
}

fn submit(
    driver: &mut Driver,
    (correlation, at): (u32, u64),
    launch: Launch,
    known: Function,
    stream: usize,
) -> c_int {
    let ns = driver.ns_of(launch.function);
    let Some(work) = driver.submit(stream, correlation, at, ns) else {
        return INVALID_CONTEXT;
    };
    driver.execute(&launch, work.context, stream);
    let mut cupti = cupti::state();
    if !known.loaded {
        lazy_loading(&mut cupti, correlation, at);
        if let Some(function) = driver.functions.get_mut(&launch.function) {
            function.loaded = true;
        }
    }
    (cupti.pc_sampling).launched(work.context, known.name, known.crc);
    // Each run has a record of its own.
    let runs = cupti.range_profiler.launched(work.context);
    let first = kernel(known.name, &work, &launch);
    tell_kernel(&mut cupti, first, runs > 1);
    for _ in 1..runs {
        let Some(work) = driver.submit(stream, correlation, at, ns) else {
            break;
        };
        tell_kernel(&mut cupti, kernel(known.name, &work, &launch), true);
    }
    SUCCESS
}

fn lazy_loading(cupti: &mut State, correlation: u32, at: u64) {
    let record = records::Overhead {
        kind: records::OVERHEAD,
        overhead_kind: 5 << 16,
        object_kind: 2,
        object_id: [std::process::id(), cupti.thread(), 0],
        start: cupti.stamp(at),
        end: cupti.stamp(at + 500),
        correlation_id: correlation,
        ..records::Overhead::default()
    };
    cupti.record(records::OVERHEAD, &record);
}

/// Exports a launch of the driver in its two forms, of which the second means the thread's own stream by null.
macro_rules! launches {
    ($($name:ident is $call:ident, $stream:expr, $extra:ident, $cooperative:literal;)+) => {$(
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        pub extern "C" fn $name(
            handle: usize,
            grid_x: c_uint,
            grid_y: c_uint,
            grid_z: c_uint,
            block_x: c_uint,
            block_y: c_uint,
            block_z: c_uint,
            shared: c_uint,
            stream: usize,
            parameters: *mut *mut c_void,
            extra: usize,
        ) -> c_int {
            let asked = Request {
                handle,
                grid: [grid_x, grid_y, grid_z],
                block: [block_x, block_y, block_z],
                shared,
                stream: $stream(stream),
                parameters: parameters as usize,
                extra: $extra(extra),
                attributes: Attributes { cooperative: $cooperative, ..Attributes::default() },
            };
            launch(names::$call.into(), asked)
        }
    )+};
}

fn same(value: usize) -> usize {
    value
}

/// The cooperative launch has one parameter less.
fn none(_: usize) -> usize {
    0
}

launches! {
    cuLaunchKernel is CU_LAUNCH_KERNEL, same, same, false;
    cuLaunchKernel_ptsz is CU_LAUNCH_KERNEL_OWN, own, same, false;
    cuLaunchCooperativeKernel is CU_LAUNCH_COOPERATIVE_KERNEL, same, none, true;
    cuLaunchCooperativeKernel_ptsz is CU_LAUNCH_COOPERATIVE_KERNEL_OWN, own, none, true;
}

/// CUlaunchConfig
#[repr(C)]
pub struct LaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared: c_uint,
    pub stream: usize,
    pub attributes: *const LaunchAttribute,
    pub count: c_uint,
}

/// CUlaunchAttribute
#[repr(C)]
pub struct LaunchAttribute {
    pub id: c_uint,
    pub padding: c_uint,
    pub value: [u64; 8],
}

const _: () = assert!(size_of::<LaunchConfig>() == 56 && size_of::<LaunchAttribute>() == 72);

/// CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
const COOPERATIVE: c_uint = 2;
const CLUSTER: c_uint = 4;

/// # Safety
/// The pointers are as CUDA says.
unsafe fn launch_ex(
    call: names::Call,
    config: *const LaunchConfig,
    handle: usize,
    parameters: usize,
    extra: usize,
    stream: impl Fn(usize) -> usize,
) -> c_int {
    // SAFETY: the caller's structure, and the array that it names.
    let (config, all) = unsafe {
        let config = &*config;
        let all: &[LaunchAttribute] = match config.count {
            0 => &[],
            count => std::slice::from_raw_parts(config.attributes, count as usize),
        };
        (config, all)
    };
    let mut attributes = Attributes::default();
    for attribute in all {
        let [first, second, ..] = attribute.value;
        match attribute.id {
            COOPERATIVE => attributes.cooperative = first as u32 != 0,
            CLUSTER => attributes.cluster = [first as u32, (first >> 32) as u32, second as u32],
            _ => {}
        }
    }
    let asked = Request {
        handle,
        grid: config.grid,
        block: config.block,
        shared: config.shared,
        stream: stream(config.stream),
        parameters,
        extra,
        attributes,
    };
    let place = std::ptr::from_ref(config) as usize;
    launch(of_driver(call, &[place, handle, parameters, extra]), asked)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernelEx(
    config: *const LaunchConfig,
    handle: usize,
    parameters: usize,
    extra: usize,
) -> c_int {
    let call = names::CU_LAUNCH_KERNEL_EX;
    // SAFETY: as CUDA says.
    unsafe { launch_ex(call, config, handle, parameters, extra, same) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernelEx_ptsz(
    config: *const LaunchConfig,
    handle: usize,
    parameters: usize,
    extra: usize,
) -> c_int {
    let call = names::CU_LAUNCH_KERNEL_EX_OWN;
    // SAFETY: as CUDA says.
    unsafe { launch_ex(call, config, handle, parameters, extra, own) }
}

/// Launches through the runtime. The real function takes structures by value.
#[unsafe(no_mangle)]
pub extern "C" fn fake_runtime_launch(
    handle: usize,
    blocks: c_uint,
    threads: c_uint,
    stream: usize,
) -> c_int {
    let api = Api {
        inside: Some(names::CU_LAUNCH_KERNEL),
        ..names::CUDA_LAUNCH_KERNEL.into()
    };
    let asked = Request {
        handle,
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        stream,
        ..Request::default()
    };
    launch(api, asked)
}
