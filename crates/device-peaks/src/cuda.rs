//! CUDA's devices.

mod cublas;
mod driver;
mod library;

use crate::samples::{Effort, Samples, repeat};
use crate::{Choice, Draft, Progress};
use cublas::Cublas;
use driver::{Context, Device, Driver, Kernel};
use gapscope_model::{Api, cuda};
use std::ffi::CString;

const KERNELS: &str = include_str!("cuda/kernels.ptx");
const THREADS: u32 = 256;
/// Workgroups for each multiprocessor: all threads that one holds, on every generation.
const GROUPS: u32 = 8;
/// The largest buffers.
const MOST_BYTES: u64 = 4 << 30;
/// Bytes of a vector that an invocation reads or writes at once, and how many of them in a round.
const VECTOR: u64 = 16;
const VECTORS: u64 = 4;
/// Multiply-adds of an invocation's round; eight chains.
const MULTIPLY_ADDS: u32 = 256;
const ROUNDS: u32 = 1024;
/// Empty kernels that are timed together.
const LAUNCHES: u32 = 1000;

/// CUDA's devices that were asked for, measured; `there` gets all. `Err`: CUDA cannot be used here.
pub fn measure(
    choice: Option<&Choice>,
    there: &mut Vec<String>,
    effort: Effort,
    progress: Progress<'_>,
) -> Result<Vec<Result<Draft, String>>, String> {
    let driver = Driver::open()?;
    let mut all = Vec::new();
    for number in 0..driver.count()? {
        let device = driver.device(number)?;
        if !Choice::takes(choice, there, "CUDA", &device.name) {
            continue;
        }
        let name = device.name.clone();
        let measured = measured(driver, &device, effort, progress);
        all.push(measured.map_err(|error| format!("{name} (CUDA) cannot be measured: {error}")));
    }
    Ok(all)
}

fn measured(
    driver: Driver,
    device: &Device,
    effort: Effort,
    progress: Progress<'_>,
) -> Result<Draft, String> {
    let module = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let mut draft = Draft::new(
        Api::Cuda,
        &device.name,
        &device.uuid,
        cuda::driver_versions(&module, driver.version()),
    );
    let progress: Progress<'_> =
        &|what| progress(&format!("{what} of {} through CUDA", device.name));
    let context = Context::open(driver, device)?;
    let bench = Bench {
        context: &context,
        effort,
        ptx: CString::new(kernels()).map_err(|error| error.to_string())?,
    };
    let memory = bench.memory(&mut draft, progress);
    draft.take("Bandwidth", memory, |_, ()| ());
    bench.arithmetic(&mut draft, progress);
    let matrices = bench.matrices(driver, &mut draft, progress);
    draft.take("The rate of matrix units", matrices, |_, ()| ());
    if draft.is_empty() {
        return Err(draft.notes.join(" "));
    }
    Ok(draft)
}

/// The module, with its multiply-adds in turn in each of eight chains.
fn kernels() -> String {
    let line = |number| format!("    fma.rn.f32 %f{0}, %f{0}, %x, %y;\n", number % 8);
    let lines: String = (0..MULTIPLY_ADDS).map(line).collect();
    KERNELS.replace("\nMULTIPLY_ADDS\n", &format!("\n{lines}"))
}

struct Bench<'a> {
    context: &'a Context,
    effort: Effort,
    ptx: CString,
}

impl Bench<'_> {
    fn groups(&self) -> u32 {
        self.context.multiprocessors * GROUPS
    }

    fn kernel(&self, name: &str) -> Result<Kernel, String> {
        self.context.kernel(&self.ptx, name)
    }

    fn repeat(
        &self,
        count: u32,
        each: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<Samples, String> {
        repeat(self.effort, || self.context.time(count, each))
    }

    fn memory(&self, draft: &mut Draft, progress: Progress<'_>) -> Result<(), String> {
        let context = self.context;
        let group_bytes = u64::from(THREADS) * VECTOR * VECTORS;
        let round = u64::from(self.groups()) * group_bytes;
        // Two of them: a quarter of what is free.
        let bytes = (context.free_bytes()? / 8).min(MOST_BYTES) / round * round;
        if bytes == 0 {
            return Err("it has too little free memory".to_owned());
        }
        let (from, to) = (context.allocate(bytes)?, context.allocate(bytes)?);
        let grid = self.groups();
        let by_kernel = |name: &str, groups: u32| {
            let shape = [groups, THREADS];
            let kernel = self.kernel(name)?;
            let mut parameters = [from.address, to.address, bytes / VECTOR];
            // SAFETY: the kernel's parameters are two addresses of so many bytes, and a count of vectors.
            self.repeat(2, &mut || unsafe {
                context.launch(kernel, shape, &mut parameters)
            })
        };
        progress("write bandwidth");
        draft.take(
            "Write bandwidth by a kernel",
            by_kernel("bench_write", (bytes / group_bytes) as u32),
            |draft, samples| {
                draft.write(bytes, samples, "a kernel");
            },
        );
        // SAFETY: it has so many bytes.
        let filled = self.repeat(2, &mut || unsafe { context.fill(to.address, bytes) });
        draft.take(
            "Write bandwidth by cuMemsetD32Async",
            filled,
            |draft, samples| {
                draft.write(bytes, samples, "cuMemsetD32Async");
            },
        );
        progress("read bandwidth");
        draft.take(
            "Read bandwidth",
            by_kernel("bench_read", grid),
            |draft, samples| {
                draft.read(bytes, samples, "a kernel");
            },
        );
        progress("copy bandwidth");
        draft.take(
            "Copy bandwidth by a kernel",
            by_kernel("bench_copy", grid),
            |draft, samples| {
                draft.copy(bytes, samples, "a kernel");
            },
        );
        // SAFETY: both have so many bytes.
        let copied = self.repeat(2, &mut || unsafe {
            context.copy(from.address, to.address, bytes)
        });
        draft.take(
            "Copy bandwidth by cuMemcpyDtoDAsync",
            copied,
            |draft, samples| {
                draft.copy(bytes, samples, "cuMemcpyDtoDAsync");
            },
        );
        Ok(())
    }

    fn multiply_adds(&self) -> Result<Samples, String> {
        let context = self.context;
        let to = context.allocate(4)?;
        let shape = [self.groups(), THREADS];
        let kernel = self.kernel("bench_multiply_add")?;
        let mut parameters = [to.address, u64::from(ROUNDS)];
        // SAFETY: the kernel's parameters are an address of four bytes and a number of 32 bits.
        self.repeat(2, &mut || unsafe {
            context.launch(kernel, shape, &mut parameters)
        })
    }

    fn awaited(&self) -> Result<Samples, String> {
        let context = self.context;
        let kernel = self.kernel("bench_nothing")?;
        repeat(self.effort, || {
            // SAFETY: the kernel has no parameters.
            context.await_one(&mut || unsafe { context.launch(kernel, [1, 32], &mut []) })
        })
    }

    fn launches(&self) -> Result<Samples, String> {
        let context = self.context;
        let kernel = self.kernel("bench_nothing")?;
        // SAFETY: the kernel has no parameters.
        self.repeat(LAUNCHES, &mut || unsafe {
            context.launch(kernel, [1, 32], &mut [])
        })
    }

    fn arithmetic(&self, draft: &mut Draft, progress: Progress<'_>) {
        progress("multiply-adds");
        let each = u64::from(ROUNDS) * u64::from(MULTIPLY_ADDS);
        let invocations = u64::from(self.groups()) * u64::from(THREADS);
        draft.take(
            "The rate of multiply-adds",
            self.multiply_adds(),
            |draft, samples| {
                draft.multiply_adds(each * invocations, samples, "a kernel");
            },
        );
        progress("launch interval");
        draft.take("The launch interval", self.launches(), |draft, samples| {
            let by = "an empty kernel of one workgroup, by cuLaunchKernel";
            draft.launches(samples, by);
        });
        progress("launch latency");
        draft.take("The launch latency", self.awaited(), |draft, samples| {
            let by = "an empty kernel of one workgroup, by cuLaunchKernel and cuStreamSynchronize";
            draft.awaited(samples, by);
        });
    }

    fn matrices(
        &self,
        driver: Driver,
        draft: &mut Draft,
        progress: Progress<'_>,
    ) -> Result<(), String> {
        let context = self.context;
        progress("matrix rates");
        let cublas = Cublas::open(context, driver.version())?;
        let words = cublas::SIZE * cublas::SIZE;
        let (inputs, product) = (context.allocate(8 * words)?, context.allocate(4 * words)?);
        let fill = self.kernel("bench_fill")?;
        for of in &cublas::ALL {
            let [mask, ones] = of.bits.map(u64::from);
            let mut parameters = [inputs.address, 2 * words, mask, ones];
            // SAFETY: the kernel's parameters are an address of so many words, their count, and two numbers of 32 bits.
            context.time(1, &mut || unsafe {
                context.launch(fill, [self.groups(), THREADS], &mut parameters)
            })?;
            let samples = self.repeat(4, &mut || cublas.multiply(of, &inputs, &product));
            let flops = 2 * cublas::SIZE * words;
            let by = format!("{} of {} rows and columns", cublas.name, cublas::SIZE);
            let what = format!("The rate of matrix units for {}", of.name);
            draft.take(&what, samples, |draft, samples| {
                draft.matrix(of.name, flops, samples, &by);
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::process::Command;

    #[test]
    fn the_multiply_adds_are_in_their_kernel_and_nowhere_else() {
        let text = kernels();
        let (before, after) = text.split_once("bench_multiply_add(").unwrap();
        assert!(!before.contains("fma.rn"));
        let in_loop = after.matches("    fma.rn.f32 %f").count();
        assert_eq!(in_loop, MULTIPLY_ADDS as usize);
    }

    /// NVIDIA's assembler, where a toolkit is.
    fn ptxas() -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
        places.push("/usr/local/cuda/bin".into());
        let mut files = places.iter().map(|folder| folder.join("ptxas"));
        files.find(|file| file.exists())
    }

    #[test]
    fn the_assembler_takes_the_kernels() {
        let Some(ptxas) = ptxas() else { return };
        let folder = std::env::temp_dir().join(format!("gapscope-ptx-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (from, to) = (folder.join("kernels.ptx"), folder.join("kernels.cubin"));
        std::fs::write(&from, kernels()).unwrap();
        for architecture in ["sm_75", "sm_90a"] {
            let done = Command::new(&ptxas)
                .args(["-arch", architecture, "-o"])
                .args([&to, &from])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{architecture}: {said}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
