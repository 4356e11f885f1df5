//! Completes a recording's traces when the program has ended: counts what was lost, writes the last rows, the
//! manifest of each rank's trace (that of one process of a distributed program) and of the recording's own, and
//! removes the spool (the files of events that the program's processes wrote).

use super::{Drain, LAYER_FOLDER, SPOOL_FOLDER};
use crate::Error;
use crate::assembler::Assembler;
use crate::code;
use crate::label_injection;
use gapscope_files::ContainedPath;
use gapscope_model::LossKind;
use gapscope_timeline_builder::kernel_accesses;
use gapscope_trace::Names;
use gapscope_trace::TraceWriter;
use gapscope_trace::manifest::{self, Manifest};
use gapscope_trace::writer::SOURCES_FOLDER;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

impl Drain {
    /// Completes the trace and removes the spool. `complete` is called with each trace's manifest, to fill in what
    /// only the session knows. All processes have been drained to their ends before.
    ///
    /// # Errors
    /// The trace cannot be written; `gapscope recover` can try again.
    pub fn finish(mut self, mut complete: impl FnMut(&mut Manifest)) -> Result<Finished, Error> {
        self.count_damage();
        let folder = self.folder().to_owned();
        let (mut losses, mut ranks) = (Vec::new(), Vec::new());
        for mut rank in std::mem::take(&mut self.ranks) {
            finish_assembler(
                &mut rank.assembler,
                &mut rank.writer,
                &self.header.names,
                self.reads_code_files,
            )?;
            let mut manifest = self.rank_manifest(&rank);
            complete(&mut manifest);
            losses.extend(manifest.losses.iter().cloned());
            rank.writer.finish(&manifest)?;
            ranks.push((rank.rank, rank.assembler));
        }
        finish_assembler(
            &mut self.assembler,
            &mut self.writer,
            &self.header.names,
            self.reads_code_files,
        )?;
        let mut manifest = self.manifest();
        manifest.ranks = ranks.iter().map(|(rank, _)| rank.rank).collect();
        manifest.ranks.sort_unstable();
        complete(&mut manifest);
        self.writer.finish(&manifest)?;
        remove_leftovers(&folder);
        losses.extend(manifest.losses);
        let all = || std::iter::once(&self.assembler).chain(ranks.iter().map(|(_, a)| a));
        Ok(Finished {
            dispatches: all().map(Assembler::dispatches).sum(),
            submissions: all().map(Assembler::submissions).sum(),
            losses,
        })
    }

    /// Counts the spool's records that never became whole as losses.
    fn count_damage(&mut self) {
        let found = self.processes.iter().map(|process| {
            let page = process.spool.control().page();
            let (dropped, children) = (&page.dropped, &page.unrecorded_children);
            let filtered = page.filtered_children.load(Relaxed);
            let counts = (dropped.load(Relaxed), children.load(Relaxed), filtered);
            (process.trace, process.damage(), counts)
        });
        let gone = std::mem::take(&mut self.resumed);
        let gone = gone.into_iter().map(|p| (p.trace, p.damage, (0, 0, 0)));
        for (trace, damage, (dropped, children, filtered)) in found.chain(gone).collect::<Vec<_>>()
        {
            let dropped = dropped.min(damage.missing_records);
            let (assembler, _) = self.trace_mut(trace);
            assembler.lose(
                LossKind::Records,
                dropped,
                "the spool was at its limit, the disk was full, or files may not be that large (`ulimit -f`)",
            );
            assembler.lose(
                LossKind::Records,
                damage.missing_records - dropped,
                "begun and never completed: the process or its thread was killed, or the file is torn",
            );
            assembler.lose(LossKind::Records, damage.undecodable_records, "damaged");
            assembler.lose(
                LossKind::Processes,
                children,
                "forked from a recorded one, and their spool could not be made",
            );
            assembler.lose(
                LossKind::Processes,
                filtered,
                "forked from a recorded one, and a filter of system calls (seccomp), which opening a spool could have broken",
            );
        }
    }
}

/// Writes the rows that an assembler has kept until the end.
fn finish_assembler(
    assembler: &mut Assembler,
    writer: &mut TraceWriter,
    names: &Names,
    reads_code_files: bool,
) -> Result<(), Error> {
    assembler.finish(names, writer.tables_mut());
    write_sources(assembler, writer, reads_code_files)?;
    let sources = ContainedPath::new(writer.folder(), SOURCES_FOLDER);
    kernel_accesses::fill(&sources, &mut writer.tables_mut().kernels);
    Ok(())
}

/// Writes the code of kernels that is new, and the source files of that code where those may be read.
pub(super) fn write_sources(
    assembler: &mut Assembler,
    writer: &mut TraceWriter,
    reads_code_files: bool,
) -> Result<(), Error> {
    let files = assembler.take_code_files().into_iter();
    for path in files.filter(|_| reads_code_files) {
        if let Some((extension, bytes)) = code::read_code_file(Path::new(&*path)) {
            assembler.found_code_file(path, extension, bytes);
        }
    }
    for source in assembler.take_sources() {
        writer.add_source(&source.hash, source.extension, &source.bytes)?;
    }
    Ok(())
}

/// The contents of a completed trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    pub dispatches: u64,
    pub submissions: u64,
    pub losses: Vec<manifest::Loss>,
}

/// Removes the folders that a complete trace does not need.
pub fn remove_leftovers(folder: &Path) {
    for leftover in [SPOOL_FOLDER, LAYER_FOLDER, label_injection::LABELS_FOLDER] {
        // A folder that cannot be deleted does no harm, because nothing reads it.
        let _ = ContainedPath::new(folder, leftover).remove_folder();
    }
}
