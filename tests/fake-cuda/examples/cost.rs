//! Measures the cost of the CUDA library itself, in nanoseconds of processor time: for each record in the callback that CUPTI calls with
//! full buffers; on the program's thread for each call of CUDA, in CUPTI's two callbacks at its start and end; and for each NVTX label.
//! CUPTI's own cost is not included.
//!
//! `cargo build --release -p gapscope-cuda -p fake-cuda && cargo run --release -p fake-cuda --example cost`

#[path = "../src/bin/program/nvtx_tables.rs"]
mod nvtx_tables;

use fake_cuda::callbacks::{Callback, Data, ENTER, EXIT};
use fake_cuda::names::{self, Call};
use fake_cuda::records::{self, Bytes, Kernel};
use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;

type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

const BUFFERS: usize = 40;
const LABELS: u32 = 200_000;
const ROUNDS: usize = 40;
const CALLS: u32 = 20_000;

/// CUDA_ERROR_NOT_READY
const NOT_READY: c_int = 600;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::current_exe()?
        .ancestors()
        .nth(2)
        .ok_or("a folder")?
        .to_owned();
    let spool = tempfile::tempdir()?;
    let (stub, hook) = (
        folder.join("libfake_cuda.so"),
        folder.join("libgapscope_cuda.so"),
    );
    // SAFETY: no other thread reads the environment yet.
    unsafe {
        std::env::set_var("GAPSCOPE_SPOOL", spool.path());
        std::env::set_var("GAPSCOPE_CUPTI", &stub);
        std::env::set_var("NVTX_INJECTION64_PATH", &hook);
    }
    // SAFETY: the libraries are ours, and stay loaded.
    let (hook, stub) = unsafe {
        let (hook, stub) = (Library::new(&hook)?, Library::new(&stub)?);
        (ManuallyDrop::new(hook), ManuallyDrop::new(stub))
    };
    // SAFETY: the functions of the two libraries, by their types.
    let (requested, completed, called) = unsafe {
        let start = hook.get::<extern "C" fn() -> c_int>(b"InitializeInjection")?;
        start();
        let callbacks = stub.get::<extern "C" fn(
            *mut Option<Requested>,
            *mut Option<Completed>,
            *mut Option<Callback>,
        )>(b"fake_callbacks")?;
        let (mut requested, mut completed, mut called) = (None, None, None);
        callbacks(&mut requested, &mut completed, &mut called);
        (
            requested.ok_or("the hook registered nothing")?,
            completed.ok_or("the hook registered nothing")?,
            called.ok_or("the hook registered nothing")?,
        )
    };
    let names: Vec<CString> = (0..40)
        .map(|n| CString::new(format!("{}{n}", "void at::native::kernel<>".repeat(8))))
        .collect::<Result<_, _>>()?;
    let mut n = 0u32;
    let mut kernel = || {
        n += 1;
        let start = 1_000_000_000 + u64::from(n) * 5_200;
        Kernel {
            kind: records::CONCURRENT_KERNEL,
            start,
            end: start + 1_900,
            context_id: 1,
            stream_id: 7,
            grid: [(n % 40) as i32 + 1, 1, 1],
            block: [256, 1, 1],
            correlation_id: n * 5,
            name: names[n as usize % names.len()].as_ptr(),
            ..Kernel::default()
        }
    };
    report("kernel", requested, completed, &mut kernel);
    report("kernel of a graph", requested, completed, || {
        let kernel = kernel();
        let number = kernel.correlation_id / 5;
        Kernel {
            grid: [4, 1, 1],
            correlation_id: number / 100,
            graph_id: 3,
            graph_node_id: 3 << 32 | u64::from(number % 100),
            ..kernel
        }
    });
    calls("launch", called, names::CU_LAUNCH_KERNEL, 0);
    calls("poll", called, names::CU_EVENT_QUERY, NOT_READY);
    labels();
    Ok(())
}

/// Fills buffers with records, hands them to the hook, and prints the least and the median cost.
fn report<R: Bytes>(
    what: &str,
    requested: Requested,
    completed: Completed,
    mut record: impl FnMut() -> R,
) {
    let mut each = Vec::new();
    for _ in 0..BUFFERS {
        let (mut buffer, mut bytes, mut most) = (std::ptr::null_mut(), 0, 0);
        // SAFETY: as CUPTI calls it.
        unsafe { requested(&mut buffer, &mut bytes, &mut most) };
        let (mut used, mut count) = (0, 0);
        while used + size_of::<R>() <= bytes {
            let record = record().bytes();
            // SAFETY: the buffer has room.
            unsafe {
                std::ptr::copy_nonoverlapping(record.as_ptr(), buffer.add(used), record.len())
            };
            used += record.len();
            count += 1;
        }
        let begun = processor_ns();
        // SAFETY: as CUPTI calls it.
        unsafe { completed(std::ptr::null_mut(), 0, buffer, bytes, used) };
        each.push((processor_ns() - begun) as f64 / f64::from(count));
    }
    each.sort_by(f64::total_cmp);
    println!(
        "{what}: {:.1} ns a record (median of {BUFFERS} buffers; least {:.1})",
        each[BUFFERS / 2],
        each[0]
    );
}

/// Calls the hook at the start and at the end of calls, and prints the least and the median cost.
fn calls(what: &str, called: Callback, call: Call, result: c_int) {
    let (domain, number, name) = call;
    // The parameter is an event, for calls that have one.
    let parameters = [64usize];
    let mut shared = 0;
    let mut data = Data {
        callback_site: ENTER,
        function_name: name.as_ptr(),
        function_parameters: parameters.as_ptr().cast(),
        function_return_value: &result,
        symbol_name: std::ptr::null(),
        context: std::ptr::without_provenance_mut(1),
        context_uid: 1,
        correlation_data: &mut shared,
        correlation_id: 0,
    };
    let mut each: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begun = processor_ns();
            for _ in 0..CALLS {
                data.correlation_id += 1;
                for site in [ENTER, EXIT] {
                    data.callback_site = site;
                    let data = (&raw const data).cast();
                    called(std::ptr::null_mut(), domain, number, data);
                }
            }
            (processor_ns() - begun) as f64 / f64::from(CALLS)
        })
        .collect();
    each.sort_by(f64::total_cmp);
    println!(
        "{what}: {:.1} ns a call on the program's thread (median of {ROUNDS} times {CALLS}; least {:.1})",
        each[ROUNDS / 2],
        each[0]
    );
}

fn labels() {
    // SAFETY: the functions of these numbers have these types.
    let (push, pop) = unsafe {
        let push: unsafe extern "C" fn(*const c_char) -> c_int =
            std::mem::transmute(nvtx_tables::function(nvtx_tables::CORE, 9));
        let pop: unsafe extern "C" fn() -> c_int =
            std::mem::transmute(nvtx_tables::function(nvtx_tables::CORE, 11));
        (push, pop)
    };
    let begun = processor_ns();
    for _ in 0..LABELS {
        // SAFETY: as a program calls them.
        unsafe {
            push(c"forward pass of layer 3".as_ptr());
            pop();
        }
    }
    let each = (processor_ns() - begun) as f64 / f64::from(LABELS);
    println!("NVTX push and pop: {each:.1} ns a pair on the program's thread ({LABELS} pairs)");
}

fn processor_ns() -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
