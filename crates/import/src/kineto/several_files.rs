//! Imports several files of one program: those of its ranks (its processes, if it is distributed), and those of the windows in
//! which a process recorded, as a schedule of torch.profiler writes them. The windows of a process make one trace.

use super::document::Document;
use super::facts::TracePart;
use super::files::{Aside, bytes};
use super::import_file::{Window, import_windows};
use super::source::Source;
use crate::{Error, NewTrace, Options, Output, ranks};
use gapscope_trace::manifest::Rank;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A file with what is known of it before it is imported.
struct Input<'a> {
    path: &'a Path,
    aside: Aside,
}

impl Input<'_> {
    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Returns why this file and a later one cannot be windows of one process; `None` where they can.
    fn conflict(&self, later: &Input) -> Option<&'static str> {
        let spans = self.aside.unix_span_ns().zip(later.aside.unix_span_ns());
        match spans {
            _ if !self.aside.has_same_callers(&later.aside) => Some("is of another process"),
            Some((own, next)) if own.end <= next.start => None,
            _ => Some("recorded the same time"),
        }
    }
}

/// The clock of the trace or of the traces: its difference from that of each file.
struct Clock {
    /// The moment from which the times of the first file count, where it says that.
    base_ns: Option<i64>,
    common_ns: i64,
}

impl Clock {
    fn new<'a>(asides: impl Iterator<Item = &'a Aside> + Clone) -> Clock {
        let timed = asides.clone().find(|aside| aside.times.span_ns().is_some());
        Clock {
            base_ns: asides.clone().find_map(|aside| aside.metadata.base_ns),
            common_ns: timed.map_or(0, |aside| aside.times.shift_ns()),
        }
    }

    /// Returns what is added to the times of a file.
    fn shift_ns(&self, aside: &Aside) -> i64 {
        let from_base_ns = (aside.metadata.base_ns.zip(self.base_ns))
            .map_or(0, |(own, first)| own.saturating_sub(first));
        self.common_ns.saturating_add(from_base_ns)
    }
}

/// Imports several files. Every file is read twice: first only for its rank and times. The user may name the ranks that the
/// files do not say.
pub(super) fn import_all(
    files: &[PathBuf],
    all_bytes: u64,
    options: &Options,
    output: &mut Output,
) -> Result<(), Error> {
    let named = ranks::named(files, options)?;
    let mut inputs = Vec::new();
    for (index, path) in files.iter().enumerate() {
        let mut aside = Aside::default();
        Document::new(Source::open(path)?).read(&mut aside)?;
        if let Some(named) = named.as_ref().map(|named| named[index]) {
            aside.take_named_rank(named, path)?;
        }
        inputs.push(Input { path, aside });
    }
    inputs.sort_by_key(|input| input.aside.unix_span_ns().map(|span_ns| span_ns.start));
    let mut notes = Vec::new();
    let mut has_ranks = (inputs.iter()).any(|input| input.aside.metadata.rank.is_some());
    let is_one_process = !has_ranks && are_windows(&inputs);
    if !has_ranks && !is_one_process {
        let with_work = inputs.iter_mut().filter(|input| input.aside.has_work);
        let (paths, with_work): (Vec<&Path>, Vec<&mut Aside>) = with_work
            .map(|input| (input.path, &mut input.aside))
            .unzip();
        if let Some(ranks) = ranks::from_names(&paths) {
            for (aside, rank) in with_work.into_iter().zip(ranks) {
                aside.metadata.rank = Some(rank);
            }
            has_ranks = true;
            notes.push("The files do not say their ranks: those in the names of files and folders were taken.".to_owned());
        }
    }
    // The front end of a server has a profile of its own beside those of the ranks, in which no device works.
    let (beside, inputs): (Vec<Input>, Vec<Input>) = inputs.into_iter().partition(|input| {
        let Aside {
            metadata, has_work, ..
        } = &input.aside;
        (has_ranks || is_one_process) && metadata.rank.is_none() && !has_work
    });
    notes.extend(beside.iter().map(|input| {
        format!(
            "{} was left out: it has no rank and no GPU work, as the file of a server's front end. Import it alone to see it.",
            input.name()
        )
    }));
    if is_one_process {
        let new = output.trace()?;
        let options = with_notes(options, notes);
        let clock = Clock::new(inputs.iter().map(|input| &input.aside));
        return import_process(&inputs, &clock, new, (0, all_bytes), &options, output);
    }
    let by_rank = by_rank(inputs)?;
    let all = by_rank.values().flatten().map(|input| &input.aside);
    let clock = Clock::new(all);
    let new = output.trace()?;
    if let [(_, inputs)] = Vec::from_iter(&by_rank).as_slice()
        && named.is_none()
    {
        let options = with_notes(options, notes);
        return import_process(inputs, &clock, new, (0, all_bytes), &options, output);
    }
    let mut before = 0;
    for (rank, inputs) in &by_rank {
        let trace = output.rank(*rank)?;
        import_process(inputs, &clock, trace, (before, all_bytes), options, output)?;
        before += inputs.iter().map(|input| bytes(input.path)).sum::<u64>();
    }
    let note = match by_rank.values().map(Vec::len).max() {
        Some(2..) => format!(
            "Imported from {} files of PyTorch's profiler (Kineto) of {} ranks, each of which recorded windows of its time.",
            by_rank.values().map(Vec::len).sum::<usize>(),
            by_rank.len()
        ),
        _ => format!(
            "Imported from {} files of PyTorch's profiler (Kineto), one for each rank.",
            by_rank.len()
        ),
    };
    notes.insert(0, note);
    if named.is_some() {
        notes.push("The user named the ranks of the files.".to_owned());
    }
    output.finish_ranks(new, by_rank.into_keys().collect(), options, notes)
}

/// Returns the options with notes.
fn with_notes(options: &Options, notes: Vec<String>) -> Options {
    let mut options = options.clone();
    options.notes.extend(notes);
    options
}

/// Returns whether files without ranks, in the order of their times, are windows of one process, as far as they have GPU work.
fn are_windows(inputs: &[Input]) -> bool {
    let with_work = inputs.iter().filter(|input| input.aside.has_work);
    let with_work: Vec<&Input> = with_work.collect();
    with_work.len() > 1
        && with_work
            .iter()
            .all(|input| input.aside.metadata.is_kineto && input.aside.has_callers())
        && (with_work.windows(2)).all(|pair| pair[0].conflict(pair[1]).is_none())
}

/// Returns the files of each rank, in the order of their times.
///
/// # Errors
/// A file has no rank, or a rank has files that are no windows of one process.
fn by_rank(inputs: Vec<Input>) -> Result<BTreeMap<u32, Vec<Input>>, Error> {
    let mut by_rank: BTreeMap<u32, Vec<Input>> = BTreeMap::new();
    for input in inputs {
        let Some(Rank { rank, .. }) = input.aside.metadata.rank else {
            return Err(Error::foreign(
                input.path,
                "a file of one rank, which several files together must be",
                "it has no distributedInfo with rank and world_size; import it alone, or name the ranks of all files with --ranks",
            ));
        };
        let of_rank = by_rank.entry(rank).or_default();
        if let Some(before) = of_rank.last()
            && let Some(conflict) = before.conflict(&input)
        {
            return Err(Error::foreign(
                input.path,
                "another window of its rank",
                format!(
                    "{} is of rank {rank} too and {conflict}; give the files of one run",
                    before.path.display()
                ),
            ));
        }
        of_rank.push(input);
    }
    Ok(by_rank)
}

/// Imports the files of a process, which are in the order of their times, into one trace.
fn import_process(
    inputs: &[Input],
    clock: &Clock,
    new: NewTrace,
    (mut before, all_bytes): (u64, u64),
    options: &Options,
    output: &mut Output,
) -> Result<(), Error> {
    let mut windows = Vec::new();
    let mut spans_ns: Vec<Range<i64>> = Vec::new();
    for input in inputs {
        let shift_ns = clock.shift_ns(&input.aside);
        windows.push(Window {
            path: input.path,
            bytes_before: before,
            shift_ns: Some(shift_ns),
        });
        before += bytes(input.path);
        spans_ns.extend(input.aside.times.span_ns().map(|span_ns| {
            span_ns.start.saturating_add(shift_ns)..span_ns.end.saturating_add(shift_ns)
        }));
    }
    let part = TracePart {
        bytes: (0, all_bytes),
        rank: inputs.first().and_then(|input| input.aside.metadata.rank),
        not_recorded: &between(&spans_ns),
        ..TracePart::default()
    };
    import_windows(&windows, new, part, options, output).map(drop)
}

/// Returns the times between windows, in order.
pub(super) fn between(windows_ns: &[Range<i64>]) -> Vec<Range<i64>> {
    let mut sorted = windows_ns.to_vec();
    sorted.sort_by_key(|window| window.start);
    let mut end_ns = sorted.first().map_or(0, |window| window.end);
    let mut times = Vec::new();
    for window in sorted {
        if end_ns < window.start {
            times.push(end_ns..window.start);
        }
        end_ns = end_ns.max(window.end);
    }
    times
}
