//! Turns records of overheads into events: time that the driver or the tracing took on the host.

use super::losses::NO_TIMES;
use super::reader::Reader;
use super::times::span;
use crate::cupti::fields::{self, Record};
use gapscope_spool::event::{Activity, LossKind, OverheadKind};
use gapscope_spool::ids;

/// CUpti_ActivityObjectKind of a thread.
const OBJECT_THREAD: u32 = 2;

impl Reader {
    /// Packs a record of time that the driver or the tracing took.
    ///
    /// # Safety
    /// The record is an overhead's.
    pub(super) unsafe fn overhead(&mut self, record: &Record<'_>) {
        use fields::overhead::*;
        // SAFETY: as the caller promises.
        unsafe {
            let thread = match record.get(OBJECT) {
                OBJECT_THREAD => ids::Thread(record.get(THREAD)),
                _ => ids::Thread::NONE,
            };
            let span = span(record.get(START), record.get(END));
            if span.is_none() {
                self.losses.add(LossKind::OverheadTimes, NO_TIMES);
            }
            self.packer.push(&Activity::Overhead {
                kind: kind_of(record.get(KIND)),
                thread,
                span,
            });
        }
    }
}

/// Returns the kind of a CUpti_ActivityOverheadKind, whose numbers are 1, or multiples of 65,536.
fn kind_of(number: u32) -> OverheadKind {
    match (number & 0xffff, number >> 16) {
        (1, 0) => OverheadKind::Compiler,
        (0, 1) => OverheadKind::BufferFlush,
        (0, 2) => OverheadKind::Instrumentation,
        (0, 3) => OverheadKind::Resource,
        (0, 4) => OverheadKind::ModuleLoading,
        (0, 5) => OverheadKind::FunctionLoading,
        (0, 6) => OverheadKind::CommandBufferFull,
        (0, 7) => OverheadKind::BufferRequest,
        (0, 8) => OverheadKind::UnifiedMemory,
        _ => OverheadKind::Unknown,
    }
}
