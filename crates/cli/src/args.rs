//! The arguments of the `gapscope` command. Doc comments here are the texts of `--help`.

mod baseline;
mod bench;
mod deps;
mod diff;
mod doctor;
mod replay;
mod scripts;
mod what_if;

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use gapscope_companion::{Mcp, Query, time};
use gapscope_import::GpuRows;
use gapscope_report::SECTIONS;
use gapscope_trace::kernel_profile::Wanted;
use gapscope_trace::manifest::SamplingMode;
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

pub use baseline::{Baseline, Compare, Save, Task};
pub use bench::{Bench, BenchDevice, BenchTask};
pub use deps::Deps;
pub use diff::{Comparing, Diff};
pub use doctor::Doctor;
#[cfg(target_os = "linux")]
pub use doctor::Probe;
pub use replay::Replay;
pub use scripts::{Explain, Schema};
pub use what_if::WhatIf;

/// Says why a GPU is idle, slow or wrong
#[derive(Debug, Parser)]
#[command(
    name = "gapscope",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Environment:
  GAPSCOPE_MEMORY_LIMIT  memory that a command may take while it reads traces, such as 8G [default: three quarters of the
                         machine's or of its control group's]

Examples:
  gapscope record ./my-program --steps 10        record a program and say why its GPU waits
  gapscope report my-program.gapscope            print it again
  gapscope view my-program.gapscope              look at the timeline in the browser
  gapscope report --json my-program.gapscope     for scripts
  gapscope doctor                                what can be recorded on this machine
  gapscope help record                           all about recording"
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Record(Record),
    Capture(Capture),
    Report(Report),
    Explain(Explain),
    Diff(Diff),
    WhatIf(WhatIf),
    Baseline(Baseline),
    Bench(Bench),
    View(View),
    Export(Export),
    Query(Query),
    Import(Import),
    Deps(Deps),
    Info(Info),
    Doctor(Doctor),
    Recover(Recover),
    Replay(Replay),
    Schema(Schema),
    Mcp(Mcp),
    Completions(Completions),
    /// Samples hardware counters for `gapscope record`, which starts it
    #[command(hide = true)]
    SampleCounters,
}

/// Record the GPU timeline of a command and report on it
///
/// Runs the command unmodified, with the gapscope layer in its Vulkan loader, and writes a trace. Child processes are
/// recorded too. The command keeps stdin, stdout and stderr; everything that gapscope says, the report included, goes
/// to stderr, so that a pipe from the command carries the same as without gapscope. What is behind the command's name is the
/// command's own. Progress is shown on the terminal only while the command writes elsewhere, with stdout and stderr.
/// Ctrl-C reaches the command; the trace is complete nevertheless.
#[derive(Debug, Args)]
#[command(after_help = "\
What a trace holds, for whoever gets it:
  the command line and those of its processes (not with --no-arguments; what looks like a password
  or a key is replaced by ***); paths of programs, libraries and sampled code, with functions and
  lines; labels; names and code of kernels, with source files that CUDA code names; operating
  system, processor, GPUs, drivers and the boot's id; times.
  Not: environment variables, the user's or the machine's name other than in paths, what is in
  buffers, what the program prints.

Sampling modes:
  command-buffer       times of command buffers only; always possible and cheapest
  dispatch             times of each dispatch; dispatches may overlap as they do without gapscope
  dispatch-serialised  a barrier after each dispatch: exact for each kernel, an upper bound in sum

Exit status:
  that of the command; 128 + N when signal N ended it
  125  gapscope could not record, or the command ended with 0 and did nothing that can be recorded
  126  the command cannot be run
  127  the command is not found
  2    wrong option

Examples:
  gapscope record ./my-program --steps 10
  gapscope record -o before.gapscope --mode command-buffer python train.py
  gapscope record --delay 5s --time-limit 10s --no-report ./server
  gapscope record --start-label 'step 3' ./my-program
  gapscope record --capture-only ./my-program-with-the-sdk
  gapscope record --label-modules python train.py
  gapscope record --profile-kernel gemm:2 --profile-kernel 'fill<float>' python train.py
  gapscope record --instructions=gemm python train.py")]
pub struct Record {
    /// Folder to write; it must not exist [default: NAME.gapscope or NAME-2.gapscope, …, of the command's name]
    #[arg(short, long, value_name = "OUT.gapscope", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// How the GPU is sampled
    #[arg(long, value_enum, default_value_t = Mode::Dispatch, hide_possible_values = true,
          value_name = "command-buffer|dispatch|dispatch-serialised")]
    pub mode: Mode,

    /// Leave the arguments of the command and of its processes out of the trace
    #[arg(long)]
    pub no_arguments: bool,

    /// File that names kernels, one on each line: `HASH = NAME`, where HASH is the start of the hash of the kernel's code
    /// as reports show it (`spv:48373bb5`)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub names: Option<PathBuf>,

    /// End the command after this time: SIGTERM, and SIGKILL 5 s later
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub time_limit: Option<Duration>,

    /// Start recording this long after the command has started
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub delay: Option<Duration>,

    /// Start recording when a debug label that contains TEXT starts
    #[arg(long, value_name = "TEXT", conflicts_with = "delay")]
    pub start_label: Option<String>,

    /// Label GPU work by the modules of PyTorch's models (`blocks.3.attn.qkv`), forward and backward
    #[arg(long)]
    pub label_modules: bool,

    /// Label GPU work by PyTorch's operators (`aten::mm`), forward and backward; the report has a table of them
    #[arg(long)]
    pub label_ops: bool,

    /// Measure the first N launches [default: 1] of CUDA kernels whose name contains NAME, as reports show it or as in the
    /// code: memory, units, occupancy and stalls by hardware counters, for which such a launch is run again and again.
    /// May be given several times; see docs/profile-kernel.md
    #[arg(long, value_name = "NAME[:N]", conflicts_with_all = ["gputrace", "attach", "counters"])]
    pub profile_kernel: Vec<Wanted>,

    /// Sample the instructions that CUDA kernels run, with the lines that they were compiled from: of all kernels, or of those
    /// whose name contains NAME. The GPU's counters serve one of --instructions, --profile-kernel and --counters at a
    /// time. See docs/instructions.md
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "",
          conflicts_with_all = ["gputrace", "attach", "counters", "profile_kernel", "capture_only"])]
    pub instructions: Option<String>,

    /// Record only the captures that the command makes with gapscope's SDK (`start_capture`), each as a trace of its
    /// own: at the path that the command gives, or OUT, OUT-2, …
    #[arg(long, conflicts_with_all = ["delay", "start_label"])]
    pub capture_only: bool,

    /// Do not read the stacks of threads that submit: the report names no lines of code then
    #[arg(long)]
    pub no_stacks: bool,

    /// Read the stacks of threads that submit this often a second
    #[arg(long, value_name = "HZ", default_value_t = 500, conflicts_with = "no_stacks",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub stack_rate: u32,

    /// Sample hardware counters of NVIDIA's GPUs: `default` (SMs active, DRAM read and written, tensor pipe active), `wide`
    /// (all that can be counted at once), or names with commas between; of other Vulkan drivers, what they can count
    #[arg(long, value_name = "SET", num_args = 0..=1, require_equals = true, default_missing_value = "default")]
    pub counters: Option<String>,

    /// Sample them this often: 10us to 1s [default: 100us for up to 4 counters, else 1ms]
    #[arg(long, value_name = "TIME", requires = "counters", value_parser = sampling_interval)]
    pub counter_interval: Option<Duration>,

    /// Show the timeline in the browser while the command runs, and until Ctrl-C after it
    #[arg(long, conflicts_with = "capture_only")]
    pub view: bool,

    /// Write the trace and print no report
    #[arg(long)]
    pub no_report: bool,

    /// Draw progress on the terminal while the command runs; only for a command that does not use the terminal itself. On
    /// macOS it is shown without this option, once the command has ended
    #[arg(long, conflicts_with_all = ["no_progress", "quiet"])]
    pub progress: bool,

    /// Show no progress; the report is printed
    #[arg(long)]
    pub no_progress: bool,

    /// Print nothing but errors: no progress, no report
    #[arg(short, long)]
    pub quiet: bool,

    /// Capture the GPU's commands instead of their timeline: a document for Xcode, which must not exist, by Apple's
    /// gpucapture; only on macOS, since version 27. With --attach, of a process that was started with
    /// MTL_CAPTURE_ENABLED=1
    #[arg(long, value_name = "NAME.gputrace", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["output", "names", "time_limit", "delay", "start_label", "capture_only", "view"])]
    pub gputrace: Option<PathBuf>,

    /// With --gputrace: capture the scope or layer with this label
    #[arg(long, value_name = "TEXT", requires = "gputrace")]
    pub gputrace_label: Option<String>,

    /// With --gputrace: capture this many boundaries, or until the process ends (`all`) [default: 1]
    #[arg(long, value_name = "N|all", requires = "gputrace", value_parser = boundaries)]
    pub gputrace_count: Option<Boundaries>,

    /// Record this running process instead of a command; only where Instruments records (macOS)
    #[arg(long, value_name = "PID", conflicts_with = "command", value_parser = clap::value_parser!(u32).range(1..))]
    pub attach: Option<u32>,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, required_unless_present = "attach", value_name = "CMD",
          value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Capture a window of a command's GPU work, to run it again
///
/// Runs the command unmodified, with gapscope's capturing layer in its Vulkan loader and its library in its CUDA driver, and
/// writes what a window of its GPU work needs to run again: kernels, commands or launches, and the memory that they read. Inside
/// the window each submission is waited for, so that times there are not the program's own; outside of it nothing changes. What
/// cannot be captured right ends the window before it, by name.
#[derive(Debug, Args)]
#[command(after_help = "\
Without an option that says which, all work is captured, up to the first capture that the command
makes itself with gapscope's SDK. Submissions and dispatches are counted from 0, and B is not part
of the window. Where a submission cannot be cut around dispatches (it has queries, images, events
or secondary command buffers), all of it is captured.

Exit status:
  that of the command; 128 + N when signal N ended it
  125  nothing was captured, and the command ended with 0
  126  the command cannot be run
  127  the command is not found
  2    wrong option

Examples:
  gapscope capture -o step.gapcapture --submissions 3..4 ./my-program
  gapscope capture --dispatches 100..110 python infer.py
  gapscope capture --label 'step 3' ./my-program
  gapscope capture --signal ./server      kill -USR2 begins the window, and ends it
  gapscope capture --kernel softmax:3 python train.py     the fourth launch of a CUDA kernel of this name
  gapscope capture --launches 1000..1010 python train.py")]
pub struct Capture {
    /// Folder to write; it must not exist [default: NAME.gapcapture or NAME-2.gapcapture, …, of the command's name]
    #[arg(short, long, value_name = "OUT.gapcapture", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// Capture these dispatches, and what is between them
    #[arg(long, value_name = "A..B", value_parser = range, group = "window")]
    pub dispatches: Option<Range<u64>>,

    /// Capture one launch of a CUDA kernel whose name contains NAME: the N-th such launch, from 0 [default: the first]
    #[arg(long, value_name = "NAME[:N]", value_parser = kernel_launch, group = "window")]
    pub kernel: Option<(String, u64)>,

    /// Capture these launches of CUDA kernels, numbered from 0
    #[arg(long, value_name = "A..B", value_parser = range, group = "window")]
    pub launches: Option<Range<u64>>,

    /// Capture these submissions, numbered from 0 and counted as the report counts them
    #[arg(long, value_name = "A..B", value_parser = range, group = "window")]
    pub submissions: Option<Range<u64>>,

    /// Capture the first run of submissions under a label that contains TEXT: a debug label of a command buffer or a queue, a
    /// label of gapscope's SDK or Python package; for CUDA also a range of NVTX
    #[arg(long, value_name = "TEXT", group = "window")]
    pub label: Option<String>,

    /// Capture what the command captures itself with gapscope's SDK (`start_capture`): at the path that it gives, or OUT, OUT-2, …
    #[arg(long, group = "window")]
    pub capture_only: bool,

    /// Capture from one signal SIGUSR2 to this process to the next
    #[arg(long, group = "window")]
    pub signal: bool,

    /// Keep the bytes that the window wrote, and not their hashes alone: another device's can then be compared within a tolerance
    #[arg(long)]
    pub keep_outputs: bool,

    /// Refuse a launch of CUDA that reaches more bytes of memory than this; K, M and G stand for 2^10, 2^20 and 2^30
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "8G")]
    pub most_bytes: u64,

    /// Print what was captured as JSON, on stderr
    #[arg(long)]
    pub json: bool,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Say what a trace shows: the verdict, what to do first, the causes of idle time, the kernels
///
/// Prints what a reader needs first; --full prints all that is known, as --markdown and --json do. Every report states the
/// sampling mode and the error bound of its times. What was not recorded is listed; what is not known is `unknown`,
/// never 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  3  some of the trace cannot be read: the report says which table first, and what rests on it is `unknown`

Examples:
  gapscope report run.gapscope
  gapscope report --full run.gapscope
  gapscope report --section kernels --top 0 run.gapscope
  gapscope report --markdown run.gapscope > run.md
  gapscope report --json run.gapscope | jq .verdict
  gapscope report --html run.html run.gapscope
  gapscope report --label 'step 3' --top 5 run.gapscope
  gapscope report --compare-labels eager,compiled fusion.gapscope")]
pub struct Report {
    /// Print all sections, and not only what a reader needs first
    #[arg(long, conflicts_with_all = ["section", "json", "html"])]
    pub full: bool,

    /// Print one section; may be given several times
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(SECTIONS),
          conflicts_with_all = ["json", "html"])]
    pub section: Vec<String>,

    /// Print JSON; its keys are stable
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,

    /// Print Markdown
    #[arg(long)]
    pub markdown: bool,

    /// Write the page of `gapscope view` with the trace in it as one HTML file, which must not exist; large traces are
    /// folded
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["json", "markdown", "slices", "all", "top", "columns", "each_layer", "label", "compare_labels"])]
    pub html: Option<PathBuf>,

    /// Add the timeline to the JSON as `activity`: how long the GPU worked in each of N equal slices
    #[arg(long, value_name = "N", requires = "json", conflicts_with = "compare_labels",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub slices: Option<u32>,

    /// Include the warm-up, which is left out where it is detected
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub width: Width,

    /// File that names kernels, one on each line, in place of the recorded names: `HASH = NAME`, as of `gapscope record`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub names: Option<PathBuf>,

    /// Rows in each table; 0 for all of them (JSON always has all)
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,

    /// Show each layer of a model by itself, where the table of labels has one row for them all (`blocks.*`)
    #[arg(long)]
    pub each_layer: bool,

    /// Only the work under the label L, or else under labels that contain L
    #[arg(long, value_name = "L")]
    pub label: Option<String>,

    /// Compare the work under two labels, each as for --label: what A and B ran, moved and took
    #[arg(long, value_name = "A,B", value_parser = two_labels, conflicts_with_all = ["label", "top"])]
    pub compare_labels: Option<(String, String)>,

    /// Quote lines of Python from the files in DIR, whoever recorded the trace [default: for a trace that you recorded on this
    /// machine, from the files that it names]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "html")]
    pub sources: Option<PathBuf>,

    /// Quote only files in these folders, for `gapscope mcp`
    #[arg(long, value_name = "DIR", hide = true)]
    pub sources_within: Vec<PathBuf>,

    /// The trace
    #[arg(value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
}

/// How wide text is drawn.
#[derive(Debug, Args)]
pub struct Width {
    /// Columns of the text [default: $COLUMNS, else those of the terminal, else 80]; sentences take at most 120
    #[arg(long = "width", value_name = "N", value_parser = clap::value_parser!(u16).range(60..=1000))]
    pub columns: Option<u16>,
}

/// Look at traces, or at a capture, in the browser
///
/// Serves a timeline on 127.0.0.1 until Ctrl-C, and prints its address: only those who know it can look. No other
/// machine is contacted. Two traces are shown one below the other, for comparison. Of a capture, the page shows what depends
/// on what: commands with the bytes that they read and write, hazards, needless barriers, the longest chain.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gapscope view run.gapscope
  gapscope view before.gapscope after.gapscope
  gapscope view step.gapcapture
  gapscope view --no-open --port 8080 run.gapscope")]
pub struct View {
    /// Do not open the browser
    #[arg(long)]
    pub no_open: bool,

    /// Port to serve at [default: any free one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,

    /// Rows that the page holds at once, of 24 bytes each [default: 16000000]; of a larger trace it loads what is in sight
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    pub page_rows: Option<u64>,

    /// File that names kernels, one on each line, in place of the recorded names: `HASH = NAME`, as of `gapscope record`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub names: Option<PathBuf>,

    /// Quote lines of Python from the files in DIR, whoever recorded the trace [default: for a trace that you recorded on this
    /// machine, from the files that it names]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "html")]
    pub sources: Option<PathBuf>,

    /// Write the page with the traces in it as one HTML file, which must not exist, and serve nothing; large traces are folded
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["no_open", "port", "page_rows"])]
    pub html: Option<PathBuf>,

    /// A trace, with those of its ranks if it has any, or two to compare; or a capture; or the file of a saved view. A trace may be
    /// followed by `#` and what the page's address has behind it
    #[arg(value_name = "TRACE|CAPTURE|VIEW", required = true, num_args = 1..=2, value_hint = ValueHint::DirPath)]
    pub traces: Vec<PathBuf>,
}

/// Write a trace in the format of another tool
///
/// Work that overlaps in time is split into lanes, so that no tool drops it. Work without times cannot be drawn: it is
/// counted on stderr.
#[derive(Debug, Args)]
#[command(after_help = "\
Formats:
  perfetto    native protobuf, for ui.perfetto.dev and trace_processor
  chrome      trace event JSON, for chrome://tracing, Perfetto and others
  firefox     for profiler.firefox.com
  speedscope  for speedscope.app; a profile for each queue and thread
  csv         a folder with a file for each table, and the manifest

Exit status:
  3  some of the trace cannot be read, as stderr says, and is not in what was written

Examples:
  gapscope export --format perfetto -o run.pftrace run.gapscope
  gapscope export --format chrome -o - run.gapscope | gzip > run.json.gz
  gapscope export --format csv -o run-csv run.gapscope")]
pub struct Export {
    /// What to write
    #[arg(
        long,
        value_enum,
        value_name = "perfetto|chrome|firefox|speedscope|csv",
        hide_possible_values = true
    )]
    pub format: Format,

    /// File to write, `-` for stdout, or for csv a folder; it must not exist
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,

    /// Write a file for each rank, FILE.rank=N, instead of one for all
    #[arg(long)]
    pub each_rank: bool,

    /// Leave out the trace itself, which perfetto and chrome have behind the drawing for `gapscope import`
    #[arg(long)]
    pub drawing_only: bool,

    /// The trace
    #[arg(value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Perfetto,
    Chrome,
    Firefox,
    Speedscope,
    Csv,
}

/// Make a trace of the files of another profiler
///
/// Reads what these write; which of them it was is found out by content. What is missing is counted.
///
/// PyTorch's profiler (Kineto), XLA and others: Chrome's JSON, also .gz, of one rank or several;
/// Nsight Systems: `nsys export --type sqlite`;
/// rocprofv3: its database (rocpd), or --output-format json;
/// Perfetto: .pftrace, also .gz; jax.profiler and TensorFlow: .xplane.pb;
/// ggml's Vulkan backend: the log of GGML_VK_PERF_LOGGER=1;
/// Xcode's GPU debugger: Counters.csv; Apple's `xctrace export`: .xml; on macOS Instruments' recordings: NAME.trace.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gapscope import trace.json.gz                                   PyTorch; writes trace.gapscope
  gapscope import -o run.gapscope rank0.json.gz rank1.json.gz     its ranks, or their folder
  gapscope import -o run.gapscope --as rank=0 a.json --as rank=1 b.json
  gapscope import -o run.gapscope --ranks 0,1 a.json b.json       the same
  gapscope import -o run.gapscope --gpu 'pid=*' scopes.json       wgpu-profiler: all rows are a GPU's
  gapscope import -o run.gapscope run.sqlite                      Nsight Systems
  gapscope import -o run.gapscope run.sqlite trace.json.gz        both of one run: joined
  gapscope import -o run.gapscope HOST/PID_results.db             rocprofv3
  gapscope import -o run.gapscope trace.pftrace                   Perfetto
  gapscope import -o run.gapscope host.xplane.pb                  JAX
  gapscope import -o run.gapscope stderr.log                      ggml (llama.cpp)
  gapscope import -o run.gapscope toc.xml gpu-intervals.xml submissions.xml
  gapscope import -o run.gapscope run.trace                       Instruments, on macOS")]
pub struct Import {
    /// Folder to write; it must not exist [default: FILE.gapscope here, after the first file, or the first free FILE-N.gapscope]
    #[arg(short, long, value_name = "OUT.gapscope", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,

    /// The process whose work is imported [default: the one that was recorded]
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,

    /// What the next file is, where the files do not say it: the rank of a distributed program. Name one for each file
    #[arg(long = "as", value_name = "rank=N", value_parser = rank, conflicts_with = "ranks")]
    pub named_ranks: Vec<u32>,

    /// The ranks of the files, in their order, where the files do not say them
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub ranks: Vec<u32>,

    /// Rows of Chrome's JSON that are a GPU's, where the file does not say it, such as 'pid=1,tid=*'. Keys: pid, tid,
    /// process and thread (names), cat; device=N; unit=ns, us or ms. Repeat it for other rows
    #[arg(long = "gpu", value_name = "ROWS")]
    pub gpu_rows: Vec<GpuRows>,

    /// Files or folders
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub inputs: Vec<PathBuf>,
}

/// Returns the rank that a text such as `rank=3` names.
fn rank(text: &str) -> Result<u32, String> {
    let number = text
        .strip_prefix("rank=")
        .and_then(|text| text.parse().ok());
    number.ok_or_else(|| "write rank=N, with a number from 0 on".to_owned())
}

/// Show what is in a trace: machine, processes, devices, queues, clocks, tables, losses
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  3  a table cannot be read

Example:
  gapscope info run.gapscope")]
pub struct Info {
    #[command(flatten)]
    pub width: Width,

    /// The trace
    #[arg(value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
}

/// Complete the trace of a recording that was killed
///
/// What the hooks wrote before the end is kept; what is missing is counted in the trace's losses.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  gapscope recover run.gapscope")]
pub struct Recover {
    /// Complete it even while the recorded program is still running; what it does later is lost
    #[arg(long)]
    pub force: bool,

    /// The trace
    #[arg(value_name = "TRACE", value_hint = ValueHint::DirPath)]
    pub trace: PathBuf,
}

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gapscope completions bash > ~/.local/share/bash-completion/completions/gapscope
  gapscope completions zsh > ~/.zfunc/_gapscope
  gapscope completions fish > ~/.config/fish/completions/gapscope.fish")]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    CommandBuffer,
    Dispatch,
    DispatchSerialised,
}

impl From<Mode> for SamplingMode {
    fn from(mode: Mode) -> SamplingMode {
        match mode {
            Mode::CommandBuffer => SamplingMode::CommandBuffer,
            Mode::Dispatch => SamplingMode::Dispatch,
            Mode::DispatchSerialised => SamplingMode::DispatchSerialised,
        }
    }
}

/// How long a capture of commands is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundaries {
    /// After this many boundaries, at least 1.
    Count(u32),
    /// When the process ends.
    All,
}

/// Reads a number from 1, or `all`.
fn boundaries(text: &str) -> Result<Boundaries> {
    match text.parse() {
        _ if text == "all" => Ok(Boundaries::All),
        Ok(count) if count > 0 => Ok(Boundaries::Count(count)),
        _ => bail!("write a number from 1, or `all`"),
    }
}

/// Reads the name of a kernel, and which of its launches.
fn kernel_launch(text: &str) -> Result<(String, u64)> {
    // Names of C++ have colons, too: the number is behind the last one.
    let (name, number) = match text.rsplit_once(':') {
        Some((name, number)) if number.parse::<u64>().is_ok() && !name.ends_with(':') => {
            (name, number.parse()?)
        }
        _ => (text, 0),
    };
    match name.is_empty() || (name.ends_with(':') && !name.ends_with("::")) {
        true => bail!("write a part of a kernel's name, and which of its launches: softmax:3"),
        false => Ok((name.to_owned(), number)),
    }
}

/// Reads a number of bytes, with K, M or G behind it or without.
fn bytes(text: &str) -> Result<u64> {
    let text = text.strip_suffix('B').unwrap_or(text);
    let text = text.strip_suffix('i').unwrap_or(text);
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let bytes = digits.parse::<u64>().ok();
    let bytes = bytes.and_then(|number| number.checked_mul(1 << shift));
    match bytes {
        Some(bytes) if bytes > 0 => Ok(bytes),
        _ => bail!("write a number of bytes, such as 512M"),
    }
}

/// Reads a range `A..B`, whose end is not part of it.
fn range(text: &str) -> Result<Range<u64>> {
    let bounds = text.split_once("..");
    match bounds.map(|(start, end)| (start.parse(), end.parse())) {
        Some((Ok(start), Ok(end))) if start < end => Ok(start..end),
        _ => bail!("write a range such as 3..5, whose end is not part of it"),
    }
}

/// Reads a time between two samples of counters: 10 µs to 1 s.
fn sampling_interval(text: &str) -> Result<Duration> {
    let interval = time(text)?;
    match interval.as_micros() {
        10..=1_000_000 => Ok(interval),
        _ => bail!("counters are sampled every 10us to 1s"),
    }
}

/// Reads two texts with a comma between, both not empty.
fn two_labels(text: &str) -> Result<(String, String)> {
    match text.split_once(',') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() && !b.contains(',') => {
            Ok((a.to_owned(), b.to_owned()))
        }
        _ => bail!("write two labels with a comma between: eager,compiled"),
    }
}

/// The parts of a report that are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages<'a> {
    /// The first screen, which has what a reader needs first.
    FirstScreen,
    /// All sections.
    All,
    /// The sections with these names.
    Sections(&'a [String]),
}

impl Report {
    /// Returns the parts that are drawn: all of them in Markdown, where nobody scrolls past a first screen.
    pub fn pages(&self) -> Pages<'_> {
        match self.section.as_slice() {
            [] if self.full || self.markdown => Pages::All,
            [] => Pages::FirstScreen,
            names => Pages::Sections(names),
        }
    }
}

/// Returns how many rows a table has by `--top`, of which 0 means all.
pub fn row_limit(top: usize) -> usize {
    if top == 0 { usize::MAX } else { top }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_time_needs_a_unit_and_a_value() {
        assert_eq!(time("10s").unwrap(), Duration::from_secs(10));
        assert_eq!(time("1.5m").unwrap(), Duration::from_secs(90));
        assert_eq!(time("250ms").unwrap(), Duration::from_millis(250));
        for wrong in ["10", "s", "", "1d", "-1s", "0s", "1.2.3s", "1e99h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_comparison_is_of_two_labels() {
        assert!(two_labels("eager,compiled").is_ok());
        for wrong in ["eager", "eager,", ",compiled", "a,b,c"] {
            assert!(two_labels(wrong).is_err(), "{wrong}");
        }
    }
}
