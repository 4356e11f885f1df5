//! Tests that queue families are as configured, and that a queue waits for another one's semaphore.

use ash::vk;

use crate::child;
use crate::gpu::Gpu;

#[test]
fn families_are_as_configured() {
    let scenario = || {
        let gpu = Gpu::new();
        let families = unsafe {
            gpu.instance
                .get_physical_device_queue_family_properties(gpu.physical_device)
        };
        let seen: Vec<_> = families
            .iter()
            .map(|family| (family.queue_count, family.timestamp_valid_bits))
            .collect();
        assert_eq!(seen, [(3, 64), (1, 36), (1, 0)]);
        gpu.destroy();
    };
    let variables = [("FAKE_VK_QUEUES", "CT:3,T36:1,C0:1")];
    child::run(&variables, scenario, |outcome| outcome.assert_clean());
}

/// The second queue's work waits, although it was submitted first.
#[test]
fn a_queue_waits_for_another() {
    let scenario = || {
        let gpu = Gpu::new();
        let mut kind =
            vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let info = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        let pool = gpu.pool(0);
        let buffers = [0, 1].map(|_| gpu.record(pool, |_| {}));
        unsafe {
            let semaphore = gpu
                .device
                .create_semaphore(&info, None)
                .expect("a semaphore");
            let reached = [vk::SemaphoreSubmitInfo::default()
                .semaphore(semaphore)
                .value(3)];
            let work = buffers
                .map(|buffer| [vk::CommandBufferSubmitInfo::default().command_buffer(buffer)]);
            let waiting = vk::SubmitInfo2::default()
                .wait_semaphore_infos(&reached)
                .command_buffer_infos(&work[0]);
            gpu.device
                .queue_submit2(gpu.queue(0, 1), &[waiting], vk::Fence::null())
                .expect("submitted");
            let signalling = vk::SubmitInfo2::default()
                .signal_semaphore_infos(&reached)
                .command_buffer_infos(&work[1]);
            gpu.device
                .queue_submit2(gpu.queue(0, 0), &[signalling], vk::Fence::null())
                .expect("submitted");
            gpu.device.device_wait_idle().expect("idle");
            assert_eq!(gpu.device.get_semaphore_counter_value(semaphore), Ok(3));
            gpu.device.destroy_semaphore(semaphore, None);
            gpu.device.destroy_command_pool(pool, None);
        }
        gpu.destroy();
    };
    child::run(&[], scenario, |outcome| {
        outcome.assert_clean();
        let submissions = outcome.of_kind("submission");
        let of_queue = |index| {
            submissions
                .iter()
                .find(|line| line.number("queue_index") == index)
        };
        let (Some(first), Some(second)) = (of_queue(0), of_queue(1)) else {
            panic!("two submissions")
        };
        assert!(second.number("submitted_ns") < first.number("submitted_ns"));
        assert_eq!(second.number("start_ns"), first.number("end_ns"));
    });
}
