//! Exports the functions by which the recorded program may control its recording and set labels: see
//! [`gapscope_spool::interface`].

use crate::recorder::{Recorder, recorder};
use crate::{devices, polls};
use gapscope_spool::interface::{Provider, Table};
use gapscope_spool::{Spool, ids};
use std::ffi::CStr;

impl Provider for Recorder {
    const NAME: &'static CStr = c"vulkan";

    fn get() -> Option<&'static Recorder> {
        recorder()
    }

    fn spool(&self) -> &Spool {
        Recorder::spool(self)
    }

    fn text(&self, text: &str) -> ids::Text {
        Recorder::text(self, text)
    }

    fn recording_changes(&self) {
        polls::flush();
    }

    fn flush(&self) -> bool {
        devices::flush_all()
    }
}

/// The functions that the program gets.
static TABLE: Table = Table::new::<Recorder>();

/// Exports [`gapscope_spool::interface::SYMBOL`].
#[unsafe(no_mangle)]
pub extern "C" fn gapscope_interface(version: u32) -> *const Table {
    TABLE.answer(version)
}
