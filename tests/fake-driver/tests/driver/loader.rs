//! Tests that Khronos' validation layer finds no fault with the driver.

use std::ffi::CStr;

use ash::vk;

use crate::child;
use crate::gpu::Gpu;

const VALIDATION: &CStr = c"VK_LAYER_KHRONOS_validation";

#[test]
fn the_validation_layer_finds_nothing() {
    let scenario = || {
        let gpu = Gpu::new();
        let layers = unsafe { gpu.entry.enumerate_instance_layer_properties() }.expect("layers");
        let found = layers
            .iter()
            .any(|layer| layer.layer_name_as_c_str() == Ok(VALIDATION));
        assert!(found, "install the validation layers");
        let (kernel, queries, results) = (gpu.kernel(), gpu.timestamps(2), gpu.buffer(64));
        gpu.execute(0, |buffer| unsafe {
            let bottom = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
            gpu.device.cmd_reset_query_pool(buffer, queries, 0, 2);
            gpu.device
                .cmd_bind_pipeline(buffer, vk::PipelineBindPoint::COMPUTE, kernel.pipeline);
            gpu.device.cmd_write_timestamp(buffer, bottom, queries, 0);
            gpu.device.cmd_dispatch(buffer, 1, 1, 1);
            gpu.device.cmd_write_timestamp(buffer, bottom, queries, 1);
            let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
            gpu.device.cmd_copy_query_pool_results(
                buffer,
                queries,
                0,
                2,
                results.buffer,
                0,
                8,
                flags,
            );
        });
        let copied: Vec<u64> = gpu.map(&results)[..4]
            .chunks_exact(2)
            .map(|words| u64::from(words[0].get()) | u64::from(words[1].get()) << 32)
            .collect();
        assert_eq!(copied, gpu.results(queries, 2));
        unsafe { gpu.device.destroy_query_pool(queries, None) };
        gpu.destroy_buffer(results);
        gpu.destroy_kernel(kernel);
        gpu.destroy();
    };
    let variables = [("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation")];
    child::run(&variables, scenario, |outcome| {
        outcome.assert_clean();
        assert!(
            !outcome.output.contains("Validation Error"),
            "{}",
            outcome.output
        );
    });
}
