//! The functions that this library exports: calls of the driver, of NVTX (NVIDIA's interface for labels) and of the
//! program come in, and go to the modules below.

use crate::process::recorder;
use crate::recorder::Recorder;
use crate::{capture, labels, nvtx, tracing};
use gapscope_spool::hook::guard;
use gapscope_spool::interface::{Provider, Table};
use gapscope_spool::{Spool, ids};
use std::ffi::{CStr, c_int, c_void};

/// Called by the driver inside the program's first cuInit, when `CUDA_INJECTION64_PATH` names this library.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn InitializeInjection() -> c_int {
    guard(|| {
        if let Some(control) = capture::control() {
            control.start();
        } else if let Some(recorder) = recorder() {
            tracing::start(recorder);
        }
    });
    // The driver expects 1. Failures are in the loss ledger and do not concern the program.
    1
}

/// Called by each module with NVTX at its first label, when `NVTX_INJECTION64_PATH` names this library. Returns 0 for
/// "no tool".
///
/// # Safety
/// `get_export_table` is null or NVTX's function.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(
    get_export_table: Option<nvtx::GetExportTable>,
) -> c_int {
    let attached = guard(|| {
        let listens = capture::control().is_some() || recorder().is_some();
        // SAFETY: as the caller promises.
        get_export_table.is_some_and(|get| listens && unsafe { nvtx::attach(get) })
    });
    c_int::from(attached.unwrap_or(false))
}

/// Called by each module with an NVTX extension at its first use, when `NVTX_INJECTION64_PATH` names this library.
/// Returns 0 where the extension is not recorded; its functions then do nothing.
///
/// # Safety
/// `module` is null or NVTX's description of the extension.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn InitializeInjectionNvtxExtension(
    module: *const nvtx::ExtensionModule,
) -> c_int {
    let attached = guard(|| match recorder() {
        // SAFETY: as the caller promises.
        Some(_) => unsafe { nvtx::attach_extension(module) },
        None => false,
    });
    c_int::from(attached.unwrap_or(false))
}

static TABLE: Table = Table::new::<Recorder>();

/// Returns the functions by which the program speaks to this library; see `gapscope_spool::interface`.
#[unsafe(no_mangle)]
pub extern "C" fn gapscope_interface(version: u32) -> *const c_void {
    match capture::control() {
        Some(_) => capture::interface::TABLE.answer(version).cast(),
        None => TABLE.answer(version).cast(),
    }
}

impl Provider for Recorder {
    const NAME: &'static CStr = c"cuda";

    fn get() -> Option<&'static Recorder> {
        recorder()
    }

    fn spool(&self) -> &Spool {
        Recorder::spool(self)
    }

    fn text(&self, text: &str) -> ids::Text {
        labels::text(self, text.as_bytes())
    }

    fn record(&self, on: bool) {
        tracing::record(self, on);
    }

    fn flush(&self) -> bool {
        tracing::flush(self);
        true
    }
}
