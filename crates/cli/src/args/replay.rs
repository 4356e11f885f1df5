//! The arguments of `gapscope replay`, which clap reads. Doc comments here are the texts of `--help`.

use super::Width;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueHint};
use gapscope_replay::Element;
use std::path::PathBuf;

/// Run a capture again, here or on another device, and compare what it leaves in memory
///
/// The device is checked first: what a kernel needs and the device lacks is listed, and nothing runs. Outputs are
/// compared bit for bit, by hash, with what the program had. Dispatches are numbered from 0, in the order of
/// submission.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  1  outputs differ, or the capture cannot be run here, as stderr says; or a NaN was found
  3  no output was compared, or some of the capture cannot be read: what could be was run

Examples:
  gapscope replay run.gapcapture
  gapscope replay --json run.gapcapture | jq .outputs_equal
  gapscope replay --device nvidia --repeat 20 --warm-up 3 run.gapcapture
  gapscope replay --serialised -o replay.gapscope run.gapcapture
  gapscope replay --tight --repeat 10 run.gapcapture             what the GPU alone would take
  gapscope replay --dispatch 7 --repeat 100 run.gapcapture       the time of one dispatch
  gapscope replay --dump weights@7 --to weights.npy run.gapcapture
  gapscope replay --find-nan run.gapcapture
  gapscope replay --dump p0@3 --type f32 --to first.npy kernel.gapcapture   (CUDA: parameter 0 after launch 3)
  gapscope replay --bench kernel.gapcapture                      (CUDA)
  gapscope replay --with faster.cubin --block 256 kernel.gapcapture        (CUDA)
  gapscope replay --profile kernel.gapcapture                    (CUDA)
  gapscope replay --shrink small.gapcapture kernel.gapcapture    (CUDA)
  gapscope replay --export reproducer kernel.gapcapture          (CUDA)
  gapscope replay --fuse --repeat 10 run.gapcapture              what merging kernels would bring
  gapscope replay --needed-barriers run.gapcapture               what fewer barriers would bring")]
pub struct Replay {
    /// Print JSON; its keys are stable
    #[arg(long)]
    pub json: bool,

    /// Write a trace of the timed runs; the folder must not exist
    #[arg(short, long, value_name = "TRACE.gapscope", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// The device: its number, from 0, or a part of its name [default: the one with the captured device's name, else
    /// the first]
    #[arg(long, value_name = "N|NAME")]
    pub device: Option<String>,

    /// Timed runs; memory is restored before each [default: 1; with --needed-barriers 10 of each]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: Option<u32>,

    /// Runs before those [default: 0; with --needed-barriers 1 of each]
    #[arg(long, value_name = "N")]
    pub warm_up: Option<u32>,

    /// A barrier after each dispatch and transfer, timestamps around each: exact times of each
    #[arg(long, conflicts_with = "tight")]
    pub serialised: bool,

    /// All work in one submission, without the host in between: the time that the program could reach if its CPU cost
    /// nothing
    #[arg(long)]
    pub tight: bool,

    /// Time one dispatch alone, with the memory that what comes before it leaves
    #[arg(long, value_name = "N", conflicts_with_all = ["until", "tight", "serialised", "output"])]
    pub dispatch: Option<u64>,

    /// Stop after this dispatch
    #[arg(long, value_name = "N")]
    pub until: Option<u64>,

    /// Accept floating-point values that are off by at most this share of the captured value or of 1, whichever is
    /// greater; only where the capture has the bytes of its outputs
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub tolerance: Option<f64>,

    /// Write a buffer, by number or name, as it is after a dispatch
    #[arg(long, value_name = "BUFFER@DISPATCH", value_parser = buffer_at, requires = "to",
          conflicts_with_all = ["dispatch", "until", "tight", "serialised", "output", "find_nan"])]
    pub dump: Option<(String, u64)>,

    /// With --dump: the file, which must not exist; .npy for NumPy, else the bytes alone
    #[arg(long, value_name = "FILE", requires = "dump", value_hint = ValueHint::FilePath)]
    pub to: Option<PathBuf>,

    /// Name the first dispatch that wrote a NaN or an infinity into a range that had none. Ranges are looked at whose
    /// kernel declares an array of floating-point numbers, or all, with --type
    #[arg(long, conflicts_with_all = ["dispatch", "tight", "serialised", "output"])]
    pub find_nan: bool,

    /// With --dump and --find-nan: what the elements are [default: what the kernel declares, else u8]
    #[arg(long = "type", value_name = "f32|f16|i32|u8|…", value_parser = element)]
    pub element: Option<Element>,

    /// First have spirv-val, of Khronos' SPIRV-Tools, look at each shader: one that it finds wrong does not reach the
    /// driver
    #[arg(long)]
    pub spirv_val: bool,

    /// Keep accesses outside of buffers inside (robustBufferAccess), where the device can: for captures of strangers
    #[arg(long)]
    pub robust: bool,

    /// Merge chains of elementwise kernels, and time the window as captured, with intermediates stored, and with values in
    /// registers, in turn; --repeat says how often
    #[arg(long, conflicts_with_all = [
        "output", "until", "serialised", "warm_up", "tight", "dispatch", "dump", "find_nan", "tolerance",
    ])]
    pub fuse: bool,

    /// Run the window with those barriers alone that its dependencies call for, in turn with runs with all of them, and compare
    /// time and outputs
    #[arg(long, conflicts_with_all = [
        "output", "until", "serialised", "dispatch", "dump", "find_nan", "fuse",
    ])]
    pub needed_barriers: bool,

    /// CUDA: time one launch with a cold and with a warm L2 cache; --dispatch says which, if there are several
    #[arg(long, conflicts_with_all = ["output", "dump", "find_nan", "tight", "until"])]
    pub bench: bool,

    /// CUDA: the same, and run another kernel in turns with the captured one, on the same memory: compares times and outputs.
    /// The file is a .cubin, .ptx or .cu
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["output", "dump", "find_nan", "tight", "until"])]
    pub with: Option<PathBuf>,

    /// With --with: the kernel's name in the file [default: the captured kernel's, or the only one]
    #[arg(long, value_name = "NAME", requires = "with")]
    pub kernel_name: Option<String>,

    /// With --with: the number of blocks [default: as captured]
    #[arg(long, value_name = "X,Y,Z", value_parser = extent, requires = "with")]
    pub grid: Option<[u32; 3]>,

    /// With --with: the number of threads in a block [default: as captured]
    #[arg(long, value_name = "X,Y,Z", value_parser = extent, requires = "with")]
    pub block: Option<[u32; 3]>,

    /// With --with: the bytes of shared memory that the launch asks for [default: as captured]
    #[arg(long, value_name = "BYTES", requires = "with")]
    pub shared: Option<u32>,

    /// CUDA: record the replay, and measure each kernel by hardware counters, as `gapscope record --profile-kernel` does
    #[arg(long, conflicts_with_all = ["instructions", "bench", "with", "dump", "find_nan", "export"])]
    pub profile: bool,

    /// CUDA: record the replay, and sample the instructions of its kernels with their lines, as `gapscope record --instructions`
    /// does; --repeat is 100 by default then
    #[arg(long, conflicts_with_all = ["bench", "with", "dump", "find_nan", "export"])]
    pub instructions: bool,

    /// CUDA: run nothing, and write a folder that runs without gapscope: the cubins, the data, and programs in C++ and Python. The
    /// folder must not exist
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = [
        "output", "device", "repeat", "warm_up", "tight", "serialised", "dispatch", "until", "tolerance", "dump", "find_nan",
        "element", "spirv_val", "robust", "fuse", "needed_barriers", "bench", "with",
    ])]
    pub export: Option<PathBuf>,

    /// CUDA: find the pages of memory that the launches need, by running them with other bytes in the others, and write a capture in
    /// which all others are zero; the folder must not exist
    #[arg(long, value_name = "OUT.gapcapture", value_hint = ValueHint::DirPath, conflicts_with_all = [
        "output", "repeat", "warm_up", "tight", "serialised", "dispatch", "until", "tolerance", "dump", "find_nan", "element",
        "spirv_val", "robust", "fuse", "needed_barriers", "bench", "with", "profile", "instructions", "export",
    ])]
    pub shrink: Option<PathBuf>,

    /// Run launches for another process, which asks on stdin
    #[arg(long, hide = true)]
    pub shrink_runner: bool,

    /// Run a capture of CUDA that was not made here by this user: its code runs on the GPU as that of any program that you
    /// start
    #[arg(long)]
    pub trust: bool,

    #[command(flatten)]
    pub width: Width,

    /// The capture
    #[arg(value_name = "CAPTURE", value_hint = ValueHint::DirPath)]
    pub capture: PathBuf,
}

impl Replay {
    /// Returns the number of timed runs.
    pub fn runs(&self) -> u32 {
        // Times are compared, which takes several runs.
        const IN_TURN: u32 = 10;
        let usual = if self.needed_barriers { IN_TURN } else { 1 };
        self.repeat.unwrap_or(usual)
    }

    /// Returns the number of runs before those.
    pub fn runs_before(&self) -> u32 {
        self.warm_up.unwrap_or(u32::from(self.needed_barriers))
    }
}

/// Reads a number from 0.
fn share(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(share) if share.is_finite() && share >= 0.0 => Ok(share),
        _ => bail!("write a number from 0, such as 1e-5"),
    }
}

/// Reads the buffer and the dispatch of `BUFFER@DISPATCH`.
fn buffer_at(text: &str) -> Result<(String, u64)> {
    let parts = text
        .rsplit_once('@')
        .filter(|(buffer, _)| !buffer.is_empty());
    let parts = parts.and_then(|(buffer, number)| Some((buffer.to_owned(), number.parse().ok()?)));
    parts.context("write a buffer and the number of a dispatch: weights@7")
}

/// Reads one to three numbers from 1.
fn extent(text: &str) -> Result<[u32; 3]> {
    let mut extent = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    let numbers = parts
        .iter()
        .map(|part| part.trim().parse().ok().filter(|number| *number > 0));
    let numbers: Option<Vec<u32>> = numbers.collect();
    match numbers {
        Some(numbers) if numbers.len() <= 3 => {
            extent[..numbers.len()].copy_from_slice(&numbers);
            Ok(extent)
        }
        _ => bail!("write one to three numbers from 1: 128,2,1"),
    }
}

/// Reads the name of a type of numbers.
fn element(text: &str) -> Result<Element> {
    Element::from_name(text).with_context(|| {
        format!(
            "write one of {}",
            Element::ALL.map(Element::name).join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_named_with_a_dispatch() {
        assert_eq!(buffer_at("a@b@7").unwrap(), ("a@b".to_owned(), 7));
        for wrong in ["a", "@7", "a@", "a@x"] {
            assert!(buffer_at(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_tolerance_is_no_less_than_nothing() {
        assert_eq!(share("1e-5").unwrap(), 1e-5);
        for wrong in ["-1", "NaN", "inf", "much"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
