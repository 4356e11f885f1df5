//! Vulkan's devices. Rates of matrix units are not measured: they are unknown.

mod kernels;

use crate::samples::{Effort, Samples, repeat};
use crate::{Choice, Draft, Progress};
use gapscope_model::Api;
use gapscope_replay::{Bench, Error, Work, devices};
use kernels::{LOCAL, MULTIPLY_ADDS, VECTOR, VECTORS};

/// The largest buffers, and those of a device that computes on the processor.
const MOST_BYTES: u64 = 1 << 30;
const SOFTWARE_BYTES: u64 = 64 << 20;
/// Multiply-adds are done in rounds of a loop by so many workgroups.
const ROUNDS: u32 = 256;
const GROUPS: u32 = 8192;
const SOFTWARE: (u32, u32) = (64, 1024);
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
    draft
        .notes
        .push("Matrix rates are unknown: they are not measured on Vulkan.".to_owned());
    Ok(draft)
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
