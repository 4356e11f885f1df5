//! Captures devices of wgpu, by the backend of the system.

#[cfg(target_vendor = "apple")]
use crate::capture::metal::{AppleCaptureManager, from_wgpu};
use crate::capture::{Backend, CaptureDevice, WaitError};
use std::sync::Arc;

/// Captures through gapscope's hook on Linux, and through Apple's capture manager on Apple's systems, as a GPU trace
/// document of all work of the `MTLDevice` (not run on Apple hardware). The device is waited for by polling it.
impl CaptureDevice for ::wgpu::Device {
    fn backend(&self) -> Arc<dyn Backend> {
        let device = self.clone();
        backend(self, move || {
            let polled = device.poll(::wgpu::PollType::wait_indefinitely());
            polled.map(drop).map_err(WaitError::device)
        })
    }
}

// The backend by system: gapscope's hook on Linux, Apple's capture manager on Apple's systems.
#[cfg(target_os = "linux")]
fn backend(
    _: &::wgpu::Device,
    wait: impl Fn() -> Result<(), WaitError> + Send + Sync + 'static,
) -> Arc<dyn Backend> {
    crate::capture::Hooked::new(wait).backend()
}

#[cfg(target_vendor = "apple")]
fn backend(
    device: &::wgpu::Device,
    wait: impl Fn() -> Result<(), WaitError> + Send + Sync + 'static,
) -> Arc<dyn Backend> {
    // SAFETY: the device is only retained, and it is only captured.
    let metal = unsafe { device.as_hal::<::wgpu::hal::api::Metal>() };
    let manager = metal.map(|metal| AppleCaptureManager::from_device(metal.raw_device().clone()));
    from_wgpu(manager, wait)
}
