//! One event at a time.

mod cuda;
mod every_hook;
mod vulkan;

use super::Assembler;
use gapscope_spool::event::Event;
use gapscope_spool::ids as hook;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::Tables;

impl Assembler {
    /// One event of a process, in sequence. Rows that it completes are appended to `tables`.
    ///
    /// # Panics
    /// `process` is not one of [`Self::add_process`].
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
