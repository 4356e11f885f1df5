//! Kernels that compute, launched in every way, and checksums of their results.

use super::{Cuda, check, made};
use crate::cubin::Cubin;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::time::Duration;

/// CUlaunchConfig
#[repr(C)]
pub struct Config {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: usize,
    attributes: *const Attribute,
    count: c_uint,
}

/// CUlaunchAttribute
#[repr(C)]
struct Attribute {
    id: c_uint,
    padding: c_uint,
    value: [u32; 16],
}

/// CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
const CLUSTER: c_uint = 4;
/// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
const DYNAMIC_SHARED: c_int = 8;
const LARGE_SHARED: c_uint = 64 << 10;

const BLOCKS: c_uint = 4;
const THREADS: c_uint = 256;
/// The numbers that a kernel computes.
const COUNT: u32 = 1000;
const BYTES: usize = COUNT as usize * 4;
/// The pages of memory that `sparse` uses.
const SPARSE_PAGES: [u64; 4] = [13, 37, 9, 63];
/// The kernels of the module, which have the names of their programs.
const KERNELS: [&str; 12] = [
    "scale",
    "shift",
    "saxpy",
    "walk_list",
    "table",
    "count",
    "noise",
    "nan",
    "spin",
    "through_global",
    "fault",
    "attributes",
];

/// The parameters of a kernel, and the memory whose bytes are compared.
struct Job {
    parameters: Vec<Vec<u8>>,
    results: Vec<(u64, usize)>,
}

fn numbers(begin: f32) -> Vec<u8> {
    let each = (0..COUNT).map(|index| begin + index as f32 * 0.5);
    each.flat_map(f32::to_le_bytes).collect()
}

/// FNV-1a
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn text(name: &str) -> CString {
    CString::new(name).expect("a text")
}

fn pointers(parameters: &mut [Vec<u8>]) -> Vec<*mut c_void> {
    let each = parameters.iter_mut();
    each.map(|bytes| bytes.as_mut_ptr().cast()).collect()
}

/// The module with all kernels.
fn cubin() -> Cubin {
    let kernels = KERNELS.iter();
    let cubin = kernels.fold(Cubin::new(), |cubin, name| cubin.kernel(name, name));
    (cubin.global("counter", &7u32.to_le_bytes())).global("target", &[0; 8])
}

impl Cuda {
    fn load_cubin(&self, cubin: &Cubin) -> usize {
        let image = cubin.build();
        made(|module| (self.load_module)(module, image.as_ptr().cast()))
    }

    fn function_of(&self, module: usize, name: &str) -> usize {
        let name = text(name);
        made(|function| (self.get_function)(function, module, name.as_ptr()))
    }

    fn global_of(&self, module: usize, name: &str) -> u64 {
        let name = text(name);
        made(|at| (self.get_global)(at, std::ptr::null_mut(), module, name.as_ptr()))
    }

    fn library_kernel(&self, cubin: &Cubin, name: &str) -> usize {
        let (image, name) = (cubin.build(), text(name));
        let image = image.as_ptr().cast();
        let library = made(|library| (self.load_library)(library, image, 0, 0, 0, 0, 0, 0));
        made(|kernel| (self.get_kernel)(kernel, library, name.as_ptr()))
    }

    /// Makes memory with these bytes.
    fn with_bytes(&self, bytes: &[u8]) -> u64 {
        let address = made(|address| (self.allocate)(address, bytes.len()));
        check((self.write)(address, bytes.as_ptr().cast(), bytes.len()));
        address
    }

    /// Prints a checksum of memory.
    fn print(&self, name: &str, results: &[(u64, usize)]) {
        self.synchronise();
        let mut all = Vec::new();
        for (address, bytes) in results {
            let mut found = vec![0u8; *bytes];
            check((self.read)(found.as_mut_ptr().cast(), *address, *bytes));
            all.extend(found);
        }
        println!("{name} {:016x}", checksum(&all));
    }

    /// Makes the memory and the parameters of a kernel.
    fn job(&self, kernel: &str, module: Option<usize>) -> Job {
        let word = |address: u64| address.to_le_bytes().to_vec();
        let (out, x) = (
            self.with_bytes(&numbers(1.0)),
            self.with_bytes(&numbers(3.0)),
        );
        let (a, count) = (1.5f32.to_le_bytes().to_vec(), COUNT.to_le_bytes().to_vec());
        let both = vec![(out, BYTES), (x, BYTES)];
        let (parameters, results) = match kernel {
            "scale" | "shift" | "saxpy" => (vec![word(out), word(x), a, count], both),
            "walk_list" => {
                let nodes = self.list(5);
                let ranges = nodes.iter().map(|node| (*node, 16));
                let results = ranges.chain([(out, 4)]).collect();
                (vec![word(nodes[0]), word(out)], results)
            }
            "table" => {
                let all = [out, x, self.with_bytes(&numbers(-4.0))];
                let mut blob = vec![0; 104];
                for (index, address) in all.iter().enumerate() {
                    blob[8 * index..][..8].copy_from_slice(&address.to_le_bytes());
                    blob[64 + 4 * index..][..4].copy_from_slice(&COUNT.to_le_bytes());
                }
                blob[96..100].copy_from_slice(&3u32.to_le_bytes());
                blob[100..].copy_from_slice(&a);
                (vec![blob], all.map(|address| (address, BYTES)).to_vec())
            }
            "count" | "attributes" => (vec![word(out)], vec![(out, 28)]),
            "noise" => (vec![word(out), count], vec![(out, BYTES)]),
            "nan" => (vec![word(out), word(x), count], both),
            "through_global" => {
                let target = self.global_of(module.expect("a module"), "target");
                check((self.write)(target, out.to_le_bytes().as_ptr().cast(), 8));
                (vec![a, count], vec![(out, BYTES)])
            }
            _ => panic!("there is no job for {kernel}"),
        };
        Job {
            parameters,
            results,
        }
    }

    /// Makes a list of nodes in memory of their own, each with the address of the next and a value.
    fn list(&self, length: u64) -> Vec<u64> {
        let mut nodes = Vec::new();
        let mut next = 0u64;
        for value in (0..length).rev() {
            let bytes = [next, value * value].map(u64::to_le_bytes).concat();
            next = self.with_bytes(&bytes);
            nodes.push(next);
        }
        nodes.reverse();
        nodes
    }

    fn launch_with(&self, function: usize, shared: c_uint, stream: usize, given: &mut [Vec<u8>]) {
        let mut pointers = pointers(given);
        let (all, none) = (pointers.as_mut_ptr(), std::ptr::null_mut());
        let code = (self.launch)(
            function, BLOCKS, 1, 1, THREADS, 1, 1, shared, stream, all, none,
        );
        check(code);
    }

    fn launch_packed(&self, function: usize, given: &[Vec<u8>]) {
        // Parameters are aligned to their size, up to eight bytes.
        let mut packed = Vec::new();
        for bytes in given {
            packed.resize(packed.len().next_multiple_of(bytes.len().min(8)), 0);
            packed.extend(bytes);
        }
        let mut bytes = packed.len();
        let none = std::ptr::null_mut();
        let mut extra: [*mut c_void; 5] = [
            std::ptr::without_provenance_mut(1),
            packed.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(2),
            (&raw mut bytes).cast(),
            std::ptr::null_mut(),
        ];
        let extra = extra.as_mut_ptr();
        check((self.launch)(
            function, BLOCKS, 1, 1, THREADS, 1, 1, 0, 0, none, extra,
        ));
    }

    fn launch_how(&self, how: &str, function: usize, given: &mut [Vec<u8>]) {
        let mut each = pointers(given);
        let (all, none) = (each.as_mut_ptr(), std::ptr::null_mut());
        match how {
            "packed" => self.launch_packed(function, given),
            "cooperative" => check((self.launch_cooperative)(
                function, BLOCKS, 1, 1, THREADS, 1, 1, 0, 0, all,
            )),
            "cluster" => {
                let attribute = Attribute {
                    id: CLUSTER,
                    padding: 0,
                    value: std::array::from_fn(|index| if index == 0 { 2 } else { 1 }),
                };
                let config = Config {
                    grid: [BLOCKS, 1, 1],
                    block: [THREADS, 1, 1],
                    shared: 16,
                    stream: 0,
                    attributes: &raw const attribute,
                    count: 1,
                };
                check((self.launch_ex)(&config, function, all, none));
            }
            "own" => check((self.launch_own)(
                function, BLOCKS, 1, 1, THREADS, 1, 1, 0, 0, all, none,
            )),
            "shared" => self.launch_with(function, LARGE_SHARED, 0, given),
            _ => self.launch_with(function, 0, 0, given),
        }
    }

    /// Launches a kernel again and again: `KERNEL:N[:HOW]`.
    pub fn compute(&self, what: &str) {
        let words: Vec<&str> = what.split(':').collect();
        let (kernel, count) = (words[0], words[1].parse::<u32>().expect("a number"));
        let how = words.get(2).copied().unwrap_or("plain");
        let (function, module) = match how {
            "library" => (self.library_kernel(&cubin(), kernel), None),
            _ => {
                let module = self.load_cubin(&cubin());
                (self.function_of(module, kernel), Some(module))
            }
        };
        if how == "shared" {
            check((self.set_attribute)(
                function,
                DYNAMIC_SHARED,
                LARGE_SHARED as c_int,
            ));
        }
        let mut job = self.job(kernel, module);
        for _ in 0..count {
            self.launch_how(how, function, &mut job.parameters);
        }
        self.print(kernel, &job.results);
    }

    /// Launches kernels that read and write small parts of large memory, of whose pages no two are alike, and a list whose nodes lie far
    /// apart.
    pub fn sparse(&self) {
        const MEMORY: u32 = 1 << 18;
        let module = self.load_cubin(&cubin());
        let memory = |seed: u32| {
            let words = (0..MEMORY / 4).map(|index| index.wrapping_mul(2_654_435_761) ^ seed);
            self.with_bytes(&words.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
        };
        let (out, x, list) = (memory(1), memory(2), memory(3));
        let numbers = numbers(1.0);
        let place = x + SPARSE_PAGES[0] * 4096 + 2000;
        check((self.write)(place, numbers.as_ptr().cast(), BYTES));
        let nodes = SPARSE_PAGES.map(|page| list + page * 4096);
        let nexts = nodes.iter().skip(1).copied().chain([0]);
        for (node, next) in nodes.iter().zip(nexts) {
            let bytes = [next, 1 + next % 7].map(u64::to_le_bytes).concat();
            check((self.write)(*node, bytes.as_ptr().cast(), bytes.len()));
        }
        let word = |address: u64| address.to_le_bytes().to_vec();
        let (a, count) = (1.5f32.to_le_bytes().to_vec(), COUNT.to_le_bytes().to_vec());
        let written = out + SPARSE_PAGES[1] * 4096 + 100;
        let mut scale = [word(written), word(place), a, count];
        self.launch_with(self.function_of(module, "scale"), 0, 0, &mut scale);
        let mut walk = [word(nodes[0]), word(out)];
        self.launch_with(self.function_of(module, "walk_list"), 0, 0, &mut walk);
        self.print(
            "sparse",
            &[out, x, list].map(|address| (address, MEMORY as usize)),
        );
    }

    /// Captures launches into a graph and launches that: `KERNEL:NODES:TIMES`.
    pub fn compute_graph(&self, what: &str) {
        let words: Vec<&str> = what.split(':').collect();
        let number = |index: usize| words[index].parse::<u64>().expect("a number");
        let module = self.load_cubin(&cubin());
        let function = self.function_of(module, words[0]);
        let mut job = self.job(words[0], Some(module));
        let stream = self.stream(1);
        check((self.begin_capture)(stream, 0));
        for _ in 0..number(1) {
            self.launch_with(function, 0, stream, &mut job.parameters);
        }
        let graph = made(|graph| (self.end_capture)(stream, graph));
        let executable = made(|executable| (self.instantiate)(executable, graph, 0));
        for _ in 0..number(2) {
            check((self.launch_graph)(executable, stream));
        }
        self.print(words[0], &job.results);
    }

    /// Launches the kernels with the same name of two modules in turns.
    pub fn same_names(&self, count: u64) {
        let functions = ["scale", "shift"].map(|program| {
            let module = self.load_cubin(&Cubin::new().kernel("same", program));
            self.function_of(module, "same")
        });
        let mut jobs = [(); 2].map(|()| self.job("scale", None));
        for _ in 0..count {
            for (function, job) in functions.iter().zip(&mut jobs) {
                self.launch_with(*function, 0, 0, &mut job.parameters);
            }
        }
        for job in &jobs {
            self.print("same", &job.results);
        }
    }

    /// Uses the results of one kernel in the next, with copies and fills between.
    pub fn pipeline(&self, count: u64) {
        const HALF: u64 = BYTES as u64 / 2;
        let module = self.load_cubin(&cubin());
        let [scale, saxpy] = ["scale", "saxpy"].map(|name| self.function_of(module, name));
        let mut first = self.job("scale", None);
        let mut second = self.job("saxpy", None);
        let [(out, _), (x, _)] = first.results[..] else {
            panic!("two results");
        };
        // The second kernel reads what the first one wrote.
        second.parameters[1] = out.to_le_bytes().to_vec();
        for turn in 0..count {
            self.launch_with(scale, 0, 0, &mut first.parameters);
            let fresh = numbers(turn as f32);
            check((self.copy_in)(x, fresh.as_ptr().cast(), BYTES / 2, 0));
            self.launch_with(saxpy, 0, 0, &mut second.parameters);
            check((self.fill)(out + HALF, turn as u8, 64, 0));
            check((self.copy_device)(x + HALF, out, 64, 0));
        }
        self.print("pipeline", &[first.results, second.results].concat());
    }

    pub fn reallocate(&self) {
        let module = self.load_cubin(&cubin());
        let function = self.function_of(module, "saxpy");
        let mut job = self.job("saxpy", None);
        for pieces in [40, 30, 20, 10, 1] {
            let x = self.with_bytes(&numbers(pieces as f32).repeat(pieces));
            job.parameters[1] = x.to_le_bytes().to_vec();
            self.launch_with(function, 0, 0, &mut job.parameters);
            self.synchronise();
            check((self.free)(x));
        }
        job.results.truncate(1);
        self.print("reallocate", &job.results);
    }

    pub fn host_memory(&self) {
        let module = self.load_cubin(&cubin());
        let function = self.function_of(module, "saxpy");
        let pinned: u64 = made(|address| (self.allocate_host)(address, BYTES));
        let mut own = vec![0u8; 4096 + BYTES];
        let registered = (own.as_mut_ptr() as u64).next_multiple_of(4096);
        check((self.register_host)(registered, BYTES, 0));
        for (address, begin) in [(pinned, 2.0), (registered, 5.0)] {
            let bytes = numbers(begin);
            // SAFETY: the memory has so many bytes.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), address as *mut u8, BYTES) };
        }
        let mut job = self.job("saxpy", None);
        job.parameters[0] = pinned.to_le_bytes().to_vec();
        job.parameters[1] = registered.to_le_bytes().to_vec();
        self.launch_with(function, 0, 0, &mut job.parameters);
        self.synchronise();
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(pinned as *const u8, BYTES) };
        println!("host-memory {:016x}", checksum(bytes));
        check((self.unregister_host)(registered));
    }

    pub fn managed_memory(&self) {
        let module = self.load_cubin(&cubin());
        let function = self.function_of(module, "scale");
        let managed: u64 = made(|address| (self.allocate_managed)(address, BYTES, 1));
        let mut job = self.job("scale", None);
        job.parameters[0] = managed.to_le_bytes().to_vec();
        self.launch_with(function, 0, 0, &mut job.parameters);
        self.print("managed-memory", &[(managed, BYTES)]);
    }

    /// Reads a global through its address in the parameters.
    pub fn global_address(&self) {
        let module = self.load_cubin(&cubin().global("weights", &numbers(9.0)));
        let weights = self.global_of(module, "weights");
        let mut job = self.job("scale", None);
        job.parameters[1] = weights.to_le_bytes().to_vec();
        self.launch_with(self.function_of(module, "scale"), 0, 0, &mut job.parameters);
        self.print("global-address", &job.results[..1]);
    }

    /// Launches a kernel that waits for a word.
    fn spinning(&self, flag: u64) {
        let module = self.load_cubin(&cubin());
        let mut given = [flag.to_le_bytes().to_vec()];
        self.launch_with(self.function_of(module, "spin"), 0, 0, &mut given);
    }

    /// Has a kernel wait for a word that another thread writes.
    pub fn spin(&self, ms: u64) {
        let (context, flag) = (self.current(), self.with_bytes(&[0; 4]));
        self.spinning(flag);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                self.use_context(context);
                std::thread::sleep(Duration::from_millis(ms));
                let (stream, one) = (self.stream(1), 1u32);
                check((self.copy_in)(flag, (&raw const one).cast(), 4, stream));
            });
            self.synchronise();
        });
        println!("spun");
    }

    /// Has a kernel wait for another one, which is launched later.
    pub fn spin_for_kernel(&self) {
        let flag = self.with_bytes(&[0; 4]);
        let module = self.load_cubin(&cubin());
        let mut job = self.job("shift", None);
        job.parameters[0] = flag.to_le_bytes().to_vec();
        job.parameters[3] = 1u32.to_le_bytes().to_vec();
        let (function, stream) = (self.function_of(module, "shift"), self.stream(1));
        self.spinning(flag);
        self.launch_with(function, 0, stream, &mut job.parameters);
        self.synchronise();
        println!("spun");
    }

    pub fn fault(&self) {
        let module = self.load_cubin(&cubin());
        let mut given = [self.with_bytes(&[0; 8]).to_le_bytes().to_vec()];
        self.launch_with(self.function_of(module, "fault"), 0, 0, &mut given);
        println!("CUDA says {}", (self.wait_context)());
    }

    pub fn device_malloc(&self) {
        let cubin = Cubin::new().kernel("allocates", "scale");
        self.other_name("allocates", &cubin.undefined("malloc"));
    }

    pub fn collective(&self) {
        const NAME: &str =
            "_Z37ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE";
        self.other_name(NAME, &Cubin::new().kernel(NAME, "scale"));
    }

    /// Launches a kernel with another name that scales.
    fn other_name(&self, name: &str, cubin: &Cubin) {
        let function = self.function_of(self.load_cubin(cubin), name);
        let mut job = self.job("scale", None);
        self.launch_with(function, 0, 0, &mut job.parameters);
        self.print(name, &job.results);
    }
}
