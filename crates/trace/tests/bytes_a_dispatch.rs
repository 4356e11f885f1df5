//! Measures the size of a dispatch on disk, and the time to write and to read it.
//!
//! `cargo test --release -p gapscope-trace --test bytes_a_dispatch -- --ignored --nocapture`

use gapscope_trace::ids::*;
use gapscope_trace::manifest::Manifest;
use gapscope_trace::tables::*;
use gapscope_trace::{Selection, Tables, TraceWriter, read};
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// Pseudo-random numbers, the same in each run (xorshift64*).
struct Noise(u64);

impl Noise {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) * end) >> 32
    }
}

/// Generates inference as it looks on a device: a step of 900 dispatches of 30 kernels again and again, in command
/// buffers of 50 to 60 dispatches. Each kernel has its duration, from 2 to 90 µs, with 3 % of noise.
struct Program {
    noise: Noise,
    now: i64,
    command_buffer: u64,
    position: u32,
    end: u32,
    step: u32,
}

impl Program {
    fn new() -> Program {
        Program {
            noise: Noise(0x9E37_79B9_7F4A_7C15),
            now: 5_000_000_000_000,
            command_buffer: 1,
            position: 0,
            end: 55,
            step: 0,
        }
    }

    fn next(&mut self) -> Dispatch {
        if self.position >= self.end {
            self.command_buffer += 1;
            self.position = 0;
            self.end = 50 + self.noise.below(11) as u32;
            self.now += 5_000 + self.noise.below(20_000) as i64;
        }
        self.step = (self.step + 1) % 900;
        let kernel = 1 + self.step % 30;
        let mean = 2_000 + u64::from(kernel) * u64::from(kernel) * 100;
        let duration = mean + self.noise.below(mean * 3 / 100);
        let start = self.now;
        self.now += (duration + 800 + self.noise.below(400)) as i64;
        self.position += 1;
        Dispatch {
            command_buffer: Some(CommandBufferId(self.command_buffer)),
            // There is a barrier between any two dispatches.
            position: 2 * (self.position - 1),
            queue: QueueId(1),
            kernel: KernelId(kernel),
            start_ns: Some(start),
            duration_ns: Some(duration as i64),
            groups_x: Some(32 * kernel),
            groups_y: Some(1 + kernel % 4),
            groups_z: Some(1),
            bindings: Some(BindingSetId(1 + self.step)),
            label: Some(LabelId(1 + self.step / 30)),
            submission: None,
            graph_node: None,
        }
    }
}

fn bytes_by_column(path: &Path) -> BTreeMap<String, f64> {
    let reader = SerializedFileReader::new(File::open(path).expect("there")).expect("Parquet");
    let metadata = reader.metadata();
    let rows = metadata.file_metadata().num_rows() as f64;
    let mut bytes = BTreeMap::new();
    for group in metadata.row_groups() {
        for column in group.columns() {
            *bytes.entry(column.column_path().string()).or_default() +=
                column.compressed_size() as f64 / rows;
        }
    }
    bytes
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .map_or(0, |kib| kib / 1024)
}

/// Returns the processor time of this process, in the program and in the system: on a busy machine it says more than
/// elapsed time.
fn processor_time() -> [Duration; 2] {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let mut ticks = fields.split_whitespace().skip(11);
    let mut next = || ticks.next().and_then(|t| t.parse().ok()).unwrap_or(0);
    [(); 2].map(|()| Duration::from_millis(10 * next()))
}

struct Stopwatch(Instant, [Duration; 2]);

impl Stopwatch {
    fn start() -> Stopwatch {
        Stopwatch(Instant::now(), processor_time())
    }
}

impl std::fmt::Display for Stopwatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [program, system] = processor_time();
        write!(
            f,
            "{:.2?} (processor: {:.2?} program, {:.2?} system)",
            self.0.elapsed(),
            program - self.1[0],
            system - self.1[1],
        )
    }
}

fn measure(rows: usize, checkpoint_rows: usize) {
    println!("\n{rows} dispatches, a checkpoint every {checkpoint_rows}");
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path().join("a.gapscope");
    let mut writer = TraceWriter::create(&folder).expect("create");
    let mut program = Program::new();
    let making = Stopwatch::start();
    let mut made = Tables::default();
    for row in 0..rows {
        made.dispatches.push(program.next());
        if row % (1 << 15) == 0 {
            made.dispatches.clear();
        }
    }
    drop(made);
    println!("  the test's own part, to make the rows: {making}");
    let mut program = Program::new();
    let writing = Stopwatch::start();
    for row in 0..rows {
        writer.tables_mut().dispatches.push(program.next());
        if row % 1024 == 1023 {
            writer.flush_full().expect("flush");
        }
        if row % checkpoint_rows == checkpoint_rows - 1 {
            writer.checkpoint().expect("checkpoint");
        }
    }
    println!("  make and write: {writing}, peak {} MiB", peak_mib());
    let finishing = Stopwatch::start();
    writer.finish(&Manifest::default()).expect("finish");
    println!("  finish: {finishing}");
    let path = folder.join("dispatches.parquet");
    let columns = bytes_by_column(&path);
    let bytes = path.metadata().expect("there").len() as f64 / rows as f64;
    println!(
        "  {bytes:.2} bytes a dispatch, {:.2} without bindings",
        bytes - columns["bindings"]
    );
    for (name, bytes) in &columns {
        println!("    {name:16} {bytes:.3}");
    }
    let columns = [
        "command_buffer",
        "position",
        "queue",
        "kernel",
        "start_ns",
        "duration_ns",
    ];
    let some = Selection::manifest().columns::<Dispatches>(&columns);
    for (what, selection) in [("6 columns", some), ("all", Selection::all())] {
        let reading = Stopwatch::start();
        let (trace, _) = read(&folder, &selection).expect("it opens");
        println!("  read {what}: {reading}");
        assert_eq!(trace.tables.dispatches.len(), rows);
    }
    println!("  peak {} MiB", peak_mib());
}

#[test]
#[ignore = "a measurement"]
fn bytes_a_dispatch() {
    measure(100_000, 1 << 30);
    measure(1_000_000, 100_000);
    measure(10_000_000, 1 << 30);
    measure(10_000_000, 100_000);
    measure(10_000_000, 20_000);
}
