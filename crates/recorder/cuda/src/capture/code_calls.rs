//! Follows the calls that load code and that make graphs, outside of windows too, so that a launch in a window is known
//! to be of this code, and a graph can be taken apart.

use super::calls::CallKind;
use super::control::CaptureControl;
use super::graphs;
use super::loaded_code::{self, CodeHandle, FunctionHandles};
use super::texture_handles;
use crate::callbacks::CallbackData;
use std::ffi::c_void;

impl CaptureControl {
    /// Keeps copies of the graphs that are made.
    ///
    /// # Safety
    /// The data is CUPTI's, of this call.
    pub(super) unsafe fn graph_call(&self, kind: CallKind, data: &CallbackData) {
        let Some(driver) = self.driver.get().filter(|_| self.is_armed()) else {
            return;
        };
        // SAFETY: as the caller promises; a call that has succeeded has stored a handle.
        unsafe {
            let has_succeeded = !data.is_enter() && data.result() == 0;
            match (kind, data.is_enter()) {
                (CallKind::InstantiateGraph | CallKind::UpdateGraph, true) => {
                    graphs::instantiate_begins(driver, data.parameter(1));
                }
                (CallKind::InstantiateGraph, false) => {
                    let made = (data.parameter(0) as *const usize).as_ref();
                    let made = made.copied().filter(|_| has_succeeded);
                    graphs::instantiate_ends(driver, made.unwrap_or(0));
                }
                (CallKind::UpdateGraph, false) => {
                    let changed = if has_succeeded { data.parameter(0) } else { 0 };
                    graphs::instantiate_ends(driver, changed);
                }
                (CallKind::ChangeGraph, true) => graphs::changed(data.parameter(0)),
                (CallKind::DestroyGraph, true) => graphs::ended(driver, data.parameter(0)),
                _ => {}
            }
        }
    }

    /// Notes whose code was loaded inside of a call.
    ///
    /// # Safety
    /// The data is CUPTI's, of this call.
    pub(super) unsafe fn code_call(&self, kind: CallKind, data: &CallbackData) {
        if data.is_enter() {
            loaded_code::call_begins();
            // SAFETY: as the caller promises. What is forgotten may get another meaning from now on.
            unsafe {
                match kind {
                    CallKind::UnloadModule => {
                        loaded_code::forget(CodeHandle::Module(data.parameter(0)));
                        self.forget_names();
                    }
                    CallKind::UnloadLibrary => {
                        loaded_code::forget(CodeHandle::Library(data.parameter(0)));
                        self.forget_names();
                    }
                    _ => {}
                }
            }
            return;
        }
        // SAFETY: as the caller promises; the call has returned, and has stored a handle if it succeeded.
        unsafe {
            if data.result() != 0 {
                return;
            }
            // Of other calls, the first parameter is no pointer.
            let stored = match kind {
                CallKind::LoadModule
                | CallKind::LoadLibrary
                | CallKind::GetsModule
                | CallKind::GetsFunction
                | CallKind::MakesTexture => (data.parameter(0) as *const usize).as_ref().copied(),
                _ => None,
            };
            match (kind, stored) {
                (CallKind::MakesTexture, Some(texture)) => texture_handles::made(texture),
                (CallKind::EndsTexture, _) => texture_handles::ended(data.parameter(0)),
                (CallKind::GetsModule, Some(module)) => {
                    loaded_code::module_of_library(module, data.parameter(1));
                }
                (CallKind::GetsFunction, Some(function)) => {
                    loaded_code::function_of_kernel(function, data.parameter(1));
                }
                _ => {}
            }
            if !loaded_code::is_new_in_call() {
                return;
            }
            let handle = match kind {
                CallKind::LoadModule => stored.map(CodeHandle::Module),
                CallKind::LoadLibrary => stored.map(CodeHandle::Library),
                CallKind::GetsModule => Some(CodeHandle::Library(data.parameter(1))),
                CallKind::AsksLibrary(at) => Some(CodeHandle::Library(data.parameter(at))),
                CallKind::GetsFunction => self.library_of(data.parameter(1)),
                CallKind::AsksKernel(at) => self.library_of(data.parameter(at)),
                _ => None,
            };
            handle.into_iter().for_each(loaded_code::claim);
        }
    }

    /// Notes whose code was loaded inside of a launch.
    pub(super) fn claim_for_launch(&self, handle: usize) {
        let Some(driver) = self.driver.get() else {
            return;
        };
        // SAFETY: the handle is the program's, in a launch that has not returned yet.
        let handles = unsafe { FunctionHandles::find(driver, handle as *mut c_void) };
        handles
            .code()
            .into_iter()
            .take(1)
            .for_each(loaded_code::claim);
    }

    /// Returns the library of a CUkernel. The driver takes any handle for one, so that this must be one.
    fn library_of(&self, kernel: usize) -> Option<CodeHandle> {
        let driver = self.driver.get()?;
        let mut library = std::ptr::null_mut();
        // SAFETY: the driver's function with a CUkernel of the program; it stores a handle.
        let code = unsafe { (driver.kernel_library)(&mut library, kernel as *mut c_void) };
        (code == 0).then_some(CodeHandle::Library(library as usize))
    }
}
