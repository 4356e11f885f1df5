//! Says which calls of the driver a capture has to do with, by CUPTI's numbers of them.

use super::launch_call::LaunchShape;
use crate::cupti::Cupti;
use crate::cupti::numbers::{CALL_NUMBERS, domain};
use gapscope_spool::model::cuda::{base_name, is_per_thread};

/// What a call means to a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// The call launches a kernel. `per_thread`: null means the thread's own stream.
    Launch {
        shape: LaunchShape,
        per_thread: bool,
    },
    /// The call launches a graph. `per_thread`: null means the thread's own stream.
    LaunchGraph { per_thread: bool },
    /// The call makes an executable graph of its second parameter, and stores it where its first points.
    InstantiateGraph,
    /// The call changes the executable graph that is its first parameter to the graph that is its second.
    UpdateGraph,
    /// The call changes nodes of the executable graph that is its first parameter.
    ChangeGraph,
    /// The call ends the executable graph that is its first parameter.
    DestroyGraph,
    /// The call hands other work to the GPU, or frees memory.
    Work,
    /// The call loads code and stores a CUmodule where its first parameter points.
    LoadModule,
    /// The call loads code and stores a CUlibrary where its first parameter points.
    LoadLibrary,
    /// The call stores the CUmodule of the CUlibrary that is its second parameter.
    GetsModule,
    /// The call stores the CUfunction of the CUkernel that is its second parameter.
    GetsFunction,
    /// Code may be loaded inside of the call, for the library that is this parameter.
    AsksLibrary(usize),
    /// Code may be loaded inside of the call, for the library of the CUkernel that is this parameter. Calls that take a
    /// CUfunction or a CUkernel in its place are not among these: the driver crashes where one is taken for the other.
    AsksKernel(usize),
    /// The call makes a texture or a surface, and stores its handle where its first parameter points.
    MakesTexture,
    /// The call ends the texture or the surface that is its first parameter.
    EndsTexture,
    /// The call ends the module that is its first parameter.
    UnloadModule,
    /// The call ends the library that is its first parameter.
    UnloadLibrary,
}

impl CallKind {
    fn from_name(name: &str) -> Option<CallKind> {
        let launch = |shape| CallKind::Launch {
            shape,
            per_thread: is_per_thread(name),
        };
        Some(match base_name(name) {
            "cuLaunchKernel" => launch(LaunchShape::Plain),
            "cuLaunchKernelEx" => launch(LaunchShape::WithAttributes),
            "cuLaunchCooperativeKernel" => launch(LaunchShape::Cooperative),
            "cuGraphLaunch" => CallKind::LaunchGraph {
                per_thread: is_per_thread(name),
            },
            "cuGraphInstantiate"
            | "cuGraphInstantiateWithFlags"
            | "cuGraphInstantiateWithParams" => CallKind::InstantiateGraph,
            "cuGraphExecUpdate" => CallKind::UpdateGraph,
            "cuGraphExecDestroy" => CallKind::DestroyGraph,
            "cuGraphNodeSetEnabled" => CallKind::ChangeGraph,
            name if name.starts_with("cuGraphExec") && name.contains("SetParams") => {
                CallKind::ChangeGraph
            }
            "cuModuleLoad"
            | "cuModuleLoadData"
            | "cuModuleLoadDataEx"
            | "cuModuleLoadFatBinary" => CallKind::LoadModule,
            "cuLibraryLoadData" | "cuLibraryLoadFromFile" => CallKind::LoadLibrary,
            "cuLibraryGetModule" => CallKind::GetsModule,
            "cuKernelGetFunction" => CallKind::GetsFunction,
            "cuLibraryGetGlobal" | "cuLibraryGetManaged" => CallKind::AsksLibrary(2),
            "cuKernelSetAttribute" => CallKind::AsksKernel(1),
            "cuKernelGetAttribute" => CallKind::AsksKernel(2),
            "cuTexObjectCreate" | "cuSurfObjectCreate" => CallKind::MakesTexture,
            "cuTexObjectDestroy" | "cuSurfObjectDestroy" => CallKind::EndsTexture,
            "cuModuleUnload" => CallKind::UnloadModule,
            "cuLibraryUnload" => CallKind::UnloadLibrary,
            name if name.starts_with("cuMemcpy") || name.starts_with("cuMemset") => CallKind::Work,
            "cuMemFree"
            | "cuMemFreeAsync"
            | "cuMemFreeHost"
            | "cuMemUnmap"
            | "cuMemHostUnregister"
            | "cuMemPoolTrimTo"
            | "cuMemPoolDestroy"
            | "cuStreamWriteValue32"
            | "cuStreamWriteValue64"
            | "cuStreamBatchMemOp" => CallKind::Work,
            _ => return None,
        })
    }

    /// Returns whether callbacks of the call are needed from the start of the program.
    pub fn is_about_code(self) -> bool {
        !self.is_launch() && !self.is_about_graphs() && self != CallKind::Work
    }

    /// Returns whether callbacks of the call are needed from the start where kernels of graphs may be in the window.
    pub fn is_about_graphs(self) -> bool {
        matches!(
            self,
            CallKind::InstantiateGraph
                | CallKind::UpdateGraph
                | CallKind::ChangeGraph
                | CallKind::DestroyGraph
        )
    }

    /// Returns whether callbacks of the call are needed while launches are counted.
    pub fn is_launch(self) -> bool {
        matches!(self, CallKind::Launch { .. } | CallKind::LaunchGraph { .. })
    }
}

/// The calls of the driver, by CUPTI's numbers.
#[derive(Debug)]
pub struct CaptureCalls(Vec<Option<CallKind>>);

impl CaptureCalls {
    /// Asks CUPTI for the names of all calls.
    pub fn find(cupti: &Cupti) -> CaptureCalls {
        let kind = |number| CallKind::from_name(cupti.call_name(domain::DRIVER, number)?);
        CaptureCalls((0..CALL_NUMBERS).map(kind).collect())
    }

    /// Returns what a call means to a capture; `None` for calls that it has nothing to do with.
    pub fn get(&self, number: u32) -> Option<CallKind> {
        *self.0.get(number as usize)?
    }

    /// Returns the calls with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (u32, CallKind)> {
        (0..)
            .zip(&self.0)
            .filter_map(|(number, kind)| Some((number, (*kind)?)))
    }
}
