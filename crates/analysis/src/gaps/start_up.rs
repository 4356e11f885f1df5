//! How long a device takes to start, order or hand over work that is free to run, by the API through which the work came.

use gapscope_timeline::thresholds::{START_UP_CUDA_NS, START_UP_NS};
use gapscope_timeline::{QueueOfGpu, Timeline};
use gapscope_trace::manifest::Api;

/// Returns the time from which on such a start is not believed.
pub(crate) fn start_up_ns(api: Api) -> i64 {
    match api {
        Api::Cuda | Api::Hip => START_UP_CUDA_NS,
        Api::Vulkan | Api::Metal | Api::Unknown => START_UP_NS,
    }
}

/// Returns the API through which work comes to a queue.
pub(crate) fn api_of(timeline: &Timeline, queue: &QueueOfGpu) -> Api {
    let manifest = &timeline.trace.manifest;
    let row = queue.row.map(|row| &manifest.queues[row as usize]);
    let device = row.and_then(|row| {
        manifest
            .devices
            .iter()
            .find(|device| device.id == row.device)
    });
    device.map_or(Api::Unknown, |device| device.api)
}
