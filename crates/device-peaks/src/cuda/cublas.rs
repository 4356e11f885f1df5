//! Finds cuBLAS, NVIDIA's library for matrix products, and multiplies matrices with it: [`Cublas::open`], then
//! [`Cublas::multiply`]. cuBLAS has the best kernels for each generation: a kernel of one instruction alone, such as
//! `mma.sync` on Hopper, stays below the rates that programs reach.

use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;

use libloading::Library;

use super::driver::{Context, Memory, check};
use crate::error::Error;

/// Number of rows, and of columns, of the matrices.
pub const SIZE: u64 = 8192;

/// The types and values of the inputs of a multiplication.
pub struct Inputs {
    /// The name of the rate in `matrix_flops`.
    pub name: &'static str,
    /// `cudaDataType_t` of the inputs, and of the product.
    types: [c_int; 2],
    /// `cublasComputeType_t`
    compute: c_int,
    /// Two masks of a word of inputs: the bits that are noise, and those that are set. They make numbers of ±[0.5,
    /// 1), or any integers.
    pub bits: [u32; 2],
    /// Whether the first matrix has to be transposed.
    transposed: bool,
}

/// The inputs whose rates are measured. `CUDA_R_32F` is 0, `CUDA_R_16F` 2, `CUDA_R_8I` 3, `CUDA_R_32I` 10, `CUDA_R_16BF` 14; `CUBLAS_COMPUTE_32F` 68,
/// `CUBLAS_COMPUTE_32I` 72, `CUBLAS_COMPUTE_32F_FAST_TF32` 77.
pub const ALL: [Inputs; 4] = [
    Inputs::new("bf16", [14, 14], 68, [0x807f_807f, 0x3f00_3f00]),
    Inputs::new("f16", [2, 2], 68, [0x83ff_83ff, 0x3800_3800]),
    Inputs::new("tf32", [0, 0], 77, [0x807f_ffff, 0x3f00_0000]),
    Inputs {
        transposed: true,
        ..Inputs::new("int8", [3, 10], 72, [0xffff_ffff, 0])
    },
];

impl Inputs {
    const fn new(name: &'static str, types: [c_int; 2], compute: c_int, bits: [u32; 2]) -> Inputs {
        Inputs {
            name,
            types,
            compute,
            bits,
            transposed: false,
        }
    }
}

/// A handle of cuBLAS; below, the types of the functions that are called, in the order of their names.
type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type Version = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, *mut c_void) -> c_int;
type Multiply = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const c_void,
    u64,
    c_int,
    c_int,
    u64,
    c_int,
    c_int,
    *const c_void,
    u64,
    c_int,
    c_int,
    c_int,
    c_int,
) -> c_int;

/// A handle of cuBLAS on a CUDA context. Its library stays loaded.
pub struct Cublas {
    handle: Handle,
    destroy: Destroy,
    multiply: Multiply,
    /// The name of the library with its version.
    pub name: String,
}

impl Cublas {
    /// Finds and loads the newest cuBLAS that a driver for this CUDA serves (1000 × major + 10 × minor; if unknown,
    /// CUDA 13 is assumed), and has it work on the context's stream.
    pub fn open(context: &Context, cuda: Option<u32>) -> Result<Cublas, Error> {
        let newest = cuda.map_or(13, |version| version / 1000);
        let mut first_error = None;
        for candidate in candidates(newest) {
            // SAFETY: the library is NVIDIA's, whose initialisers every program with cuBLAS runs.
            match unsafe { Library::new(&candidate) } {
                Ok(library) => return Cublas::load(library, context),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(Error::NoCublas(first_error))
    }

    /// Makes a handle from a loaded library.
    fn load(library: Library, context: &Context) -> Result<Cublas, Error> {
        // SAFETY: the functions of these names in cuBLAS have these types.
        let (create, destroy, version, set_stream, multiply) = unsafe {
            (
                *library.get::<Create>(b"cublasCreate_v2")?,
                *library.get::<Destroy>(b"cublasDestroy_v2")?,
                *library.get::<Version>(b"cublasGetVersion_v2")?,
                *library.get::<SetStream>(b"cublasSetStream_v2")?,
                *library.get::<Multiply>(b"cublasGemmEx")?,
            )
        };
        std::mem::forget(library);
        let mut handle = ptr::null_mut();
        let mut number = 0;
        // SAFETY: the calls store a handle and a number; the context is current and the stream is of it.
        unsafe {
            check("cublasCreate", create(&mut handle))?;
            check("cublasSetStream", set_stream(handle, context.stream))?;
            check("cublasGetVersion", version(handle, &mut number))?;
        }
        // 1000 × major + 100 × minor + patch until 11, 10000 × major + 100 × minor + patch since.
        let major = if number >= 100_000 { 10_000 } else { 1_000 };
        let name = format!(
            "cuBLAS {}.{}.{}",
            number / major,
            number % major / 100,
            number % 100
        );
        Ok(Cublas {
            handle,
            destroy,
            multiply,
            name,
        })
    }

    /// Multiplies two matrices of [`SIZE`] rows and columns; in `inputs` the second begins 4 bytes a number after the
    /// first. Returns before the device has done it.
    pub fn multiply(
        &self,
        types: &Inputs,
        inputs: &Memory<'_>,
        product: &Memory<'_>,
    ) -> Result<(), Error> {
        let size = SIZE as c_int;
        let is_integer = types.types[1] == 10;
        let scales = match is_integer {
            true => [1u32, 0],
            false => [1f32.to_bits(), 0],
        };
        let [one, none] = [&scales[0], &scales[1]].map(|place| ptr::from_ref(place).cast());
        let from = inputs.address;
        let second = from + SIZE * SIZE * 4;
        let [kind, kind_of_product] = types.types;
        let transposed = c_int::from(types.transposed);
        /// `CUBLAS_GEMM_DEFAULT`
        const DEFAULT: c_int = -1;
        // SAFETY: both inputs and the product have room for so many numbers of at most four bytes; cuBLAS reads scales in host memory
        // before it returns.
        let code = unsafe {
            (self.multiply)(
                self.handle,
                transposed,
                0,
                size,
                size,
                size,
                one,
                from,
                kind,
                size,
                second,
                kind,
                size,
                none,
                product.address,
                kind_of_product,
                size,
                types.compute,
                DEFAULT,
            )
        };
        check("cublasGemmEx", code)
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: the handle was made by this library, and nothing of it is in use.
        unsafe { (self.destroy)(self.handle) };
    }
}

/// Returns the paths where libcublas may be: files in packages of Pythons in PATH and of the virtual environment and
/// in toolkits, the newest version first, then the names that the system looks for. `newest` is the highest major
/// version.
fn candidates(newest: u32) -> Vec<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let environments = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter();
    let mut prefixes: Vec<PathBuf> = environments.filter_map(variable).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    prefixes.extend(folders.filter_map(|folder| Some(folder.parent()?.to_owned())));
    prefixes.extend(variable("HOME").map(|home| home.join(".local")));
    let names: Vec<String> = (11..=newest)
        .rev()
        .map(|major| format!("libcublas.so.{major}"))
        .collect();
    let mut found = Vec::new();
    for prefix in &prefixes {
        for python in folders_of(&prefix.join("lib"), "python3") {
            for packages in ["site-packages", "dist-packages"] {
                for package in folders_of(&python.join(packages).join("nvidia"), "") {
                    add(&mut found, &package.join("lib"), &names);
                }
            }
        }
    }
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable);
    for toolkit in toolkits.chain(folders_of(Path::new("/usr/local"), "cuda")) {
        add(&mut found, &toolkit.join("lib64"), &names);
    }
    // The newest come first, else the order stays.
    found.sort_by_key(|path: &PathBuf| names.iter().position(|name| path.ends_with(name)));
    found.extend(names.iter().map(PathBuf::from));
    found
}

/// Adds the files of these names that a folder has.
fn add(found: &mut Vec<PathBuf>, folder: &Path, names: &[String]) {
    for name in names {
        let path = folder.join(name);
        if path.exists() && !found.contains(&path) {
            found.push(path);
        }
    }
}

/// Returns what a folder holds whose names begin with `start`, sorted.
fn folders_of(folder: &Path, start: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
