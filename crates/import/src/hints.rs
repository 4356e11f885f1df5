//! Says what to do with files that gapscope does not import but knows by their content or their name: a path goes in,
//! and the end of the sentence `PATH is …` comes out.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The number of bytes at the start of a file by which its content is known.
const FIRST_BYTES: u64 = 1 << 16;

const NO_CONTENT: &str = "an empty file: the tool that wrote it has failed, or the copy of it";
const ZIP: &str = "a zip archive: unpack it with `unzip` and import the files inside";
const ARCHIVE: &str = "an archive: unpack it (`tar -xf`, `7z x`) and import the files inside";
const COMPRESSED: &str =
    "a compressed file: decompress it (`xz -d`, `bzip2 -d`, `lz4 -d`) and import what is inside";
const LFS: &str = "a pointer of Git LFS and not the file itself: run `git lfs pull` where it lies";
const PAGE: &str = "a web page: download the file itself, such as by its \"Raw\" button";
const GPUTRACE: &str = "a GPU capture of Xcode, which only Xcode can read: open it there, profile it, and import the Counters.csv that \"Export GPU Counters\" writes, or import a Metal System Trace of the program for a timeline";
const XCODE_TRACE: &str = "a recording of Instruments, which only xctrace can read: on a Mac, `gapscope import` runs xctrace on it; elsewhere import the XML that `xctrace export` writes";
const QDSTRM: &str = "an unfinished recording of Nsight Systems: run nsys' QdstrmImporter on it (`QdstrmImporter -i FILE`), then `nsys export --type sqlite` on the report, and import the database";
const NSYS_EXPORT: &str = "an export of Nsight Systems in a form that gapscope does not read: export the report again with `nsys export --type sqlite`";
const NCU: &str = "a report of Nsight Compute, which has counters of single kernels and no timeline: look at it with `ncu --import`, and record the program with `gapscope record` or Nsight Systems";
const NVPROF: &str = "a profile of nvprof, which gapscope does not read: record the program again with `gapscope record` or Nsight Systems";
const ETL: &str = "a trace of Event Tracing for Windows, which gapscope does not read: record the program with the profiler of its GPU's vendor or with torch.profiler, and import that";
const RGP: &str = "a capture of the Radeon GPU Profiler, which gapscope does not read: record the program with `gapscope record` (Vulkan) or rocprofv3 (HIP)";
const RENDERDOC: &str =
    "a capture of RenderDoc, which has no timeline: record the program with `gapscope record`";
const GFXR: &str = "a capture of GFXReconstruct, which has no timeline: record its replay, `gapscope record -- gfxrecon-replay FILE`";
const HOST_SAMPLES: &str = "a profile of the host's processors, which has no GPU work: import a profile that has the GPU's timeline";
const SNAPSHOT: &str = "a pickled Python object and no snapshot of PyTorch's memory: import what `torch.cuda.memory._dump_snapshot` or `export_chrome_trace` writes";
const TENSORBOARD: &str =
    "a log of TensorBoard: import the profile in its folder `plugins/profile`, an `.xplane.pb`";
const ROCM_CSV: &str = "a table of rocprof, which lacks what joins calls and kernels: record with `rocprofv3 --sys-trace --output-format pftrace`, or import the database (`PID_results.db`) that rocprofv3 writes by default";
const CSV: &str = "a table that gapscope does not know: import the recording that it was made of";
const PROTON_TREE: &str = "Proton's tree of counters, which has sums and no timeline: start Proton with `data=\"trace\"` (`proton.start(name, data=\"trace\")`) and import the `.chrome_trace` that it writes";
const SPEEDSCOPE: &str =
    "a file of speedscope, which has samples of the host's code and no GPU work";
const RPD: &str = "a database of rocmProfileData (RPD) without tables of calls and of GPU work: record again, or record with `rocprofv3 --sys-trace`, and import the database that it writes";
const DATABASE: &str = "a database of SQLite in which gapscope finds no tables of Nsight Systems or rocprofv3: import what `nsys export --type sqlite` or rocprofv3 has written";
const TRACE: &str = "a trace of gapscope already: `gapscope report` and `gapscope view` read it";
const CAPTURE: &str = "a capture of gapscope: `gapscope replay` runs it, and `gapscope deps` and `gapscope view` read it";
const EXECUTION_TRACE: &str = "an execution trace of PyTorch (or one of Chakra made of it), which has operators and no times of GPU work: import what `export_chrome_trace` writes";
const MEMORY_TIMELINE: &str = "PyTorch's timeline of memory (`export_memory_timeline`), which has no GPU work: import what `export_chrome_trace` writes";
const DEFLATED: &str = "text that zlib has packed, without the frame of gzip: unpack it (`python3 -c 'import sys, zlib; sys.stdout.buffer.write(zlib.decompress(sys.stdin.buffer.read()))' < FILE`) and import what is inside";
const DOCKER_LOG: &str = "a log of Docker's json-file driver, which wraps each line: take the text out (`jq -rj .log FILE > trace.json`) and import that";
const JSON: &str = "JSON that no importer knows: gapscope reads lists of events in Chrome's format (`traceEvents`) and the JSON of rocprofv3";

/// Hints by the end of a name in lower case.
const BY_NAME: [(&str, &str); 27] = [
    (".gputrace", GPUTRACE),
    (".trace", XCODE_TRACE),
    (".qdstrm", QDSTRM),
    (".ncu-rep", NCU),
    (".ncu-repz", NCU),
    (".nvvp", NVPROF),
    (".nvprof", NVPROF),
    (".etl", ETL),
    (".rgp", RGP),
    (".rdc", RENDERDOC),
    (".gfxr", GFXR),
    (".zip", ZIP),
    (".7z", ARCHIVE),
    (".tar", ARCHIVE),
    (".tgz", ARCHIVE),
    (".tar.gz", ARCHIVE),
    (".xz", COMPRESSED),
    (".bz2", COMPRESSED),
    (".lz4", COMPRESSED),
    (".arrow", NSYS_EXPORT),
    (".hdf", NSYS_EXPORT),
    (".parquet", NSYS_EXPORT),
    (".pickle", SNAPSHOT),
    (".pkl", SNAPSHOT),
    (".hatchet", PROTON_TREE),
    (".gapscope", TRACE),
    (".gapcapture", CAPTURE),
];

/// Hints by the first bytes of a file.
const BY_START: [(&[u8], &str); 15] = [
    (b"\x78\x01", DEFLATED),
    (b"\x78\x9c", DEFLATED),
    (b"\x78\xda", DEFLATED),
    (b"PK\x03\x04", ZIP),
    (b"7z\xbc\xaf\x27\x1c", ARCHIVE),
    (b"\xfd7zXZ\0", COMPRESSED),
    (b"BZh", COMPRESSED),
    (b"\x04\x22\x4d\x18", COMPRESSED),
    (b"version https://git-lfs", LFS),
    (b"PERFILE2", HOST_SAMPLES),
    (b"RDOC", RENDERDOC),
    (b"GFXR", GFXR),
    (b"<!DOCTYPE html", PAGE),
    (b"<html", PAGE),
    (b"\x80\x04\x95", SNAPSHOT),
];

/// Returns what a file or folder is and what to do with it, as the end of the sentence `PATH is …`; `None` if it is
/// not known.
pub(crate) fn hint(path: &Path) -> Option<&'static str> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    let start = first_bytes(path);
    let by_start = start.as_deref().and_then(by_content);
    let by_name = || BY_NAME.iter().find(|(end, _)| name.ends_with(end));
    by_start
        .or_else(|| by_name().map(|(_, hint)| *hint))
        .or_else(|| name.contains("tfevents").then_some(TENSORBOARD))
        .or_else(|| start.as_deref().and_then(json))
}

/// Returns the first bytes of a file; `None` if the path is no file that can be read.
fn first_bytes(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = path.is_file().then(|| File::open(path))?.ok()?;
    file.take(FIRST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the hint on a content that the first bytes show.
fn by_content(start: &[u8]) -> Option<&'static str> {
    if start.is_empty() {
        return Some(NO_CONTENT);
    }
    let has = |word: &[u8]| memchr::memmem::find(start, word).is_some();
    if start.starts_with(b"SQLite format 3\0") {
        return Some(match () {
            () if has(b"StringTable") && has(b"CUPTI_ACTIVITY") => NVPROF,
            () if has(b"rocpd_api_ops") || has(b"rocpd_ops") => RPD,
            () => DATABASE,
        });
    }
    let known = BY_START.iter().find(|(magic, _)| {
        let own = start.get(..magic.len());
        own.is_some_and(|own| own.eq_ignore_ascii_case(magic))
    });
    let is_tar = start.get(257..262) == Some(b"ustar");
    let hint = known.map(|(_, hint)| *hint);
    hint.or(is_tar.then_some(ARCHIVE)).or_else(|| table(start))
}

/// Returns the hint on a table of texts, by its first line. Profilers of NVIDIA write messages before it (`==PROF== …`).
fn table(start: &[u8]) -> Option<&'static str> {
    let mut lines = start.split(|byte| *byte == b'\n');
    let line = lines.find(|line| !line.starts_with(b"=="))?;
    let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    let separators = |separator: u8| line.iter().filter(|byte| **byte == separator).count();
    // Tables of OpenVINO have semicolons, which are in other lines of text, too.
    match separators(b',').max(separators(b';').saturating_sub(2)) {
        0 | 1 => None,
        _ if line.starts_with(b"{") || line.starts_with(b"[") => None,
        _ if has(b"Agent_Id") || has(b"Correlation_Id") || has(b"Logical_Node_Id") => {
            Some(ROCM_CSV)
        }
        _ if has(b"\"Kind\"") || has(b"gpu-id") => Some(ROCM_CSV),
        2.. => std::str::from_utf8(line).is_ok().then_some(CSV),
    }
}

/// Returns the hint on a JSON text.
fn json(start: &[u8]) -> Option<&'static str> {
    let begins = start.trim_ascii_start().first()?;
    let has = |word: &[u8]| memchr::memmem::find(start, word).is_some();
    match begins {
        b'{' if start.trim_ascii_start().starts_with(b"{\"log\":\"") => Some(DOCKER_LOG),
        b'{' | b'[' if has(b"\"frame\"") && has(b"\"metrics\"") => Some(PROTON_TREE),
        b'{' if has(b"speedscope") => Some(SPEEDSCOPE),
        b'{' if has(b"\"nodes\"") && has(b"\"schema\"") => Some(EXECUTION_TRACE),
        b'[' if start.trim_ascii_start().starts_with(b"[[") => Some(MEMORY_TIMELINE),
        b'{' if has(b"\"StringIds\"") || has(b"CudaEvent") => Some(NSYS_EXPORT),
        b'{' | b'[' => Some(JSON),
        _ if start.trim_ascii() == b"null" => Some(JSON),
        _ => None,
    }
}
