//! wgpu's devices can be captured.

use crate::capture::{Backend, CaptureDevice, Hooked};
use std::sync::Arc;

/// On Vulkan, through gapscope's hook; the device is waited for by polling it.
impl CaptureDevice for ::wgpu::Device {
    fn backend(&self) -> Arc<dyn Backend> {
        let device = self.clone();
        Hooked::new(move || {
            let polled = device.poll(::wgpu::PollType::wait_indefinitely());
            polled.map(drop).map_err(|error| error.to_string())
        })
        .backend()
    }
}
