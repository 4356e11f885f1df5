//! Applies events one at a time: each is passed to the part of the assembler that keeps or completes what the event
//! says.

mod cuda;
mod every_hook;
mod vulkan;

use super::Assembler;
use gapscope_spool::event::Event;
use gapscope_spool::ids as hook;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::Tables;

impl Assembler {
    /// Applies the next event of a process, which `thread` wrote, and appends the rows that it completes to `tables`.
    ///
    /// # Panics
    /// `process` was not returned by [`Self::add_process`].
    pub fn apply<'a>(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        event: impl Into<Event<'a>>,
        tables: &mut Tables,
    ) {
        match event.into() {
            Event::Common(event) => self.apply_common(process, thread, event, tables),
            Event::Vulkan(event) => self.apply_vulkan(process, thread, event, tables),
            Event::Cuda(event) => self.apply_cuda(process, thread, event, tables),
        }
    }
}
