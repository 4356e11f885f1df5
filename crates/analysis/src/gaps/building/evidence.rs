//! Says whether threads built code in the times before they loaded code, as far as samples of their stacks, or else the ranges
//! that they were in, show it. Input are those times; output are the moments until which a thread did something else, or that it
//! did something else most of the time.
//!
//! A stack or range shows building where a compiler is in it. It shows something else where the thread was blocked, or reads or
//! prepares data by the names of its functions, or is in another function than the one that loads the code. Of others nothing is
//! known, and the pattern of the calls decides.
//!
//! What this cannot know: what a function does whose name does not say it, where no sample shows which function loads the code.

use crate::host_ranges::{self, RangesByThread, ThreadRanges};
use crate::stacks::thread_samples::ThreadSamples;
use crate::stacks::{CodeFrame, Stacks, own};
use gapscope_timeline::Timeline;
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::thresholds::{ELSEWHERE_SHARE, ROUND_TRIP_NS};
use gapscope_trace::ids::StackId;
use gapscope_trace::tables::ThreadState;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The moments of a time at which ranges are looked at.
const MOMENTS: i64 = 16;
/// Parts of the names of functions, files and libraries that compile code.
const COMPILERS: [&str; 18] = [
    "compil", "jit", "nvrtc", "hiprtc", "nvvm", "ptx", "llvm", "mlir", "cubin", "spirv", "shader",
    "codegen", "inductor", "dynamo", "autotun", "cudnn", "triton", "ninja",
];
/// Words in the names of functions and files that read or prepare data, or wait.
const OTHER_WORDS: [&str; 33] = [
    "acquire",
    "augment",
    "collate",
    "csv",
    "dataloader",
    "dataset",
    "datasets",
    "download",
    "epoll",
    "fetch",
    "gc",
    "json",
    "nanosleep",
    "parse",
    "pickle",
    "poll",
    "preprocess",
    "pselect",
    "read",
    "readline",
    "receive",
    "recv",
    "recvfrom",
    "recvmsg",
    "save",
    "sleep",
    "socket",
    "tokenise",
    "tokenize",
    "tokenizer",
    "usleep",
    "wait",
    "write",
];
/// Words that show data where a function loads or gets them.
const DATA_WORDS: [&str; 6] = ["batch", "data", "image", "images", "input", "sample"];
const TAKES: [&str; 5] = ["load", "get", "next", "prepare", "make"];

/// The activity that a moment shows of a thread that later loads code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Building,
    SomethingElse,
    Nothing,
}

/// The evidence of samples and ranges about a thread that loads code.
#[derive(Debug)]
pub(super) struct ThreadEvidence {
    /// The moments until which the thread did something else than building code, in their order.
    pub elsewhere: Vec<i64>,
    /// Whether the thread was seen building code.
    pub is_seen_building: bool,
}

/// The samples and ranges of the threads that load code.
pub(super) struct Evidence<'a> {
    timeline: &'a Timeline<'a>,
    stacks: Stacks<'a>,
    samples: ThreadSamples<'a>,
    ranges: RangesByThread<'a>,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(timeline: &'a Timeline<'a>, threads: &HashSet<HostThread>) -> Evidence<'a> {
        let tables = &timeline.trace.tables;
        Evidence {
            timeline,
            stacks: Stacks::new(tables),
            samples: ThreadSamples::new(&tables.samples, &timeline.trace.manifest),
            ranges: host_ranges::by_thread(timeline, |thread| threads.contains(thread)),
        }
    }

    /// Returns what is shown of a thread in the times `before` its `loads`; `None` where it did something else than building
    /// code for most of what is shown.
    pub(super) fn of_thread(
        &self,
        thread: HostThread,
        before: &[Interval],
        loads: &[Interval],
    ) -> Option<ThreadEvidence> {
        let is_sampled = |time: &Interval| !self.samples.sampled(thread, *time).is_empty();
        let shown: Vec<(Shown, i64)> = match before.iter().any(is_sampled) {
            true => self.by_samples(thread, before, loads),
            false => self.by_ranges(thread, before),
        };
        let ends = shown
            .iter()
            .filter(|(shown, _)| *shown == Shown::SomethingElse);
        let mut ends: Vec<i64> = ends.map(|(_, end_ns)| *end_ns).collect();
        ends.sort_unstable();
        let is_most = ends.len() as f64 > shown.len() as f64 * ELSEWHERE_SHARE;
        (!is_most).then(|| ThreadEvidence {
            elsewhere: ends,
            is_seen_building: shown.iter().any(|(shown, _)| *shown == Shown::Building),
        })
    }

    /// Returns what each sample in the times shows, with the end of the time for which the sample stands.
    fn by_samples(
        &self,
        thread: HostThread,
        before: &[Interval],
        loads: &[Interval],
    ) -> Vec<(Shown, i64)> {
        let table = self.samples.table;
        let places = self.load_places(thread, loads);
        let mut by_stack: HashMap<StackId, Shown> = HashMap::new();
        let mut shown = Vec::new();
        for time in before {
            for &row in self.samples.sampled(thread, *time) {
                let row = row as usize;
                let of_stack = table.stack.at(row).map_or(Shown::Nothing, |stack| {
                    *by_stack
                        .entry(stack)
                        .or_insert_with(|| by_frames(&self.stacks.frames(stack), &places))
                });
                let is_blocked = table.state[row] == ThreadState::Blocked;
                let of_sample = match of_stack {
                    Shown::Nothing if is_blocked => Shown::SomethingElse,
                    of_stack => of_stack,
                };
                let half_ns = table.period_ns.at(row).unwrap_or(0).max(0) / 2;
                let end_ns = table.time_ns[row].saturating_add(half_ns);
                shown.push((of_sample, end_ns.min(time.end_ns)));
            }
        }
        shown
    }

    /// Returns the functions that load code, as far as samples show them.
    fn load_places(&self, thread: HostThread, loads: &[Interval]) -> Vec<LoadPlace> {
        let mut stacks = HashSet::new();
        for load in loads {
            let around = Interval::new(load.start_ns, load.end_ns.saturating_add(ROUND_TRIP_NS));
            let rows = self.samples.sampled(thread, *load).iter();
            let rows = rows.chain(self.samples.exact(thread, around));
            stacks.extend(rows.filter_map(|row| self.samples.table.stack.at(*row as usize)));
        }
        let mut stacks: Vec<StackId> = stacks.into_iter().collect();
        stacks.sort_unstable();
        let places = stacks.into_iter().filter_map(|stack| {
            let frames = self.stacks.frames(stack);
            let at = own(&frames)?;
            let is_outermost = !frames[at + 1..].iter().any(CodeFrame::is_own);
            Some(LoadPlace {
                frame: frames[at].clone(),
                is_outermost,
            })
        });
        places.collect()
    }

    /// Returns what ranges show at moments of the times, with the end of the range.
    fn by_ranges(&self, thread: HostThread, before: &[Interval]) -> Vec<(Shown, i64)> {
        let Some(ranges) = self.ranges.get(&thread) else {
            return Vec::new();
        };
        let mut shown = Vec::new();
        for time in before {
            let step_ns = (time.length_ns() / MOMENTS).max(1);
            let moments = (0..MOMENTS).map(|moment| time.start_ns + step_ns * moment + step_ns / 2);
            let at_load = covering(ranges, time.end_ns);
            for at_ns in moments.take_while(|at_ns| *at_ns < time.end_ns) {
                let around = covering(ranges, at_ns);
                let Some(inner) = around.first() else {
                    shown.push((Shown::Nothing, at_ns));
                    continue;
                };
                // The range of the load began after the thread had left the range of this moment.
                let has_left = !at_load.contains(inner)
                    && at_load
                        .iter()
                        .any(|range| ranges.interval(*range).start_ns > at_ns);
                let texts = around.iter().filter_map(|range| self.text(ranges, *range));
                let texts: Vec<&str> = texts.collect();
                let of_moment = match texts.first() {
                    _ if texts.iter().any(|text| is_compiler(text)) => Shown::Building,
                    Some(inner) if is_something_else(inner) => Shown::SomethingElse,
                    _ if has_left => Shown::SomethingElse,
                    _ => Shown::Nothing,
                };
                let end_ns = ranges.interval(*inner).end_ns;
                shown.push((of_moment, end_ns.min(time.end_ns)));
            }
        }
        shown
    }

    fn text(&self, ranges: &ThreadRanges, place: u32) -> Option<&'a str> {
        let tables = &self.timeline.trace.tables;
        let row = self.timeline.label_ids.get(ranges.label(place))?;
        Some(&*tables.labels.text[row])
    }
}

/// The function in which a thread loads code.
struct LoadPlace {
    frame: CodeFrame,
    /// True where no other function of the program calls that one, so that all of the program's code is below it.
    is_outermost: bool,
}

impl LoadPlace {
    /// Returns true where a stack is in the function. One of the outermost function's callees is elsewhere.
    fn has(&self, frames: &[CodeFrame]) -> bool {
        let function = |frame: &CodeFrame| -> (Option<Arc<str>>, Option<Arc<str>>) {
            (
                frame.function.clone(),
                frame.file.clone().or(frame.library.clone()),
            )
        };
        let mine = function(&self.frame);
        let Some(at) = own(frames) else {
            return true;
        };
        function(&frames[at]) == mine
            || !self.is_outermost && frames[at..].iter().any(|frame| function(frame) == mine)
    }
}

/// Returns the ranges that cover a moment, from the inside out.
fn covering(ranges: &ThreadRanges, at_ns: i64) -> Vec<u32> {
    let Some(last) = ranges.begun(at_ns).checked_sub(1) else {
        return Vec::new();
    };
    let covers = |place: &u32| ranges.interval(*place).contains(at_ns);
    ranges.outwards(last).filter(covers).collect()
}

/// Returns what a stack shows, the innermost frame first.
fn by_frames(frames: &[CodeFrame], places: &[LoadPlace]) -> Shown {
    let names = |frame: &CodeFrame| {
        [
            frame.function.clone(),
            frame.file.clone(),
            frame.library.clone(),
        ]
    };
    let any = |frames: &[CodeFrame], says: fn(&str) -> bool| {
        frames
            .iter()
            .flat_map(names)
            .flatten()
            .any(|name| says(&name))
    };
    let Some(at) = own(frames) else {
        return Shown::Nothing;
    };
    // Of the callers only the names of functions tell: a file may be called after all that a program does.
    let callers = frames[at + 1..]
        .iter()
        .filter_map(|frame| frame.function.as_deref());
    if any(&frames[..=at], is_compiler) || callers.into_iter().any(is_compiler) {
        return Shown::Building;
    }
    let is_elsewhere = any(&frames[..=at], is_something_else)
        || !places.is_empty() && !places.iter().any(|place| place.has(frames));
    match is_elsewhere {
        true => Shown::SomethingElse,
        false => Shown::Nothing,
    }
}

/// Returns true for names of compilers, and of functions that load or build code.
fn is_compiler(name: &str) -> bool {
    let name = last_parts(name).to_ascii_lowercase();
    COMPILERS.iter().any(|compiler| name.contains(compiler))
}

/// Returns true for names of what reads or prepares data, or waits.
fn is_something_else(name: &str) -> bool {
    let words = words(last_parts(name));
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    name.contains("torch/utils/data/") || has(&OTHER_WORDS) || has(&TAKES) && has(&DATA_WORDS)
}

/// Returns the last folder and the name of a path: folders above may be called after anything.
fn last_parts(path: &str) -> &str {
    let folder = path.rmatch_indices('/').nth(1);
    folder.map_or(path, |(at, _)| &path[at + 1..])
}

/// Splits a name into its words, in small letters: `loadNext_batch.py` has `load`, `next`, `batch` and `py`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_compilers_and_what_reads_data() {
        for (name, compiles, is_else) in [
            ("triton/compiler/compiler.py", true, false),
            ("nvrtcCompileProgram", true, false),
            ("/opt/venv/lib/libcudnn_graph.so.9", true, false),
            ("/home/jit/project/train.py", false, false),
            ("loadNextBatch", false, true),
            ("prepare_inputs", false, false),
            ("torch/utils/data/dataloader.py(708): __next__", false, true),
            ("__libc_recvmsg", false, true),
            ("std::thread::run", false, false),
            ("sdpa_forward", false, false),
            ("decoder_layer", false, false),
            ("gc_collect_main", false, true),
            ("time.sleep", false, true),
        ] {
            assert_eq!(is_compiler(name), compiles, "{name}");
            assert_eq!(is_something_else(name), is_else, "{name}");
        }
    }
}
