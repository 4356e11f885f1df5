//! Measures CUDA devices: for each device the bandwidth of its memory, and the rates of arithmetic, matrix products
//! and launches.

mod cublas;
mod driver;

use std::ffi::CString;

use gapscope_model::{Api, cuda};

use crate::error::Error;
use crate::measurement::{Measured, Measurement, Progress};
use crate::samples::{Effort, Samples, repeat};
use crate::selection::Selection;
use cublas::Cublas;
use driver::{Context, Device, Driver, Kernel, Peer};

/// The kernels as PTX text, with a placeholder for the multiply-adds.
const KERNELS: &str = include_str!("cuda/kernels.ptx");
/// Number of invocations of a workgroup.
const THREADS: u32 = 256;
/// Number of workgroups for each multiprocessor, which suffices to use all of its threads on every generation.
const WORKGROUPS_PER_MULTIPROCESSOR: u32 = 8;
/// The most bytes of each of the two buffers.
const MAX_BUFFER_BYTES: u64 = 4 << 30;
/// Bytes of a copy between host and device: so many that its start takes less than a hundredth of its time.
const HOST_COPY_BYTES: u64 = 256 << 20;
/// Bytes of a copy between two devices, likewise.
const PEER_COPY_BYTES: u64 = 1 << 30;
/// Bytes of a vector, which an invocation reads or writes at once.
const VECTOR_BYTES: u64 = 16;
/// Number of vectors that an invocation reads or writes in a round of its loop.
const VECTORS_PER_ROUND: u64 = 4;
/// Number of multiply-adds of an invocation in a round, in eight independent chains.
const MULTIPLY_ADDS_PER_ROUND: u32 = 256;
/// Number of rounds of multiply-adds in an invocation.
const ROUNDS: u32 = 1024;
/// Number of empty kernels that are timed together.
const LAUNCHES: u32 = 1000;

/// Measures the CUDA devices that were asked for, and returns their figures.
///
/// # Errors
/// CUDA cannot be used here.
pub fn measure(
    selection: &mut Selection<'_>,
    effort: Effort,
    progress: Progress<'_>,
) -> Result<Measured, Error> {
    let driver = Driver::open()?;
    let mut all = Vec::new();
    let devices = (0..driver.count()?).map(|number| driver.device(number));
    let devices: Vec<Device> = devices.collect::<Result<_, Error>>()?;
    for device in &devices {
        if selection.takes(Api::Cuda, &device.name) {
            let joined = devices
                .iter()
                .filter(|other| other.uuid != device.uuid && driver.are_joined(device, other));
            let joined: Vec<&Device> = joined.collect();
            let measured = measure_device(driver, (device, &joined), effort, progress);
            all.push((device.name.clone(), measured));
        }
    }
    Ok(all)
}

/// Measures one device; NVLink joins it with the others. A figure that cannot be measured becomes a note; an error only if there is none at all.
fn measure_device(
    driver: Driver,
    (device, joined): (&Device, &[&Device]),
    effort: Effort,
    progress: Progress<'_>,
) -> Result<Measurement, Error> {
    let module = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    let mut measurement = Measurement::new(
        Api::Cuda,
        &device.name,
        &device.uuid,
        cuda::driver_versions(&module, driver.version()),
    );
    let progress: Progress<'_> =
        &|what| progress(&format!("{what} of {} through CUDA", device.name));
    let context = Context::new(driver, device)?;
    let bench = Bench {
        context: &context,
        effort,
        ptx: CString::new(kernels())?,
    };
    let memory = bench.memory(&mut measurement, progress);
    measurement.take("Bandwidth", memory, |_, ()| ());
    let host = bench.host_copies(&mut measurement, progress);
    measurement.take("The bandwidth to the host", host, |_, ()| ());
    if !joined.is_empty() {
        let peers = bench.peer_copies(driver, joined, &mut measurement, progress);
        measurement.take("The bandwidth of NVLink", peers, |_, ()| ());
    }
    bench.arithmetic(&mut measurement, progress);
    let matrices = bench.matrices(driver, &mut measurement, progress);
    measurement.take("The rate of matrix units", matrices, |_, ()| ());
    match measurement.is_empty() {
        true => Err(Error::NoFigures(measurement.notes)),
        false => Ok(measurement),
    }
}

/// Returns the text of the module in PTX (NVIDIA's portable assembly), with its multiply-adds in turn in each of
/// eight chains.
fn kernels() -> String {
    let line = |number| format!("    fma.rn.f32 %f{0}, %f{0}, %x, %y;\n", number % 8);
    let lines: String = (0..MULTIPLY_ADDS_PER_ROUND).map(line).collect();
    KERNELS.replace("\nMULTIPLY_ADDS\n", &format!("\n{lines}"))
}

/// The kernels and the context that figures are measured with.
struct Bench<'a> {
    context: &'a Context,
    effort: Effort,
    ptx: CString,
}

impl Bench<'_> {
    /// Returns the number of workgroups that fill the device.
    fn groups(&self) -> u32 {
        self.context.multiprocessors * WORKGROUPS_PER_MULTIPROCESSOR
    }

    fn kernel(&self, name: &str) -> Result<Kernel, Error> {
        self.context.kernel(&self.ptx, name)
    }

    /// Times `count` calls of `each` together, repeatedly.
    fn repeat(
        &self,
        count: u32,
        each: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<Samples, Error> {
        repeat(self.effort, || self.context.time(count, each))
    }

    /// Measures the bandwidth of writes, reads and copies.
    fn memory(&self, measurement: &mut Measurement, progress: Progress<'_>) -> Result<(), Error> {
        let context = self.context;
        let group_bytes = u64::from(THREADS) * VECTOR_BYTES * VECTORS_PER_ROUND;
        let round = u64::from(self.groups()) * group_bytes;
        // Two buffers take a quarter of the memory that is free.
        let bytes = (context.free_bytes()? / 8).min(MAX_BUFFER_BYTES) / round * round;
        if bytes == 0 {
            return Err(Error::FreeMemory);
        }
        let (from, to) = (context.allocate(bytes)?, context.allocate(bytes)?);
        let grid = self.groups();
        let by_kernel = |name: &str, groups: u32| {
            let shape = [groups, THREADS];
            let kernel = self.kernel(name)?;
            let mut parameters = [from.address, to.address, bytes / VECTOR_BYTES];
            // SAFETY: the kernel's parameters are two addresses of so many bytes, and a count of vectors.
            self.repeat(2, &mut || unsafe {
                context.launch(kernel, shape, &mut parameters)
            })
        };
        progress("write bandwidth");
        measurement.take(
            "Write bandwidth by a kernel",
            by_kernel("bench_write", (bytes / group_bytes) as u32),
            |figures, samples| figures.write(bytes, samples, "a kernel"),
        );
        // SAFETY: it has so many bytes.
        let filled = self.repeat(2, &mut || unsafe { context.fill(to.address, bytes) });
        measurement.take(
            "Write bandwidth by cuMemsetD32Async",
            filled,
            |figures, samples| figures.write(bytes, samples, "cuMemsetD32Async"),
        );
        progress("read bandwidth");
        measurement.take(
            "Read bandwidth",
            by_kernel("bench_read", grid),
            |figures, samples| figures.read(bytes, samples, "a kernel"),
        );
        progress("copy bandwidth");
        measurement.take(
            "Copy bandwidth by a kernel",
            by_kernel("bench_copy", grid),
            |figures, samples| figures.copy(bytes, samples, "a kernel"),
        );
        // SAFETY: both have so many bytes.
        let copied = self.repeat(2, &mut || unsafe {
            context.copy(from.address, to.address, bytes)
        });
        measurement.take(
            "Copy bandwidth by cuMemcpyDtoDAsync",
            copied,
            |figures, samples| figures.copy(bytes, samples, "cuMemcpyDtoDAsync"),
        );
        Ok(())
    }

    /// Measures copies from and to pinned memory of the host, one direction at a time.
    fn host_copies(
        &self,
        measurement: &mut Measurement,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        progress("bandwidth to the host");
        let context = self.context;
        let device = context.allocate(HOST_COPY_BYTES)?;
        let host = context.allocate_host(HOST_COPY_BYTES)?;
        // SAFETY: both have so many bytes.
        let read = self.repeat(2, &mut || unsafe {
            context.copy_from_host(&host, device.address, HOST_COPY_BYTES)
        });
        measurement.take(
            "The bandwidth of copies from the host",
            read,
            |figures, samples| figures.host_read(HOST_COPY_BYTES, samples, "cuMemcpyHtoDAsync"),
        );
        // SAFETY: both have so many bytes.
        let written = self.repeat(2, &mut || unsafe {
            context.copy_to_host(device.address, &host, HOST_COPY_BYTES)
        });
        measurement.take(
            "The bandwidth of copies to the host",
            written,
            |figures, samples| figures.host_write(HOST_COPY_BYTES, samples, "cuMemcpyDtoHAsync"),
        );
        Ok(())
    }

    /// Measures copies over NVLink from, to, and from and to all other devices at once.
    fn peer_copies(
        &self,
        driver: Driver,
        joined: &[&Device],
        measurement: &mut Measurement,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        progress("bandwidth of NVLink");
        let context = self.context;
        let [to, from] = [PEER_COPY_BYTES; 2].map(|bytes| context.allocate(bytes));
        let (to, from) = (to?, from?);
        let peers = joined
            .iter()
            .map(|device| context.peer(driver, device, PEER_COPY_BYTES));
        let peers: Result<Vec<Peer>, Error> = peers.collect();
        // A peer that failed has left another context current.
        context.make_current()?;
        let peers = peers?;
        let each = PEER_COPY_BYTES * peers.len() as u64;
        let [received, sent] = [Some(to.address), Some(from.address)];
        for (ways, bytes, figure) in [
            ([received, None], each, "nvlink_received_bytes_per_s"),
            ([None, sent], each, "nvlink_sent_bytes_per_s"),
            ([received, sent], 2 * each, "nvlink_both_bytes_per_s"),
        ] {
            // SAFETY: all have so many bytes.
            let copied = self.repeat(2, &mut || unsafe {
                context.copy_between(&peers, ways, PEER_COPY_BYTES)
            });
            let by = match peers.len() {
                1 => "cuMemcpyPeerAsync, one other device".to_owned(),
                count => format!("cuMemcpyPeerAsync, {count} other devices at once"),
            };
            measurement.take(figure, copied, |figures, samples| {
                figures.nvlink(figure, bytes, samples, &by);
            });
        }
        // The end of their contexts leaves none current.
        drop(peers);
        context.make_current()
    }

    /// Times the kernel of multiply-adds.
    fn multiply_adds(&self) -> Result<Samples, Error> {
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

    /// Times an empty kernel by the host's clock until it has been waited for.
    fn awaited(&self) -> Result<Samples, Error> {
        let context = self.context;
        let kernel = self.kernel("bench_nothing")?;
        repeat(self.effort, || {
            // SAFETY: the kernel has no parameters.
            context.await_one(&mut || unsafe { context.launch(kernel, [1, 32], &mut []) })
        })
    }

    /// Times empty kernels one after the other.
    fn launches(&self) -> Result<Samples, Error> {
        let context = self.context;
        let kernel = self.kernel("bench_nothing")?;
        // SAFETY: the kernel has no parameters.
        self.repeat(LAUNCHES, &mut || unsafe {
            context.launch(kernel, [1, 32], &mut [])
        })
    }

    /// Measures the rate of multiply-adds, and the interval and latency of launches.
    fn arithmetic(&self, measurement: &mut Measurement, progress: Progress<'_>) {
        progress("multiply-adds");
        let each = u64::from(ROUNDS) * u64::from(MULTIPLY_ADDS_PER_ROUND);
        let invocations = u64::from(self.groups()) * u64::from(THREADS);
        measurement.take(
            "The rate of multiply-adds",
            self.multiply_adds(),
            |figures, samples| figures.multiply_adds(each * invocations, samples, "a kernel"),
        );
        progress("launch interval");
        measurement.take(
            "The launch interval",
            self.launches(),
            |measurement, samples| {
                let by = "an empty kernel of one workgroup, by cuLaunchKernel";
                measurement.launches(samples, by);
            },
        );
        progress("launch latency");
        measurement.take(
            "The launch latency",
            self.awaited(),
            |measurement, samples| {
                let by =
                    "an empty kernel of one workgroup, by cuLaunchKernel and cuStreamSynchronize";
                measurement.awaited(samples, by);
            },
        );
    }

    /// Measures products of matrices for each type of inputs, by cuBLAS.
    fn matrices(
        &self,
        driver: Driver,
        measurement: &mut Measurement,
        progress: Progress<'_>,
    ) -> Result<(), Error> {
        let context = self.context;
        progress("matrix rates");
        let cublas = Cublas::open(context, driver.version())?;
        let words = cublas::SIZE * cublas::SIZE;
        let (inputs, product) = (context.allocate(8 * words)?, context.allocate(4 * words)?);
        let fill = self.kernel("bench_fill")?;
        for inputs_type in &cublas::ALL {
            let [mask, ones] = inputs_type.bits.map(u64::from);
            let mut parameters = [inputs.address, 2 * words, mask, ones];
            // SAFETY: the kernel's parameters are an address of so many words, their count, and two numbers of 32 bits.
            context.time(1, &mut || unsafe {
                context.launch(fill, [self.groups(), THREADS], &mut parameters)
            })?;
            let samples = self.repeat(4, &mut || cublas.multiply(inputs_type, &inputs, &product));
            let flops = 2 * cublas::SIZE * words;
            let by = format!("{} of {} rows and columns", cublas.name, cublas::SIZE);
            let what = format!("The rate of matrix units for {}", inputs_type.name);
            measurement.take(&what, samples, |figures, samples| {
                figures.matrix(inputs_type.name, flops, samples, &by)
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
        assert_eq!(in_loop, MULTIPLY_ADDS_PER_ROUND as usize);
    }

    /// Returns the path of NVIDIA's assembler `ptxas`, if it is installed.
    fn ptxas() -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places: Vec<PathBuf> = std::env::split_paths(&path).collect();
        places.push("/usr/local/cuda/bin".into());
        let mut files = places.iter().map(|folder| folder.join("ptxas"));
        files.find(|file| file.exists())
    }

    #[test]
    #[ignore = "needs ptxas, of CUDA's toolkit"]
    fn the_assembler_takes_the_kernels() {
        let ptxas = ptxas().expect("ptxas in PATH or /usr/local/cuda/bin");
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
