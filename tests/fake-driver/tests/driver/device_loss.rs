//! Tests that the device is lost after the configured number of submissions.

use ash::vk;

use crate::child;
use crate::gpu::Gpu;

#[test]
fn the_device_is_lost_after_so_many_submissions() {
    let scenario = || {
        let gpu = Gpu::new();
        let (pool, queue) = (gpu.pool(0), gpu.queue(0, 0));
        let buffers = [0, 1, 2].map(|_| gpu.record(pool, |_| {}));
        let lost = Err(vk::Result::ERROR_DEVICE_LOST);
        gpu.submit(queue, buffers[0]).expect("submitted");
        unsafe {
            gpu.device.queue_wait_idle(queue).expect("idle");
            gpu.submit(queue, buffers[1]).expect("submitted");
            assert_eq!(gpu.device.queue_wait_idle(queue), lost);
            assert_eq!(gpu.submit(queue, buffers[2]), lost);
            gpu.device.destroy_command_pool(pool, None);
        }
        gpu.destroy();
    };
    child::run(&[("FAKE_VK_LOST_AFTER", "1")], scenario, |outcome| {
        outcome.assert_clean();
        assert_eq!(outcome.of_kind("submission").len(), 1);
    });
}
