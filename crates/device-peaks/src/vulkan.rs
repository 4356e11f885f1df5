//! Measures Vulkan devices: for each device the bandwidth of its memory, and the rates of arithmetic, matrix products
//! and launches.

mod copies;
mod kernels;

use gapscope_model::Api;
use gapscope_replay::{Bench, BenchWork, DeviceChoice, MatrixType, devices};

use crate::error::Error;
use crate::measurement::{Measured, Measurement, Progress};
use crate::samples::{Effort, Samples, repeat};
use crate::selection::Selection;
pub use copies::{Bandwidth, Copier, copy_bandwidth};
use kernels::{Grid, LOCAL_SIZE, MULTIPLY_ADDS_PER_ROUND, VECTOR_BYTES, VECTORS_PER_INVOCATION};

/// The most bytes of a buffer on a GPU.
const MAX_BUFFER_BYTES: u64 = 1 << 30;
/// The most bytes of a buffer on a device that computes on the processor.
const MAX_SOFTWARE_BUFFER_BYTES: u64 = 64 << 20;
/// Number of rounds of the loop in which an invocation does multiply-adds on a GPU.
const ROUNDS: u32 = 256;
/// Number of workgroups of that kernel, and of the one for matrices, on a GPU.
const WORKGROUPS: u32 = 8192;
/// The same two numbers for multiply-adds on a device that computes on the processor.
const SOFTWARE_ROUNDS_AND_WORKGROUPS: (u32, u32) = (64, 1024);
/// Number of rounds of the loop in which the subgroups of a workgroup multiply matrices: half a TFLOP in all, which
/// slow devices end before a driver takes them for hung.
const MATRIX_ROUNDS: u32 = 1024;
/// Rounds and workgroups for matrices on a device that computes on the processor.
const SOFTWARE_MATRIX_ROUNDS_AND_WORKGROUPS: (u32, u32) = (64, 16);
/// The most workgroups that make noise for the matrices, far more than these take.
const MAX_NOISE_WORKGROUPS: u32 = 64;
/// Number of empty kernels that are timed together.
const LAUNCHES: u32 = 1000;

/// Measures the Vulkan devices that were asked for, and returns their figures.
///
/// # Errors
/// Vulkan cannot be used here.
pub fn measure(
    selection: &mut Selection<'_>,
    effort: Effort,
    progress: Progress<'_>,
) -> Result<Measured, Error> {
    let mut all = Vec::new();
    for (number, device) in devices()?.into_iter().enumerate() {
        if selection.takes(Api::Vulkan, &device.name) {
            let measured = measure_device(number, effort, progress);
            all.push((device.name, measured));
        }
    }
    Ok(all)
}

/// Measures the device of a number, opened with smaller buffers if it computes on the processor.
fn measure_device(
    number: usize,
    effort: Effort,
    progress: Progress<'_>,
) -> Result<Measurement, Error> {
    let open = |max_bytes| Bench::open(Some(&DeviceChoice::Number(number)), "", max_bytes);
    let mut bench = open(MAX_SOFTWARE_BUFFER_BYTES)?;
    if !bench.is_software() {
        drop(bench);
        bench = open(MAX_BUFFER_BYTES)?;
    }
    let mut measurement = Measurement::new(
        Api::Vulkan,
        bench.name(),
        bench.uuid(),
        bench.driver().to_owned(),
    );
    let name = bench.name().to_owned();
    let progress: Progress<'_> = &|what| progress(&format!("{what} of {name} through Vulkan"));
    let bytes = bench.buffer_bytes();
    let grid = Grid::new(bytes).ok_or(Error::Memory)?;
    let count = copies::count(&bench);
    progress("write bandwidth");
    let kernel = bench.kernel(&kernels::write())?;
    let work = BenchWork::Dispatch(kernel, grid.workgroups);
    measurement.write(bytes, repeat_work(&bench, effort, work, count)?, "a kernel");
    progress("read bandwidth");
    let kernel = bench.kernel(&kernels::read(grid.invocations))?;
    let work = BenchWork::Dispatch(kernel, grid.workgroups);
    measurement.read(bytes, repeat_work(&bench, effort, work, count)?, "a kernel");
    progress("copy bandwidth");
    for (copier, work) in copies::works(&mut bench)? {
        let samples = repeat_work(&bench, effort, work, count)?;
        measurement.copy(bytes, samples, copier.name());
    }
    progress("multiply-adds");
    let (rounds, workgroups) = match bench.is_software() {
        true => SOFTWARE_ROUNDS_AND_WORKGROUPS,
        false => (ROUNDS, WORKGROUPS),
    };
    let kernel = bench.kernel(&kernels::multiply_add(rounds))?;
    let work = BenchWork::Dispatch(kernel, [workgroups, 1, 1]);
    let samples = repeat_work(&bench, effort, work, 1)?;
    let invocations = u64::from(workgroups) * u64::from(LOCAL_SIZE);
    let each = u64::from(rounds) * u64::from(MULTIPLY_ADDS_PER_ROUND);
    measurement.multiply_adds(each * invocations, samples, "a kernel");
    progress("launch interval");
    let kernel = bench.kernel(&kernels::nothing())?;
    let work = BenchWork::Dispatch(kernel, [1, 1, 1]);
    measurement.launches(
        repeat_work(&bench, effort, work, LAUNCHES)?,
        "an empty kernel of one workgroup, and a full barrier, in one command buffer",
    );
    progress("launch latency");
    let timed = bench.record(work, 0)?;
    measurement.awaited(
        repeat(effort, || timed.await_all())?,
        "a command buffer with one empty kernel of one workgroup, submitted with a fence that is waited for",
    );
    progress("matrix rates");
    for inputs in [MatrixType::F16, MatrixType::Int8] {
        measure_matrices(&mut bench, &mut measurement, inputs, effort)?;
    }
    Ok(measurement)
}

/// Measures each shape in which the device multiplies matrices of a type. The fastest shape counts.
fn measure_matrices(
    bench: &mut Bench,
    measurement: &mut Measurement,
    inputs: MatrixType,
    effort: Effort,
) -> Result<(), Error> {
    // The inputs change the power that the units take, and so their clock: they are noise of ±[0.5, 1), or any integers.
    let (name, mask, ones) = match inputs {
        MatrixType::F16 => ("f16", 0x83ff_83ff, 0x3800_3800),
        MatrixType::Int8 => ("int8", u32::MAX, 0),
    };
    let shapes = bench.matrices(inputs);
    if shapes.is_empty() {
        let why = "the device multiplies no cooperative matrices of that type by subgroups";
        let note = format!("The rate of matrix units for {name} is unknown: {why}.");
        measurement.notes.push(note);
        return Ok(());
    }
    let vectors = bench.buffer_bytes() / VECTOR_BYTES;
    let kernel = bench.kernel(&kernels::noise(mask, ones))?;
    let workgroups = (vectors / (VECTORS_PER_INVOCATION * u64::from(LOCAL_SIZE))) as u32;
    let shape = [workgroups.min(MAX_NOISE_WORKGROUPS), 1, 1];
    bench.record(BenchWork::Dispatch(kernel, shape), 0)?.run()?;
    let (rounds, workgroups) = match bench.is_software() {
        true => SOFTWARE_MATRIX_ROUNDS_AND_WORKGROUPS,
        false => (MATRIX_ROUNDS, WORKGROUPS),
    };
    for [m, n, k] in shapes {
        let words = kernels::multiply_matrices(inputs, [m, n, k], rounds, vectors as u32);
        let each = u64::from(rounds * kernels::MULTIPLICATIONS_PER_ROUND) * u64::from(workgroups);
        let flops = each * 2 * u64::from(m) * u64::from(n) * u64::from(k);
        // A driver may list a shape and not compile it, which says nothing of the other shapes.
        let samples = bench
            .kernel(&words)
            .map_err(Error::from)
            .and_then(|kernel| {
                repeat_work(
                    bench,
                    effort,
                    BenchWork::Dispatch(kernel, [workgroups, 1, 1]),
                    1,
                )
            });
        let what = format!("The rate of matrix units for {name} as {m} x {n} x {k}");
        measurement.take(&what, samples, |measurement, samples| {
            let by = format!("products of cooperative matrices, {m} x {n} x {k}, by subgroups");
            measurement.matrix(name, flops, samples, &by);
        });
    }
    Ok(())
}

/// Times `count` repetitions of the same work together, repeatedly.
fn repeat_work(
    bench: &Bench,
    effort: Effort,
    work: BenchWork,
    count: u32,
) -> Result<Samples, Error> {
    let timed = bench.record(work, count)?;
    repeat(effort, || timed.run())
}
