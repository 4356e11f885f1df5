//! Assembles events of a hook into a trace as a session (one run of the recorder) does: `apply` for each event, `end`
//! for each process, and `show` at the end, which makes analyses and exports read the trace.

use crate::outcome::{self, Choice};
use gapscope_recorder::Assembler;
use gapscope_recorder::Names;
use gapscope_spool::event::Event;
use gapscope_spool::ids::Thread;
use gapscope_trace::Trace;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::manifest::{FORMAT_VERSION, Manifest, SamplingMode};
use gapscope_trace::tables::Tables;

/// An assembler with its rows so far.
pub struct Assembly {
    pub assembler: Assembler,
    mode: SamplingMode,
    tables: Tables,
}

impl Assembly {
    pub fn new(mode: SamplingMode) -> Assembly {
        Assembly {
            assembler: Assembler::new(mode),
            mode,
            tables: Tables::default(),
        }
    }

    pub fn apply(&mut self, process: ProcessId, thread: Thread, event: Event<'_>) {
        self.assembler
            .apply(process, thread, event, &mut self.tables);
    }

    /// Ends a process as the session does.
    pub fn end(&mut self, process: ProcessId) {
        self.assembler.ended_suddenly(process);
        while self.assembler.settle_some(process, &mut self.tables) {}
        self.assembler.end_process(process, &mut self.tables);
    }

    /// Finishes the trace, and makes analyses and the outputs of `choice` read it.
    pub fn show(mut self, choice: Choice) {
        let _ = self.assembler.take_sources();
        let _ = self.assembler.take_busy();
        self.assembler.finish(&Names::default(), &mut self.tables);
        let mut manifest = Manifest {
            format_version: FORMAT_VERSION,
            complete: true,
            sampling_mode: self.mode,
            ..Manifest::default()
        };
        self.assembler.describe(&mut manifest);
        manifest.end_ns = self.assembler.latest_ns().max(manifest.start_ns);
        let said = self.assembler.dispatches();
        let rows = self.tables.dispatches.queue.len() as u64;
        assert_eq!(
            rows, said,
            "rows of dispatches, and what the session counts"
        );
        let trace = Trace {
            manifest,
            tables: self.tables,
            unread: Vec::new(),
        };
        outcome::show(&trace, &[], choice);
    }
}
