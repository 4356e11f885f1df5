//! Captures one kernel of a graph that the program launches: see [`super::graphs`].

use super::copier::NON_BLOCKING;
use super::driver_functions::DriverFunctions;
use super::graphs::OrderedGraph;
use super::open_window::{OpenWindow, Stop};
use super::prepared_launch::PreparedLaunch;
use super::reached_memory::words_of_parameters;
use super::refusal::Refusal;
use super::saved_memory::SavedMemory;
use super::synchronise::synchronise;
use crate::streams::StreamHandle;
use std::ffi::c_void;

/// A kernel of a graph that is about to be launched.
#[derive(Debug)]
pub struct GraphKernel {
    graph: OrderedGraph,
    /// The position of the kernel in the graph.
    at: usize,
    prepared: PreparedLaunch,
    /// A stream of ours on which the parts of the graph run.
    stream: *mut c_void,
}

impl GraphKernel {
    /// Prepares the kernel at a position of an executable graph.
    ///
    /// # Errors
    /// The kernel cannot be captured right.
    pub fn new(
        driver: &DriverFunctions,
        executable: usize,
        at: usize,
        kernel: &str,
    ) -> Result<GraphKernel, Refusal> {
        let refused = |reason| Refusal::InGraph {
            kernel: kernel.to_owned(),
            reason,
        };
        let graph = OrderedGraph::from_executable(driver, executable).map_err(refused)?;
        graph.written_before(driver, at).map_err(refused)?;
        let mut stream = std::ptr::null_mut();
        // SAFETY: the driver's function, which stores a handle.
        if unsafe { (driver.create_stream)(&mut stream, NON_BLOCKING) } != 0 {
            return Err(refused("no stream could be made for its parts"));
        }
        let call = graph.launch(driver, at, StreamHandle::new(stream as usize, false));
        let call = call.ok_or_else(|| refused("the driver does not say its parameters"));
        // SAFETY: the parameters are the driver's own, and those of this kernel.
        let prepared = call.and_then(|call| unsafe { PreparedLaunch::new(driver, &call) });
        match prepared {
            Ok(prepared) => Ok(GraphKernel {
                graph,
                at,
                prepared,
                stream,
            }),
            Err(refusal) => {
                // SAFETY: a stream of ours.
                unsafe { (driver.destroy_stream)(stream) };
                Err(refusal)
            }
        }
    }

    /// Captures the kernel. Memory is afterwards as it was before.
    ///
    /// # Errors
    /// The kernel cannot be captured right, or the capture cannot be written.
    pub fn capture(
        self,
        driver: &DriverFunctions,
        context: *mut c_void,
        window: &mut OpenWindow,
    ) -> Result<(), Stop> {
        let stream = self.stream;
        let result = self.capture_on(driver, context, window);
        // SAFETY: a stream of ours, on which nothing runs.
        unsafe { (driver.destroy_stream)(stream) };
        result
    }

    fn capture_on(
        self,
        driver: &DriverFunctions,
        context: *mut c_void,
        window: &mut OpenWindow,
    ) -> Result<(), Stop> {
        let (stream, kernel) = (self.stream, self.prepared.kernel.clone());
        let refused = |reason| Refusal::InGraph {
            kernel: kernel.clone(),
            reason,
        };
        synchronise(driver, context).map_err(|why| Refusal::not_idle(&kernel, why, false))?;
        let handle = StreamHandle::new(stream as usize, false);
        let mut variables = Vec::new();
        let mut words = (self.graph.written_before(driver, self.at)).map_err(refused)?;
        for (at, _) in self.graph.kernels(driver) {
            if at > self.at {
                break;
            }
            let call = self.graph.launch(driver, at, handle);
            let call = call.ok_or_else(|| refused("the driver does not say its parameters"))?;
            // SAFETY: the parameters are the driver's own, and those of this kernel.
            let prepared = unsafe { PreparedLaunch::new(driver, &call) }?;
            let named = prepared.variables(driver).into_iter();
            variables.extend(named.map(|(_, range)| range));
            words.extend(
                words_of_parameters(&prepared.parameters)
                    .into_iter()
                    .map(|(_, word)| word),
            );
        }
        variables.sort_unstable_by_key(|range| range.address);
        variables.dedup();
        let mut saved = window.save(driver, &kernel, variables, words)?;
        let captured = self.run_parts(driver, context, window, handle, &mut saved);
        let put_back = saved.put_back(driver, stream);
        put_back.map_err(|error| Refusal::Driver {
            kernel,
            function: error.function,
            code: error.code,
        })?;
        captured
    }

    /// Runs the nodes before the kernel, one by one, and then the kernel between two copies of memory.
    fn run_parts(
        self,
        driver: &DriverFunctions,
        context: *mut c_void,
        window: &mut OpenWindow,
        handle: StreamHandle,
        saved: &mut SavedMemory,
    ) -> Result<(), Stop> {
        let (stream, position) = (self.stream, self.at);
        let kernel = self.prepared.kernel.clone();
        let failed = |function| {
            let kernel = kernel.clone();
            move |code| Refusal::Driver {
                kernel,
                function,
                code,
            }
        };
        for node in 0..position {
            let one = self.graph.run(driver, stream, |at| at == node);
            one.map_err(failed("a graph of a node before it"))?;
            // The node may have stored an address, through which the next ones write.
            window.save_more(driver, &kernel, saved)?;
        }
        let call = self.graph.launch(driver, position, handle);
        let call = call.ok_or_else(|| Refusal::NoParameters {
            kernel: kernel.clone(),
        })?;
        window.before(driver, context, &call, self.prepared, None)?;
        let alone = self.graph.run(driver, stream, |at| at == position);
        window.after(driver, stream, alone.is_ok())?;
        alone.map_err(failed("a graph of this kernel"))?;
        Ok(())
    }
}
