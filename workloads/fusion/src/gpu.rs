//! Opens the GPU that a run uses. When the GPU refuses work later, the program ends with a message.

use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::wgsl::WORKGROUP_SIZE;

/// A GPU with its only queue.
pub struct Gpu {
    pub adapter: wgpu::AdapterInfo,
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    limits: wgpu::Limits,
}

impl Gpu {
    /// Opens the best adapter whose name contains `wanted`.
    pub fn open(wanted: Option<&str>) -> Result<Self> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            // Labels reach the driver, and so a profiler, only with DEBUG, which is otherwise the default only in
            // debug builds.
            flags: wgpu::InstanceFlags::DEBUG,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
        let adapter = choose(adapters, wanted)?;
        let limits = adapter.limits();
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("fusion"),
            required_limits: limits.clone(),
            ..Default::default()
        }))
        .with_context(|| format!("{} gives no device", adapter.get_info().name))?;
        device.on_uncaptured_error(Arc::new(|error| {
            eprintln!("Error: the GPU refused the work: {error}");
            std::process::exit(1);
        }));
        Ok(Self {
            adapter: adapter.get_info(),
            device,
            queue,
            limits,
        })
    }

    /// Fails if an array of `n` values exceeds the maximum binding of this GPU.
    pub fn check_length(&self, n: u32) -> Result<()> {
        let bytes = u64::from(n) * size_of::<f32>() as u64;
        let limit = self
            .limits
            .max_storage_buffer_binding_size
            .min(self.limits.max_buffer_size);
        if bytes > limit {
            bail!(
                "{n} values are {bytes} bytes, but {} binds at most {limit} bytes",
                self.adapter.name
            );
        }
        Ok(())
    }

    /// Returns the grid of workgroups for `n` values, with two dimensions if one is too short.
    pub fn grid(&self, n: u32) -> (u32, u32) {
        grid(n, self.limits.max_compute_workgroups_per_dimension)
    }
}

/// Returns the numbers of workgroups in two dimensions, neither above `limit`, for at least `n` values.
fn grid(n: u32, limit: u32) -> (u32, u32) {
    let groups = n.div_ceil(WORKGROUP_SIZE);
    let rows = groups.div_ceil(limit);
    (groups.div_ceil(rows), rows)
}

/// Returns the adapter whose name contains `wanted`, whatever the case: a GPU of its own before an integrated one,
/// and a CPU last. `None` allows every name.
fn choose(adapters: Vec<wgpu::Adapter>, wanted: Option<&str>) -> Result<wgpu::Adapter> {
    if adapters.is_empty() {
        bail!(
            "no GPU adapter was found: install a Vulkan driver (on a machine without a GPU, Mesa's lavapipe)"
        );
    }
    let names: Vec<_> = adapters.iter().map(|a| a.get_info().name).collect();
    let wanted = wanted.unwrap_or_default();
    adapters
        .into_iter()
        .filter(|adapter| {
            let name = adapter.get_info().name.to_lowercase();
            name.contains(&wanted.to_lowercase())
        })
        .min_by_key(|adapter| match adapter.get_info().device_type {
            wgpu::DeviceType::DiscreteGpu => 0,
            wgpu::DeviceType::IntegratedGpu => 1,
            wgpu::DeviceType::VirtualGpu => 2,
            wgpu::DeviceType::Other => 3,
            wgpu::DeviceType::Cpu => 4,
        })
        .with_context(|| {
            format!(
                "no adapter's name contains \"{wanted}\"; there are: {}",
                names.join(", ")
            )
        })
}

#[cfg(test)]
mod tests {
    use super::grid;

    #[test]
    fn the_grid_covers_every_value_within_the_limit() {
        assert_eq!(grid(1, 65535), (1, 1));
        assert_eq!(grid(256, 65535), (1, 1));
        assert_eq!(grid(257, 65535), (2, 1));
        for n in [65535 * 256, 65535 * 256 + 1, 100_000_000, u32::MAX] {
            let (x, y) = grid(n, 65535);
            assert!(x <= 65535 && y <= 65535, "{n}: {x} x {y}");
            assert!(
                u64::from(x) * u64::from(y) * 256 >= u64::from(n),
                "{n}: {x} x {y}"
            );
        }
    }
}
