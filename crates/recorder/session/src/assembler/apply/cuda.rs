//! What the CUDA library tells.

use super::super::Assembler;
use gapscope_spool::event::CudaEvent;
use gapscope_spool::ids as hook;
use gapscope_trace::tables::Tables;

impl Assembler {
    pub(super) fn apply_cuda(
        &mut self,
        process: u32,
        thread: hook::Thread,
        event: CudaEvent<'_>,
        tables: &mut Tables,
    ) {
        match event {
            CudaEvent::Activities {
                first,
                count,
                bytes,
            } => self.activities(process, first, count, bytes, tables),
            CudaEvent::Function { function, name, .. } => {
                self.cuda_function(process, function, &name);
            }
            CudaEvent::Called {
                function,
                span,
                correlation,
                result,
            } => self.called(
                process,
                thread,
                (function, result),
                span,
                correlation,
                tables,
            ),
            CudaEvent::Polled {
                function,
                thread,
                span,
                count,
                busy_ns,
                result,
            } => {
                let (function, polls) = ((function, result), (count, busy_ns));
                self.polled(process, thread, function, span, polls, tables);
            }
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
            CudaEvent::DeviceLimits { device, limits } => {
                self.device_limits(process, device, limits)
            }
            CudaEvent::Pool {
                pool,
                device,
                edge,
                bytes,
                at_ns,
            } => {
                let device = self.device(process, device);
                self.pool(process, pool, device, edge, bytes, at_ns, tables);
            }
            CudaEvent::LabelDetail { category, payload } => {
                self.label_detail(process, thread, category, payload)
            }
            CudaEvent::LabelPayload { ending, text } => {
                self.label_payload(process, thread, ending, text);
            }
        }
    }
}
