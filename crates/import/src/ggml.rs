//! Imports the log of ggml's Vulkan backend, which llama.cpp writes to stderr with `GGML_VK_PERF_LOGGER=1`.
//!
//! The log has a block for each graph (with `GGML_VK_PERF_LOGGER_FREQUENCY`, for each that many graphs). A block has
//! a line for each operation with its count and its mean time; newer versions add the sum, and the rate if they know
//! the floating-point operations. Other lines of stderr stand between blocks.
//!
//! ```text
//! ----------------
//! Vulkan Timings:
//! MUL_MAT q4_K m=4096 n=512 k=4096: 32 x 412.5 us = 13200 us (41652.1 GFLOPS/s)
//! RMS_NORM_MUL RMS_NORM(4096,512,1,1): 65 x 9.8 us
//! Total time: 13837 us.
//! ```
//!
//! What collects logs may begin each line with a prefix, such as `llama-1  | ` or a time and a process, and colour it:
//! the module `prefix` takes both off. Lines with different prefixes come from different programs, whose blocks may be
//! mixed.
//!
//! The log has no start times: dispatches have only a duration, so that there is neither order, nor gaps, nor a
//! verdict. Each dispatch of a line gets the line's mean. An operation of ggml may be several dispatches of Vulkan;
//! the trace has one dispatch for each operation.

mod prefix;

use crate::error::only_file;
use crate::inventory::{Inventory, KernelFacts};
use crate::output::NewTrace;
use crate::{Error, Importer, Options, Output};
use gapscope_timeline_builder::{WorkPlace, rows};
use gapscope_trace::LossKind;
use gapscope_trace::ids::*;
use gapscope_trace::manifest::Api;
use prefix::Prefixes;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Imports logs of ggml's Vulkan backend.
pub const IMPORTER: Importer = Importer {
    name: "ggml",
    reads: "logs of llama.cpp with GGML_VK_PERF_LOGGER=1",
    recognises,
    read,
    joins_named_ranks: false,
};

/// The text at the beginning of a block.
const BLOCK: &str = "Vulkan Timings:";
/// The size of a file's start in which its first block must begin: a model that loads may write a lot before.
const FIRST_BYTES: u64 = 4 << 20;
/// The maximum length of a line of the log.
const MAX_LINE_BYTES: u64 = 1 << 16;
/// The maximum count of one operation in a line: a graph has thousands of operations, so that a greater count is
/// damage.
const MAX_OPERATION_COUNT: u64 = 1 << 20;

/// Returns whether a block begins in the first [`FIRST_BYTES`] of a file.
fn recognises(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let mut bytes = Vec::new();
    if !path.is_file() || file.take(FIRST_BYTES).read_to_end(&mut bytes).is_err() {
        return false;
    }
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.any(|line| {
        memchr::memmem::find(line, BLOCK.as_bytes()).is_some()
            && prefix::before_block(&prefix::plain(&String::from_utf8_lossy(line))).is_some()
    })
}

/// An operation in a line of a block.
#[derive(Debug, Clone, PartialEq)]
struct Operation<'a> {
    name: &'a str,
    /// The number of executions.
    count: u64,
    /// The duration of all executions together, which the log rounds to six digits.
    total_ns: u64,
}

/// Reads a log line by line into one trace.
fn read(inputs: &[PathBuf], options: &Options, output: &mut Output) -> Result<(), Error> {
    let path = only_file(inputs, "log of ggml")?;
    let failed = Error::read(path);
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    let mut file = BufReader::with_capacity(1 << 18, file);
    let mut log = Log::new(output.trace()?, options.pid.unwrap_or(0));
    let (mut line, mut at, mut next) = (Vec::new(), 0u64, 0);
    loop {
        line.clear();
        let read = (&mut file)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line);
        let read = read.map_err(failed)?;
        if read == 0 {
            break;
        }
        at += read as u64;
        if at >= next {
            next = at + (1 << 20);
            output.progress(at, size);
        }
        log.line(&prefix::plain(&String::from_utf8_lossy(&line)))?;
    }
    log.complete(path, options, output)
}

/// The state of reading a log line by line.
struct Log {
    inventory: Inventory,
    trace: NewTrace,
    process: ProcessId,
    /// The numbers and names of devices in lines outside operations.
    devices: BTreeSet<(u32, String)>,
    /// The only queue, once an operation has come.
    queue: Option<QueueId>,
    prefixes: Prefixes,
    /// The block that is being read of each program, by what its lines begin with.
    open: FxHashMap<String, Block>,
    /// The number of blocks that have begun.
    blocks: u64,
    /// The number of dispatches in the trace.
    dispatches: u64,
    /// Whether a line has a rate.
    has_rates: bool,
}

/// A block that is being read.
#[derive(Debug, Clone, Copy)]
struct Block {
    label: LabelId,
    /// The sum of the durations in the block's lines.
    sum_ns: u64,
    /// The number of executions in the block's lines.
    counted: u64,
}

impl Log {
    fn new(trace: NewTrace, pid: u32) -> Log {
        let mut inventory = Inventory::new("ggml's Vulkan log");
        let process = inventory.process(pid);
        Log {
            inventory,
            trace,
            process,
            devices: BTreeSet::new(),
            queue: None,
            prefixes: Prefixes::default(),
            open: FxHashMap::default(),
            blocks: 0,
            dispatches: 0,
            has_rates: false,
        }
    }

    /// Reads a line of the log: the beginning or end of a block, an operation inside, or other output.
    fn line(&mut self, line: &str) -> Result<(), Error> {
        if let Some(before) = prefix::before_block(line) {
            let source = self.prefixes.add(before);
            self.end_block(&source, None);
            self.blocks += 1;
            let text = format!("Vulkan Timings {}", self.blocks);
            let labels = &mut self.inventory.labels;
            let program = prefix::program(&source);
            let around = (!program.is_empty()).then(|| labels.named(None, &program));
            let label = labels.named(around, &text);
            let block = Block {
                label,
                sum_ns: 0,
                counted: 0,
            };
            self.open.insert(source, block);
            return Ok(());
        }
        let inside = self
            .prefixes
            .split(line, |source| self.open.contains_key(source));
        if let Some((source, text)) = inside {
            if let Some(total) = text.strip_prefix("Total time: ") {
                let total = total.strip_suffix('.').and_then(nanoseconds);
                self.end_block(&source, Some(total));
                return Ok(());
            }
            if let Some(operation) = operation(text) {
                self.has_rates |= text.ends_with("GFLOPS/s)");
                return self.operation(&source, &operation);
            }
        }
        // Other parts of the program write to stderr, too.
        self.devices.extend(device(line));
        Ok(())
    }

    /// Adds a dispatch of mean duration for each execution of an operation in the block of a program.
    fn operation(&mut self, source: &str, operation: &Operation) -> Result<(), Error> {
        let label = self.open.get_mut(source).map(|block| {
            block.sum_ns = block.sum_ns.saturating_add(operation.total_ns);
            block.counted = block.counted.saturating_add(operation.count);
            block.label
        });
        if operation.count > MAX_OPERATION_COUNT {
            let reason = "a line of the log says more of them than a graph has";
            self.inventory
                .lose(LossKind::Dispatches, operation.count, reason);
            return Ok(());
        }
        let queue = self.queue();
        let name = self.inventory.labels.text(operation.name);
        let kernel = KernelFacts::new(self.process, name);
        let kernel = self.inventory.kernel(kernel);
        let mean_ns = operation.total_ns / operation.count;
        // The first dispatches take 1 ns more, so that the sum stays the same.
        let over = operation.total_ns % operation.count;
        for place in 0..operation.count {
            let duration_ns = mean_ns + u64::from(place < over);
            let work = WorkPlace {
                duration_ns: i64::try_from(duration_ns).ok(),
                label,
                ..WorkPlace::new(queue, None)
            };
            rows::dispatch(self.trace.tables_mut(), work, kernel, [None; 3], None);
            if place % 4096 == 0 {
                self.trace.flush()?;
            }
        }
        self.dispatches += operation.count;
        self.trace.flush()
    }

    /// Returns the queue of all dispatches; made at first use, on a device that has the name of the log's only
    /// device.
    fn queue(&mut self) -> QueueId {
        if let Some(queue) = self.queue {
            return queue;
        }
        let name = match self.devices.first() {
            Some((_, name)) if self.devices.len() == 1 => Some(name.clone()),
            _ => None,
        };
        let device = self.inventory.device(self.process, Some(0), |device| {
            device.api = Api::Vulkan;
            if let Some(name) = name {
                device.name = name;
            }
        });
        let queue = self.inventory.add_queue(device, None);
        self.queue = Some(queue);
        queue
    }

    /// Ends the block of a program, if one is open. `total` is the block's own sum in nanoseconds: `None` without the line for it,
    /// and `Some(None)` if that line has no time. A block whose lines do not make up that sum is counted as a loss.
    fn end_block(&mut self, source: &str, total: Option<Option<u64>>) {
        let Some(Block {
            sum_ns, counted, ..
        }) = self.open.remove(source)
        else {
            return;
        };
        let whole = match total {
            // Means are rounded down to nanoseconds, and the log has six digits or hundredths.
            Some(Some(total_ns)) => {
                let rounded_ns = (total_ns / 50_000).saturating_add(counted.saturating_mul(10));
                sum_ns.abs_diff(total_ns) <= rounded_ns.saturating_add(100)
            }
            Some(None) | None => false,
        };
        if !whole {
            let reason =
                "their lines do not sum to their total time: some are cut or mixed with others";
            self.inventory.lose("whole blocks of timings", 1, reason);
        }
    }

    /// Adds losses and notes, and writes the trace.
    fn complete(
        mut self,
        path: &Path,
        options: &Options,
        output: &mut Output,
    ) -> Result<(), Error> {
        let open: Vec<String> = self.open.keys().cloned().collect();
        for source in open {
            self.end_block(&source, None);
        }
        if self.dispatches == 0 {
            return Err(Error::nothing(format!(
                "{} has no timings: run llama.cpp with GGML_VK_PERF_LOGGER=1 and keep its stderr",
                path.display()
            )));
        }
        let inventory = &mut self.inventory;
        inventory.lose(
            "starts of dispatches",
            self.dispatches,
            "ggml's log says how long operations ran on average, not when",
        );
        inventory.note(
            "ggml's log does not say when work ran: its order, gaps and what the GPU waited for are not known, and there is no verdict.",
        );
        inventory.note(
            "Each dispatch has the mean of its line of the log, so that of its kernels only counts, totals and means are measured; an operation of ggml counts as one dispatch, though it may be several.",
        );
        if self.devices.len() > 1 {
            let names: Vec<&str> = self.devices.iter().map(|(_, name)| &**name).collect();
            let devices = names.join(", ");
            inventory.note(format!(
                "The log does not say which of several GPUs ran what ({devices}): all is on one here."
            ));
        }
        if self.has_rates {
            inventory.note("The rates of the log (GFLOPS/s) are not imported.");
        }
        self.inventory.finish(self.trace, options, output)
    }
}

/// Returns the number and the name of a device from a line such as `ggml_vulkan: 0 = NAME (DRIVER) | uma: 0 | …`,
/// which may have a prefix; `None` for other lines.
fn device(line: &str) -> Option<(u32, String)> {
    let (before, rest) = line.split_once("ggml_vulkan: ")?;
    let is_whole = before.is_empty() || before.ends_with(char::is_whitespace);
    let (number, rest) = rest.split_once(" = ").filter(|_| is_whole)?;
    let number = number.parse().ok()?;
    let name = rest.split(" | ").next()?;
    Some((number, name.trim().to_owned()))
}

/// Parses `NAME: COUNT x MEAN us`, which may be followed by `= TOTAL us` and `(RATE GFLOPS/s)`; `None` for other
/// lines.
fn operation(line: &str) -> Option<Operation<'_>> {
    let line = match line.strip_suffix(" GFLOPS/s)") {
        Some(rest) => {
            let (rest, rate) = rest.rsplit_once(" (")?;
            rate.parse::<f64>().ok()?;
            rest
        }
        None => line,
    };
    let (name, rest) = line.rsplit_once(": ")?;
    let (count, times) = rest.split_once(" x ")?;
    let count: u64 = count.parse().ok().filter(|count| *count > 0)?;
    let total_ns = match times.split_once(" = ") {
        Some((mean, total)) => {
            nanoseconds(mean)?;
            nanoseconds(total)?
        }
        None => nanoseconds(times)?.checked_mul(count)?,
    };
    i64::try_from(total_ns).ok()?;
    (!name.is_empty()).then_some(Operation {
        name,
        count,
        total_ns,
    })
}

/// Parses a time with its unit, such as `412.5 us`; `None` for other texts and impossible times.
fn nanoseconds(text: &str) -> Option<u64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let number: f64 = number.parse().ok()?;
    let ns = number
        * match unit {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            _ => return None,
        };
    // An operation takes less than a year.
    (0.0..3.2e16).contains(&ns).then(|| ns.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_versions_are_read() {
        let name = "MUL_MAT q4_K m=4096 n=512 k=4096";
        let both = |line: &str| operation(line).map(|o| (o.name.to_owned(), o.count, o.total_ns));
        let expected = Some((name.to_owned(), 32, 13_200_000));
        assert_eq!(both(&format!("{name}: 32 x 412.5 us")), expected);
        let rated = format!("{name}: 32 x 412.5 us (41652.1 GFLOPS/s)");
        assert_eq!(both(&rated), expected);
        let summed = format!("{name}: 32 x 412.50 us = 13200.00 us (41652.10 GFLOPS/s)");
        assert_eq!(both(&summed), expected);
        // C++ prints six digits.
        let large = both("FLASH_ATTN_EXT dst(128,32,1,1), q(1): 3 x 1.23457e+06 us").unwrap();
        assert_eq!(large.2, 3_703_710_000);
        for line in [
            "llama_perf_context_print: load time = 12.5 ms",
            "name: 0 x 1 us",
            "name: -1 x 1 us",
            "name: 3 x nan us",
            "name: 3 x 1 weeks",
            ": 3 x 1 us",
            "name: 99999999999999999999 x 1 us",
            "",
        ] {
            assert_eq!(operation(line), None, "{line}");
        }
    }

    #[test]
    fn devices_are_named_as_the_backend_names_them() {
        let line = "ggml_vulkan: 0 = Radeon RX 7900 (RADV NAVI31) (radv) | uma: 0 | fp16: 1";
        let name = "Radeon RX 7900 (RADV NAVI31) (radv)";
        assert_eq!(device(line), Some((0, name.to_owned())));
        assert_eq!(device(&format!("[41075] {line}")), device(line));
        assert_eq!(device("ggml_vulkan: Found 1 Vulkan devices:"), None);
    }
}
