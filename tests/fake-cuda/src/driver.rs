//! The stub of libcuda: contexts, streams, kernels and memory, of which only the times exist. Calls of a program go in; CUPTI's callbacks
//! and records and lines of the truth log come out.

/// Exports functions of the driver and of the runtime. Each line has a function with its parameters, the call that CUPTI is told of (for a
/// function of the runtime with the driver's call inside), and the function that does the call's work.
macro_rules! exported {
    ($($name:ident($($parameter:ident: $type:ty),*) is $call:ident $(around $inside:ident)? => $work:ident($($argument:expr),*);)+) => {$(
        #[unsafe(no_mangle)]
        #[allow(clippy::unnecessary_cast)]
        pub extern "C" fn $name($($parameter: $type),*) -> c_int {
            let parameters: &[usize] = &[$($parameter as usize),*];
            let inside: &[names::Call] = &[$(names::$inside)?];
            let api = Api { inside: inside.first().copied(), ..of_driver(names::$call, parameters) };
            $work(api, $($argument),*)
        }
    )+};
}

mod cupti_ids;
mod entry_points;
mod graphs;
mod injection;
mod measuring;
mod memory;
mod stream_operations;
mod transfers;
mod waits;

use crate::config::config;
use crate::cupti::{self, State, now};
use crate::names::Call;
use crate::records::{self, Kernel};
use crate::truth;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char, c_int};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const LATENCY_NS: u64 = 4_000;

/// CUresult
pub const SUCCESS: c_int = 0;
pub const INVALID_VALUE: c_int = 1;
pub const NOT_INITIALIZED: c_int = 3;
pub const NO_DEVICE: c_int = 100;
pub const INVALID_CONTEXT: c_int = 201;
pub const INVALID_HANDLE: c_int = 400;
pub const NOT_READY: c_int = 600;

/// The default stream's id in every context, as in CUDA.
const DEFAULT_STREAM: u32 = 7;

#[derive(Debug, Clone, Copy)]
pub struct Stream {
    context: u32,
    id: u32,
    /// The time at which its last work is done.
    free_ns: u64,
}

/// A kernel, with the address of its name. Unloading a module frees that place, and the next module's name may lie there.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    name: usize,
    /// Its first launch loads it.
    loaded: bool,
    /// The checksum of its cubin; 0 for PTX.
    crc: u64,
}

#[derive(Default)]
pub struct Driver {
    /// The process that initialised the driver: a forked child cannot use it.
    pid: u32,
    correlation: u32,
    /// The device of each context; the first has the number 1.
    contexts: Vec<u32>,
    /// The green contexts.
    green: HashSet<u32>,
    /// The streams by handle; default streams have the handle `DEFAULT_HANDLE + context`.
    streams: HashMap<usize, Stream>,
    functions: HashMap<usize, Function>,
    free_names: Vec<usize>,
    events: waits::Events,
    captures: waits::Captures,
    handles: usize,
    graphs: HashMap<usize, graphs::Graph>,
    free_graphs: Vec<usize>,
    memory: memory::Memory,
}

/// The handles of default streams, and of the threads' own default streams, begin here.
const DEFAULT_HANDLE: usize = 1 << 40;
const OWN_HANDLE: usize = 1 << 41;

/// CU_STREAM_LEGACY, CU_STREAM_PER_THREAD
const LEGACY: usize = 1;
const OWN: usize = 2;

static DRIVER: LazyLock<Mutex<Driver>> = LazyLock::new(Mutex::default);

thread_local! {
    static CONTEXT: Cell<u32> = const { Cell::new(0) };
}

/// The driver, locked.
type Locked = MutexGuard<'static, Driver>;

fn driver() -> Locked {
    DRIVER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells a program how many calls the driver has begun.
#[unsafe(no_mangle)]
pub extern "C" fn fake_calls() -> u64 {
    driver().correlation.into()
}

/// CUpti_ActivityStreamFlag
const BLOCKING: u32 = 1;
const NON_BLOCKING: u32 = 2;

fn tell_stream(context: u32, stream: u32, flag: u32, priority: i32, correlation: u32) {
    let record = records::Stream {
        kind: records::STREAM,
        context_id: context,
        stream_id: stream,
        priority: priority as u32,
        flag,
        correlation_id: correlation,
    };
    cupti::state().record(records::STREAM, &record);
}

/// The work of a call on a device.
#[derive(Clone, Copy)]
struct DeviceWork {
    context: u32,
    device: u32,
    stream: u32,
    correlation: u32,
    start: u64,
    end: u64,
}

impl Driver {
    /// Returns a new handle, different from those with a special meaning.
    fn handle(&mut self) -> usize {
        self.handles += 1;
        OWN + self.handles
    }

    /// Returns the key of a handle's stream, in the thread's context.
    fn key(handle: usize) -> usize {
        match handle {
            0 | LEGACY => DEFAULT_HANDLE + CONTEXT.get() as usize,
            // SAFETY: gettid has no preconditions.
            OWN => OWN_HANDLE + unsafe { libc::gettid() } as usize,
            _ => handle,
        }
    }

    /// Returns the stream of a handle in the thread's context; null is the default stream.
    fn stream(&mut self, handle: usize) -> Option<&mut Stream> {
        let (context, key) = (CONTEXT.get(), Driver::key(handle));
        if context == 0 {
            return None;
        }
        let id = match handle {
            0 | LEGACY => DEFAULT_STREAM,
            OWN => 1000 + self.streams.keys().filter(|k| **k > OWN_HANDLE).count() as u32,
            _ => return self.streams.get_mut(&key),
        };
        if handle == OWN && !self.streams.contains_key(&key) {
            tell_stream(context, id, BLOCKING, 0, 0);
        }
        Some(self.streams.entry(key).or_insert(Stream {
            context,
            id,
            free_ns: 0,
        }))
    }

    /// Puts work of `ns` on a stream, no earlier than `asked_ns`.
    fn submit(
        &mut self,
        handle: usize,
        correlation: u32,
        asked_ns: u64,
        ns: u64,
    ) -> Option<DeviceWork> {
        let stream = self.stream(handle)?;
        let start = stream.free_ns.max(asked_ns + LATENCY_NS);
        let end = start + ns;
        stream.free_ns = end;
        let (context, id) = (stream.context, stream.id);
        Some(DeviceWork {
            context,
            device: self.device_of(context),
            stream: id,
            correlation,
            start,
            end,
        })
    }

    fn device_of(&self, context: u32) -> u32 {
        self.contexts
            .get(context as usize - 1)
            .copied()
            .unwrap_or(0)
    }
}

/// A call as its callbacks see it.
#[derive(Clone, Copy)]
struct Api<'a> {
    call: Call,
    /// The driver's call inside the runtime's; it has the same correlation.
    inside: Option<Call>,
    /// The structure of the call's parameters; those that are not pointers come last.
    parameters: &'a [usize],
    /// The address of the name of the kernel that it launches.
    symbol: usize,
}

impl From<Call> for Api<'_> {
    fn from(call: Call) -> Self {
        of_driver(call, &[])
    }
}

/// Describes a call of the driver.
fn of_driver(call: Call, parameters: &[usize]) -> Api<'_> {
    Api {
        call,
        inside: None,
        parameters,
        symbol: 0,
    }
}

impl Api<'_> {
    /// Returns the calls, the outer one first.
    fn calls(&self) -> impl DoubleEndedIterator<Item = Call> + use<> {
        [Some(self.call), self.inside].into_iter().flatten()
    }

    /// Calls the subscriber with the driver unlocked, at the start, or with the result at the end.
    fn call_back(&self, driver: Locked, correlation: u32, result: Option<c_int>) -> Locked {
        if !self.calls().any(cupti::callbacks::are_wanted) {
            return driver;
        }
        drop(driver);
        let context = CONTEXT.get();
        let call_back = |call| {
            let launched = (context, self.symbol);
            cupti::callbacks::deliver(call, self.parameters, correlation, launched, result);
        };
        match result {
            None => self.calls().for_each(call_back),
            Some(_) => self.calls().rev().for_each(call_back),
        }
        self::driver()
    }
}

/// Runs a call: gives it a number and times, and reports it to CUPTI and the truth log. A forked child gets an error.
fn call<'a>(api: impl Into<Api<'a>>, work: impl FnOnce(&mut Driver, u32, u64) -> c_int) -> c_int {
    run(api.into(), |mut driver, correlation, at| {
        let result = work(&mut driver, correlation, at);
        (driver, result)
    })
}

/// Runs a call that waits until the time that `work` returns; the wait holds no lock.
fn waiting_call(api: Api<'_>, work: impl FnOnce(&mut Driver, u32) -> Result<u64, c_int>) -> c_int {
    run(api, |mut locked, correlation, _| {
        let until = work(&mut locked, correlation);
        drop(locked);
        let result = until.map_or_else(|code| code, sleep_until);
        (driver(), result)
    })
}

/// Runs a call as [`call`] does; `work` may release the driver's lock meanwhile.
fn run(api: Api<'_>, work: impl FnOnce(Locked, u32, u64) -> (Locked, c_int)) -> c_int {
    let mut driver = driver();
    if driver.pid != std::process::id() {
        return NOT_INITIALIZED;
    }
    driver.correlation += 1;
    let correlation = driver.correlation;
    let start = now();
    let driver = api.call_back(driver, correlation, None);
    // The time is taken again, because the subscriber may have taken long.
    let (driver, result) = work(driver, correlation, now());
    let driver = api.call_back(driver, correlation, Some(result));
    let end = now();
    drop(driver);
    cupti::state().collect(false);
    // SAFETY: gettid has no preconditions.
    let thread = unsafe { libc::gettid() };
    let (_, _, name) = api.call;
    let inside = api.inside.map_or(c"", |(_, _, name)| name);
    truth::write(
        "call",
        correlation,
        (start, end),
        format_args!(
            ",\"name\":\"{}\",\"inside\":\"{}\",\"thread\":{thread},\"result\":{result}",
            name.to_string_lossy(),
            inside.to_string_lossy()
        ),
    );
    result
}

/// Runs a call that asks whether the time that `work` returns has come.
fn asking_call(
    api: Api<'_>,
    work: impl FnOnce(&mut Driver, u32, u64) -> Result<u64, c_int>,
) -> c_int {
    call(api, |driver, correlation, at| {
        match work(driver, correlation, at) {
            Ok(until) if until <= at => SUCCESS,
            Ok(_) => NOT_READY,
            Err(code) => code,
        }
    })
}

fn sleep_until(until: u64) -> c_int {
    while let Some(left) = until.checked_sub(now()).filter(|left| *left > 0) {
        std::thread::sleep(Duration::from_nanos(left));
    }
    SUCCESS
}

/// Launches a kernel.
fn launch(
    api: Api<'_>,
    function: usize,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: usize,
) -> c_int {
    let words = |low: u32, high: u32| low as usize | (high as usize) << 32;
    // cuLaunchKernel_params
    let parameters = [
        function,
        words(grid[0], grid[1]),
        words(grid[2], block[0]),
        words(block[1], block[2]),
        words(shared, 0),
        stream,
        0,
        0,
    ];
    let symbol = driver().functions.get(&function).map_or(0, |f| f.name);
    let api = Api {
        parameters: &parameters,
        symbol,
        ..api
    };
    call(api, |driver, correlation, asked| {
        let Some(known) = driver.functions.get(&function).copied() else {
            return INVALID_HANDLE;
        };
        if driver.is_capturing(stream) {
            // It becomes part of a graph.
            return SUCCESS;
        }
        let Some(work) = driver.submit(stream, correlation, asked, config().kernel_ns) else {
            return INVALID_CONTEXT;
        };
        let mut cupti = cupti::state();
        if !known.loaded {
            lazy_loading(&mut cupti, correlation, asked);
            driver.functions.insert(
                function,
                Function {
                    loaded: true,
                    ..known
                },
            );
        }
        (cupti.pc_sampling).launched(work.context, known.name, known.crc);
        // Each run has a record of its own.
        let runs = cupti.range_profiler.launched(work.context);
        let first = kernel(known.name, &work, grid, block, shared);
        tell_kernel(&mut cupti, first, runs > 1);
        for _ in 1..runs {
            let Some(work) = driver.submit(stream, correlation, asked, config().kernel_ns) else {
                break;
            };
            let again = kernel(known.name, &work, grid, block, shared);
            tell_kernel(&mut cupti, again, true);
        }
        SUCCESS
    })
}

fn kernel(name: usize, work: &DeviceWork, grid: [u32; 3], block: [u32; 3], shared: u32) -> Kernel {
    Kernel {
        kind: records::CONCURRENT_KERNEL,
        registers_per_thread: 32,
        start: work.start,
        end: work.end,
        device_id: work.device,
        context_id: work.context,
        stream_id: work.stream,
        grid: grid.map(|n| n as i32),
        block: block.map(|n| n as i32),
        static_shared_memory: 1024,
        dynamic_shared_memory: shared as i32,
        local_memory_per_thread: 16,
        correlation_id: work.correlation,
        name: name as *const c_char,
        ..Kernel::default()
    }
}

fn tell_kernel(cupti: &mut State, kernel: Kernel, is_profiled: bool) {
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
