//! Imports a file with several documents, one behind the other, as processes write that share a file or as people make
//! that put files together. A profiler of PyTorch writes a document for each recording of one process. Documents of
//! different ranks, and those whose times overlap, are therefore of different processes, and each process becomes a trace
//! as if it had a file of its own. All other documents are parts of one trace.

use super::document::{Document, Sink};
use super::event::Event;
use super::facts::{DocumentChoice, TracePart};
use super::files::Aside;
use super::import_file::import;
use super::several_files::between;
use super::source::Source;
use crate::{Error, Options, Output};
use gapscope_trace::manifest::Rank;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::ops::Range;
use std::path::Path;

/// The facts of a document that are read before it is imported.
#[derive(Default)]
struct Facts {
    aside: Aside,
    events: u64,
    /// A hash of all events.
    hash: FxHasher,
}

impl Facts {
    /// Returns whether the document has the same events as another one.
    fn is_copy_of(&self, other: &Facts) -> bool {
        self.aside.times.span_ns().is_some()
            && (self.aside.unix_span_ns(), self.events)
                == (other.aside.unix_span_ns(), other.events)
            && self.hash.finish() == other.hash.finish()
            && self.rank() == other.rank()
    }

    fn rank(&self) -> Option<u32> {
        self.aside.metadata.rank.map(|rank| rank.rank)
    }

    /// Returns whether one process cannot have recorded both documents.
    fn is_of_another_process(&self, other: &Facts) -> bool {
        if !self.aside.metadata.is_kineto || !other.aside.metadata.is_kineto {
            return false;
        }
        let differ = self.rank().zip(other.rank()).is_some_and(|(a, b)| a != b);
        let spans = self.aside.unix_span_ns().zip(other.aside.unix_span_ns());
        let overlap = spans.is_some_and(|(a, b)| a.start.max(b.start) < a.end.min(b.end));
        differ || overlap
    }
}

/// Reads the facts of all documents of a file.
#[derive(Default)]
struct Reading {
    documents: Vec<Facts>,
}

impl Sink for Reading {
    type Error = Error;

    fn document(&mut self, _: u64) -> bool {
        self.documents.push(Facts::default());
        true
    }

    fn event(&mut self, event: &Event) -> Result<(), Error> {
        let Some(document) = self.documents.last_mut() else {
            return Ok(());
        };
        document.events += 1;
        for text in [event.name, event.pid, event.tid, event.args] {
            document.hash.write(text);
        }
        document.hash.write_i64(event.start_ns.unwrap_or(0));
        document.aside.event(event)
    }

    fn member(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        match self.documents.last_mut() {
            Some(document) => document.aside.member(key, value),
            None => Ok(()),
        }
    }

    fn progress(&mut self, _: &Source) -> Result<(), Error> {
        Ok(())
    }
}

/// The documents of a process, by their numbers in the file.
type Process = Vec<u64>;

/// Gives each document that is no copy of an earlier one to a process. Returns the processes and the number of copies.
fn processes(documents: &[Facts]) -> (Vec<Process>, usize) {
    let mut processes: Vec<Process> = Vec::new();
    let mut copies = 0;
    for (number, document) in (0..).zip(documents) {
        let before = &documents[..number as usize];
        if before.iter().any(|earlier| document.is_copy_of(earlier)) {
            copies += 1;
            continue;
        }
        let fits = |process: &&mut Process| {
            let mut own = process.iter().map(|number| &documents[*number as usize]);
            own.all(|other| !document.is_of_another_process(other))
        };
        // The parts of a recording follow each other.
        match processes.iter_mut().rev().find(fits) {
            Some(process) => process.push(number),
            None => processes.push(vec![number]),
        }
    }
    (processes, copies)
}

/// Imports the documents of a file, those of each process into a trace of its own where there are several.
pub(super) fn import_each(
    path: &Path,
    all_bytes: u64,
    options: &Options,
    output: &mut Output,
) -> Result<(), Error> {
    let mut reading = Reading::default();
    Document::new(Source::open(path)?).read(&mut reading)?;
    let documents = reading.documents;
    let (processes, copies) = processes(&documents);
    let mut notes = Vec::new();
    if copies > 0 {
        notes.push(format!(
            "Documents of the file that have the same events as an earlier one were left out: {copies}."
        ));
    }
    // The times between the documents of a process, on the clock of the trace.
    let not_recorded = |process: &Process, shift_ns: i64| {
        let of = |number: &u64| documents[*number as usize].aside.times.span_ns();
        let spans_ns: Vec<Range<i64>> = process.iter().filter_map(of).collect();
        let later = |time: Range<i64>| {
            time.start.saturating_add(shift_ns)..time.end.saturating_add(shift_ns)
        };
        Vec::from_iter(between(&spans_ns).into_iter().map(later))
    };
    let new = output.trace()?;
    if let [only] = processes.as_slice() {
        let mut options = options.clone();
        options.notes.extend(notes);
        let first = only
            .first()
            .map(|number| &documents[*number as usize].aside);
        let shift_ns = first.map_or(0, |aside| aside.times.shift_ns());
        let part = TracePart {
            shift_ns: Some(shift_ns),
            documents: DocumentChoice::Numbers(only),
            not_recorded: &not_recorded(only, shift_ns),
            ..TracePart::whole((0, all_bytes))
        };
        return import(path, new, part, &options, output).map(drop);
    }
    let ranks = ranks(&processes, &documents);
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let count = processes.len();
    notes.insert(0, match ranks.are_named {
        true => format!("Imported from {file}, which has documents of {count} ranks."),
        false => format!(
            "Imported from {file}, which has documents of {count} processes, as their times overlap or their ranks differ. It does not say the rank of each: they are numbered in their order."
        ),
    });
    // The times of all processes count from one moment.
    let first = |process: &Process| &documents[process[0] as usize].aside;
    let base_ns = processes.iter().find_map(|p| first(p).metadata.base_ns);
    let timed = processes
        .iter()
        .find(|p| first(p).times.span_ns().is_some());
    let common_ns = timed.map_or(0, |process| first(process).times.shift_ns());
    for (process, rank) in processes.iter().zip(&ranks.of_processes) {
        let own_ns = first(process).metadata.base_ns;
        let from_base_ns = own_ns
            .zip(base_ns)
            .map_or(0, |(own, first)| own.saturating_sub(first));
        let shift_ns = common_ns.saturating_add(from_base_ns);
        let part = TracePart {
            bytes: (0, all_bytes),
            shift_ns: Some(shift_ns),
            rank: Some(*rank),
            documents: DocumentChoice::Numbers(process),
            not_recorded: &not_recorded(process, shift_ns),
            ..TracePart::default()
        };
        let trace = output.rank(rank.rank)?;
        import(path, trace, part, options, output)?;
    }
    let ranks = ranks.of_processes.iter().map(|rank| rank.rank).collect();
    output.finish_ranks(new, ranks, options, notes)
}

/// The ranks of processes.
struct Ranks {
    of_processes: Vec<Rank>,
    /// True where the file says them.
    are_named: bool,
}

/// Returns the rank of each process: the one that its documents say, or its number where not all say different ones.
fn ranks(processes: &[Process], documents: &[Facts]) -> Ranks {
    let named: Vec<Option<Rank>> = (processes.iter())
        .map(|process| {
            let mut own = process.iter().map(|number| &documents[*number as usize]);
            own.find_map(|document| document.aside.metadata.rank)
        })
        .collect();
    let mut numbers: Vec<u32> = named.iter().flatten().map(|rank| rank.rank).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let are_named = numbers.len() == processes.len();
    let by_order = |number: u32| Rank {
        rank: number,
        local_rank: None,
        world_size: processes.len() as u32,
    };
    let of_processes = (0..).zip(named);
    Ranks {
        of_processes: of_processes
            .map(|(number, rank)| rank.filter(|_| are_named).unwrap_or(by_order(number)))
            .collect(),
        are_named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the facts of documents of Kineto, each with its rank and its times.
    fn documents(list: &[(Option<u32>, Range<i64>)]) -> Vec<Facts> {
        let document = |(rank, span_ns): &(Option<u32>, Range<i64>)| {
            let mut facts = Facts {
                events: 1,
                ..Facts::default()
            };
            facts.aside.times.add(span_ns.start, span_ns.end);
            facts.aside.metadata.is_kineto = true;
            facts.aside.metadata.rank = rank.map(|rank| Rank {
                rank,
                local_rank: None,
                world_size: 8,
            });
            facts
        };
        list.iter().map(document).collect()
    }

    /// Documents, the processes that they are of, and the ranks of these.
    type Case<'a> = (&'a [(Option<u32>, Range<i64>)], &'a [&'a [u64]], &'a [u32]);

    #[test]
    fn documents_are_of_one_process_unless_ranks_or_times_say_otherwise() {
        let cases: [Case; 6] = [
            // One process that recorded twice.
            (&[(None, 10..20), (None, 20..30)], &[&[0, 1]], &[0]),
            (&[(None, 10..20), (None, 19..30)], &[&[0], &[1]], &[0, 1]),
            (&[(Some(3), 1..2), (Some(1), 1..3)], &[&[0], &[1]], &[3, 1]),
            (
                &[(Some(1), 1..2), (Some(0), 1..3), (Some(1), 5..6)],
                &[&[0, 2], &[1]],
                &[1, 0],
            ),
            // A rank that is said twice says nothing.
            (&[(Some(1), 1..5), (Some(1), 2..6)], &[&[0], &[1]], &[0, 1]),
            // A copy.
            (&[(None, 10..20), (None, 10..20)], &[&[0]], &[0]),
        ];
        for (list, wanted, wanted_ranks) in cases {
            let documents = documents(list);
            let (processes, _) = processes(&documents);
            assert_eq!(processes, wanted, "{list:?}");
            let ranks = ranks(&processes, &documents).of_processes;
            let ranks: Vec<u32> = ranks.iter().map(|rank| rank.rank).collect();
            let has_named = list.iter().any(|(rank, _)| rank.is_some());
            assert!(
                ranks == wanted_ranks || !has_named && wanted.len() == 1,
                "{list:?}: {ranks:?}"
            );
        }
    }
}
