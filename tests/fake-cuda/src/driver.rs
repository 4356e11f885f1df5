//! The stub of libcuda: contexts, streams, kernels and memory. Kernels and copies run at the call that asks for them; the times are
//! those at which a device would have run them. Calls of a program go in; CUPTI's callbacks and records and lines of the truth log come
//! out.

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

mod address_space;
mod code;
mod cupti_ids;
mod entry_points;
mod function_calls;
mod graph_nodes;
mod graphs;
mod injection;
mod kernels;
mod launch_calls;
mod launches;
mod linking;
mod measuring;
mod memory;
mod modules;
mod stream_operations;
mod transfers;
mod virtual_memory;
mod waits;

use crate::cupti::{self, now};
use crate::names::{self, Call};
use crate::{records, truth};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::c_int;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use waits::{Scope, own};

const LATENCY_NS: u64 = 4_000;

/// CUresult
pub const SUCCESS: c_int = 0;
pub const INVALID_VALUE: c_int = 1;
pub const NOT_INITIALIZED: c_int = 3;
pub const NO_DEVICE: c_int = 100;
pub const INVALID_CONTEXT: c_int = 201;
pub const INVALID_HANDLE: c_int = 400;
pub const NOT_FOUND: c_int = 500;
pub const NOT_READY: c_int = 600;
pub const ILLEGAL_ADDRESS: c_int = 700;
pub const UNSUPPORTED_IN_CAPTURE: c_int = 900;

/// The default stream's id in every context, as in CUDA.
const DEFAULT_STREAM: u32 = 7;

#[derive(Debug, Clone, Copy)]
pub struct Stream {
    context: u32,
    id: u32,
    /// The time at which its last work is done.
    free_ns: u64,
    /// The address of the word that a kernel on it waits for, or 0. Work behind that kernel has run, but is not done.
    flag: u64,
}

/// A kernel, with the address of its name. Unloading a module frees that place, and the next module's name may lie there.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    name: usize,
    /// Its first launch loads it.
    loaded: bool,
    /// The checksum of its cubin; 0 for PTX.
    crc: u64,
    /// What it does; a kernel that the stub does not know does nothing.
    program: Option<kernels::Program>,
    module: usize,
    /// The values of [`Self::SETTABLE`].
    attributes: [c_int; 3],
}

impl Function {
    /// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, …_PREFERRED_SHARED_MEMORY_CARVEOUT, …_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    const SETTABLE: [c_int; 3] = [8, 9, 14];
    const ATTRIBUTES: [c_int; 3] = [48 << 10, -1, 0];

    fn dynamic_shared(&self) -> u32 {
        self.attributes[0].try_into().unwrap_or_default()
    }

    fn large_clusters(&self) -> bool {
        self.attributes[2] != 0
    }
}

#[derive(Default)]
pub struct Driver {
    /// The process that initialised the driver: a forked child cannot use it.
    pid: u32,
    correlation: u32,
    /// The device of each context; the first has the number 1.
    contexts: Vec<u32>,
    /// The primary context of each device that has one.
    primary: HashMap<c_int, usize>,
    /// The green contexts.
    green: HashSet<u32>,
    /// The streams by handle; default streams have the handle `DEFAULT_HANDLE + context`.
    streams: HashMap<usize, Stream>,
    functions: HashMap<usize, Function>,
    modules: modules::Modules,
    /// The contexts in which a kernel used an address that is not there: their calls fail.
    faulted: HashSet<u32>,
    events: waits::Events,
    captures: waits::Captures,
    handles: usize,
    graphs: HashMap<usize, graphs::Graph>,
    free_graphs: Vec<usize>,
    memory: memory::Memory,
    /// The linked code, by the handle of the link.
    links: HashMap<usize, Vec<u8>>,
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
            flag: 0,
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

/// Runs a call that waits for kernels that wait for a word, and until the time that `work` returns; the waits hold no lock.
fn waiting_call(
    api: Api<'_>,
    scope: Scope,
    work: impl FnOnce(&mut Driver, u32) -> Result<u64, c_int>,
) -> c_int {
    run(api, |mut locked, correlation, _| {
        while locked.is_spinning(scope) {
            drop(locked);
            std::thread::sleep(Duration::from_micros(200));
            locked = driver();
        }
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
    let (driver, result) = match driver.faulted.contains(&CONTEXT.get()) {
        true => (driver, ILLEGAL_ADDRESS),
        false => work(driver, correlation, now()),
    };
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

/// Runs a call that asks whether the time that `work` returns has come, and no kernel waits for a word.
fn asking_call(
    api: Api<'_>,
    scope: Scope,
    work: impl FnOnce(&mut Driver, u32, u64) -> Result<u64, c_int>,
) -> c_int {
    call(api, |driver, correlation, at| {
        if driver.is_spinning(scope) {
            return NOT_READY;
        }
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

#[cfg(test)]
mod tests;
