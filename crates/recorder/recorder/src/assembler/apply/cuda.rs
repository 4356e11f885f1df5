//! Applies the events that only the CUDA library writes, each by a call of the function that keeps its content: an
//! event goes in, rows are appended to the tables.

use super::super::Assembler;
use super::super::cuda::{CallRecord, Profile};
use gapscope_spool::event::CudaEvent;
use gapscope_spool::ids as hook;
use gapscope_trace::ids::ProcessId;
use gapscope_trace::tables::Tables;

impl Assembler {
    /// Applies an event of the CUDA library; `thread` wrote the event.
    pub(super) fn apply_cuda(
        &mut self,
        process: ProcessId,
        thread: hook::Thread,
        event: CudaEvent<'_>,
        tables: &mut Tables,
    ) {
        // A call that launches no graph of which something is known.
        let call = |thread, function, span, correlation, result| CallRecord {
            function,
            thread,
            correlation,
            span,
            result,
            host_functions: None,
            graph: None,
        };
        match event {
            CudaEvent::Activities(batch) => self.activities(process, batch, tables),
            CudaEvent::Function {
                function,
                class,
                name,
            } => self.cuda_function(process, function, class, &name),
            CudaEvent::Called {
                function,
                span,
                correlation,
                result,
            } => {
                let record = call(thread, function, span, correlation, result);
                self.called(process, record, tables);
            }
            CudaEvent::GraphLaunched {
                function,
                span,
                correlation,
                host_functions,
                graph,
            } => {
                let mut record = call(thread, function, span, correlation, 0);
                record.host_functions = host_functions;
                record.graph = graph.some();
                self.called(process, record, tables);
            }
            CudaEvent::Polled {
                function,
                thread,
                span,
                count,
                busy_ns,
                result,
            } => {
                let record = call(thread, function, span, hook::Correlation::NONE, result);
                self.polled(process, record, count, busy_ns, tables);
            }
            CudaEvent::GraphChanged(change) => self.graph_changed(process, thread, change),
            CudaEvent::Launch { launch, shape } => self.cuda_launch(process, launch, &shape),
            CudaEvent::LaunchesEnd { below } => self.cuda_launches_end(process, below),
            CudaEvent::Route {
                route,
                queue,
                kind,
                source,
                destination,
            } => self.cuda_route(process, route, queue, kind, [source, destination]),
            CudaEvent::Stream {
                queue,
                kind,
                priority,
            } => self.stream(process, queue, kind, priority),
            CudaEvent::DeviceProperties { device, limits } => {
                self.device_limits(process, device, limits)
            }
            CudaEvent::Pool(state) => self.pool(process, state, tables),
            CudaEvent::Delivered {
                device,
                end_ns,
                at_ns,
            } => self.delivered(process, device, end_ns, at_ns),
            CudaEvent::LabelDetail { category, payload } => {
                self.label_detail(process, thread, category, payload)
            }
            CudaEvent::LabelPayload { ending, text } => {
                self.label_payload(process, thread, ending, text);
            }
            CudaEvent::KernelProfiled {
                correlation,
                kernel,
                span,
                passes,
                values,
            } => {
                let profile = Profile {
                    kernel: kernel.into_owned(),
                    passes,
                    values: values.into_owned(),
                };
                self.kernel_profiled(process, (thread, correlation), span, profile, tables);
            }
            CudaEvent::InstructionSampling {
                device,
                period_cycles,
                reasons,
            } => self.instruction_sampling(process, device, period_cycles, reasons),
            CudaEvent::InstructionSamples(samples) => self.instruction_samples(process, &samples),
            CudaEvent::SampledCubin { cubin, bytes } => {
                self.sampled_cubin(process, cubin, bytes);
            }
        }
    }
}
