//! Exports the functions that the program itself may call: see [`gapscope_spool::interface`]. Under this layer, a
//! window (a part of the run) that the program begins becomes a capture, and labels of its threads may choose the
//! window.

use std::ffi::CStr;
use std::path::PathBuf;

use gapscope_spool::interface::{CaptureProvider, Status, Table};

use crate::window::{Labels, WindowControl, control};

static TABLE: Table = Table::for_captures::<WindowControl>();

/// Exports [`gapscope_spool::interface::SYMBOL`].
#[unsafe(no_mangle)]
pub extern "C" fn gapscope_interface(version: u32) -> *const Table {
    TABLE.answer(version)
}

impl CaptureProvider for WindowControl {
    const NAME: &'static CStr = c"vulkan";

    fn get() -> Option<&'static WindowControl> {
        control()
    }

    fn program_may_start(&self) -> Status {
        WindowControl::program_may_start(self)
    }

    fn start_by_program(&self, path: Option<PathBuf>) -> Result<u32, Status> {
        WindowControl::start_by_program(self, path)
    }

    fn stop_by_program(&self, number: u32) -> Status {
        WindowControl::stop_by_program(self, number)
    }

    fn state_of_window(&self, number: u32) -> Status {
        self.program_windows.state(number)
    }

    fn push_label(&self, text: &str) {
        Labels::push(text.to_owned());
    }

    fn pop_label(&self) -> bool {
        Labels::pop()
    }
}
