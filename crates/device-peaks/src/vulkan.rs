//! Vulkan's devices.

mod kernels;

use crate::samples::{Effort, Samples, repeat};
use crate::{Choice, Draft, Progress};
use gapscope_model::Api;
use gapscope_replay::{Bench, Error, MatrixType, Work, devices};
use kernels::{LOCAL, MULTIPLY_ADDS, VECTOR, VECTORS};

/// The largest buffers, and those of a device that computes on the processor.
const MOST_BYTES: u64 = 1 << 30;
const SOFTWARE_BYTES: u64 = 64 << 20;
/// Multiply-adds are done in rounds of a loop by so many workgroups.
const ROUNDS: u32 = 256;
const GROUPS: u32 = 8192;
const SOFTWARE: (u32, u32) = (64, 1024);
/// Matrices are multiplied in rounds of a loop that the subgroups of a workgroup share: half a TFLOP in all, which slow devices end
/// before a driver takes them for hung.
const MATRIX_ROUNDS: u32 = 1024;
const MATRIX_SOFTWARE: (u32, u32) = (64, 16);
/// Workgroups that make noise: far more than the matrices take.
const NOISE: u32 = 64;
/// Empty kernels that are timed together.
const LAUNCHES: u32 = 1000;

/// Vulkan's devices that were asked for, measured; `there` gets all. `Err`: Vulkan cannot be used here.
pub fn measure(
    choice: Option<&Choice>,
    there: &mut Vec<String>,
    effort: Effort,
    progress: Progress<'_>,
) -> Result<Vec<Result<Draft, String>>, String> {
    let listed = devices().map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for (number, device) in listed.iter().enumerate() {
        if !Choice::takes(choice, there, "Vulkan", &device.name) {
            continue;
        }
        let name = &device.name;
        let measured = measured(number, effort, progress);
        all.push(measured.map_err(|error| format!("{name} (Vulkan) cannot be measured: {error}")));
    }
    Ok(all)
}

fn measured(number: usize, effort: Effort, progress: Progress<'_>) -> Result<Draft, Failure> {
    let mut bench = Bench::open(number, SOFTWARE_BYTES)?;
    if !bench.is_software() {
        drop(bench);
        bench = Bench::open(number, MOST_BYTES)?;
    }
    let mut draft = Draft::new(
        Api::Vulkan,
        bench.name(),
        bench.uuid(),
        bench.driver().to_owned(),
    );
    let name = bench.name().to_owned();
    let progress: Progress<'_> = &|what| progress(&format!("{what} of {name} through Vulkan"));
    let bytes = bench.buffer_bytes();
    // Each invocation takes so many vectors, a grid apart.
    let grid = bytes / (VECTOR * VECTORS);
    let groups = grid / u64::from(LOCAL);
    let width = groups.min(1 << 15);
    let shape = [width as u32, (groups / width.max(1)) as u32, 1];
    if groups == 0 {
        return Err(Failure("it has too little memory".to_owned()));
    }
    let copies = if bench.is_software() { 2 } else { 4 };
    progress("write bandwidth");
    let kernel = bench.kernel(&kernels::write())?;
    draft.write(
        bytes,
        repeated(&bench, effort, Work::Dispatch(kernel, shape), copies)?,
        "a kernel",
    );
    progress("read bandwidth");
    let kernel = bench.kernel(&kernels::read(grid as u32))?;
    draft.read(
        bytes,
        repeated(&bench, effort, Work::Dispatch(kernel, shape), copies)?,
        "a kernel",
    );
    progress("copy bandwidth");
    let kernel = bench.kernel(&kernels::copy(grid as u32))?;
    draft.copy(
        bytes,
        repeated(&bench, effort, Work::Dispatch(kernel, shape), copies)?,
        "a kernel",
    );
    let [from, to] = bench.buffers();
    draft.copy(
        bytes,
        repeated(&bench, effort, Work::Copy(from, to), copies)?,
        "vkCmdCopyBuffer",
    );
    progress("multiply-adds");
    let (rounds, groups) = if bench.is_software() {
        SOFTWARE
    } else {
        (ROUNDS, GROUPS)
    };
    let kernel = bench.kernel(&kernels::multiply_add(rounds))?;
    let samples = repeated(&bench, effort, Work::Dispatch(kernel, [groups, 1, 1]), 1)?;
    let invocations = u64::from(groups) * u64::from(LOCAL);
    let each = u64::from(rounds) * u64::from(MULTIPLY_ADDS);
    draft.multiply_adds(each * invocations, samples, "a kernel");
    progress("launch interval");
    let kernel = bench.kernel(&kernels::nothing())?;
    let samples = repeated(&bench, effort, Work::Dispatch(kernel, [1, 1, 1]), LAUNCHES)?;
    draft.launches(
        samples,
        "an empty kernel of one workgroup, and a full barrier, in one command buffer",
    );
    progress("launch latency");
    let timed = bench.record(Work::Dispatch(kernel, [1, 1, 1]), 0)?;
    draft.awaited(
        repeat(effort, || Ok::<_, Failure>(timed.await_all()?))?,
        "a command buffer with one empty kernel of one workgroup, submitted with a fence that is waited for",
    );
    progress("matrix rates");
    for of in [MatrixType::F16, MatrixType::Int8] {
        matrices(&mut bench, &mut draft, of, effort)?;
    }
    Ok(draft)
}

/// Measures each shape in which the device multiplies matrices of this type; the fastest one stays.
fn matrices(
    bench: &mut Bench,
    draft: &mut Draft,
    of: MatrixType,
    effort: Effort,
) -> Result<(), Failure> {
    // What inputs are changes the power that the units take, and so their clock: noise of ±[0.5, 1), or any integers.
    let (name, mask, ones) = match of {
        MatrixType::F16 => ("f16", 0x83ff_83ff, 0x3800_3800),
        MatrixType::Int8 => ("int8", u32::MAX, 0),
    };
    let shapes = bench.matrices(of);
    if shapes.is_empty() {
        let why = "the device multiplies no cooperative matrices of that type by subgroups";
        let note = format!("The rate of matrix units for {name} is unknown: {why}.");
        draft.notes.push(note);
        return Ok(());
    }
    let vectors = bench.buffer_bytes() / VECTOR;
    let kernel = bench.kernel(&kernels::noise(mask, ones))?;
    let groups = (vectors / (VECTORS * u64::from(LOCAL))) as u32;
    bench
        .record(Work::Dispatch(kernel, [groups.min(NOISE), 1, 1]), 0)?
        .run()?;
    for [m, n, k] in shapes {
        let (rounds, groups) = if bench.is_software() {
            MATRIX_SOFTWARE
        } else {
            (MATRIX_ROUNDS, GROUPS)
        };
        let words = kernels::multiply_matrices(of, [m, n, k], rounds, vectors as u32);
        let each = u64::from(rounds * kernels::MULTIPLICATIONS) * u64::from(groups);
        let flops = each * 2 * u64::from(m) * u64::from(n) * u64::from(k);
        // A shape that a driver lists and does not compile says nothing of the others.
        let samples = bench
            .kernel(&words)
            .map_err(Failure::from)
            .and_then(|kernel| repeated(bench, effort, Work::Dispatch(kernel, [groups, 1, 1]), 1));
        let what = format!("The rate of matrix units for {name} as {m} x {n} x {k}");
        draft.take(&what, samples, |draft, samples| {
            let by = format!("products of cooperative matrices, {m} x {n} x {k}, by subgroups");
            draft.matrix(name, flops, samples, &by);
        });
    }
    Ok(())
}

fn repeated(bench: &Bench, effort: Effort, work: Work, count: u32) -> Result<Samples, Failure> {
    let timed = bench.record(work, count)?;
    repeat(effort, || Ok(timed.run()?))
}

/// Why a device could not be measured.
struct Failure(String);

impl From<String> for Failure {
    fn from(text: String) -> Failure {
        Failure(text)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure(error.to_string())
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
