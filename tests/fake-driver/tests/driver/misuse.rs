//! Tests that each misuse of the API is reported, by the driver's log of misuses.

use ash::vk;

use crate::child;
use crate::gpu::Gpu;

#[test]
fn a_pending_command_buffer_is_busy() {
    let scenario = || {
        let gpu = Gpu::new();
        let (pool, queue, kernel, queries) = (
            gpu.pool(0),
            gpu.queue(0, 0),
            gpu.kernel(),
            gpu.timestamps(1),
        );
        let buffer = gpu.record(pool, |buffer| unsafe {
            gpu.device.cmd_reset_query_pool(buffer, queries, 0, 1);
            gpu.device
                .cmd_bind_pipeline(buffer, vk::PipelineBindPoint::COMPUTE, kernel.pipeline);
            gpu.device.cmd_dispatch(buffer, 1, 1, 1);
        });
        gpu.submit(queue, buffer).expect("submitted");
        gpu.submit(queue, buffer).expect("submitted");
        unsafe {
            gpu.device.reset_query_pool(queries, 0, 1);
            gpu.device.destroy_query_pool(queries, None);
            gpu.device.queue_wait_idle(queue).expect("idle");
            gpu.device.destroy_command_pool(pool, None);
        }
        gpu.destroy_kernel(kernel);
        gpu.destroy();
    };
    let variables = [("FAKE_VK_DISPATCH_NS", "200000000")];
    child::run(&variables, scenario, |outcome| {
        outcome.assert_misuse(&[
            "vkQueueSubmit: a command buffer is not complete and not for simultaneous use",
            "vkResetQueryPool: a submitted command buffer uses queries of 0+1",
            "vkDestroyQueryPool: QUERY_POOL",
        ]);
    });
}

#[test]
fn queries_are_reset_written_and_then_read() {
    let scenario = || {
        let gpu = Gpu::with_host_query_reset(false);
        let (queries, results) = (gpu.timestamps(2), gpu.buffer(64));
        gpu.execute(2, |buffer| unsafe {
            // Family 2 can only transfer.
            gpu.device.cmd_reset_query_pool(buffer, queries, 0, 2);
        });
        gpu.execute(3, |buffer| unsafe {
            // Family 3 has no timestamps.
            let bottom = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
            gpu.device.cmd_write_timestamp(buffer, bottom, queries, 0);
        });
        gpu.execute(0, |buffer| unsafe {
            let bottom = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
            gpu.device.cmd_write_timestamp(buffer, bottom, queries, 0);
            gpu.device.cmd_reset_query_pool(buffer, queries, 1, 1);
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
        unsafe {
            gpu.device.reset_query_pool(queries, 0, 2);
            gpu.device.destroy_query_pool(queries, None);
        }
        gpu.destroy_buffer(results);
        gpu.destroy();
    };
    child::run(&[], scenario, |outcome| {
        outcome.assert_misuse(&[
            "vkCmdResetQueryPool: not on queue family 2 (TRANSFER)",
            "vkCmdWriteTimestamp: queue family 3 has no timestamps",
            "vkCmdWriteTimestamp: a query is written that was not reset",
            "vkCmdCopyQueryPoolResults: it would wait forever",
            "vkResetQueryPool: the device was created without the feature hostQueryReset",
        ]);
    });
}

#[test]
fn objects_are_used_between_creation_and_destruction() {
    let scenario = || {
        let gpu = Gpu::new();
        let (kept, freed) = (gpu.buffer(64), gpu.buffer(64));
        gpu.map(&kept);
        gpu.map(&kept);
        unsafe {
            gpu.device.destroy_buffer(freed.buffer, None);
            gpu.device.destroy_buffer(freed.buffer, None);
            gpu.device.free_memory(freed.memory, None);
            gpu.device.destroy_buffer(kept.buffer, None);
        }
        gpu.destroy();
    };
    child::run(&[], scenario, |outcome| {
        outcome.assert_misuse(&[
            "vkMapMemory: the memory is already mapped",
            "vkDestroyBuffer: BUFFER",
            "vkDestroyDevice: DEVICE_MEMORY",
        ]);
    });
}

#[test]
fn threads_do_not_share_a_command_pool() {
    let scenario = || {
        let gpu = Gpu::new();
        let (pool, kernel) = (gpu.pool(0), gpu.kernel());
        // The threads start together, and go on for longer than a turn on a busy machine's processor.
        let start = std::sync::Barrier::new(2);
        let record = |buffer| unsafe {
            gpu.device
                .cmd_bind_pipeline(buffer, vk::PipelineBindPoint::COMPUTE, kernel.pipeline);
            start.wait();
            for _ in 0..1_000_000 {
                gpu.device.cmd_dispatch(buffer, 1, 1, 1);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| gpu.record(pool, record));
            }
        });
        unsafe { gpu.device.destroy_command_pool(pool, None) };
        gpu.destroy_kernel(kernel);
        gpu.destroy();
    };
    child::run(&[], scenario, |outcome| {
        let shared = "another thread is using the same command pool";
        assert!(!outcome.misuse.is_empty());
        assert!(
            outcome.misuse.iter().all(|line| line.ends_with(shared)),
            "{:#?}",
            outcome.misuse
        );
    });
}

#[test]
fn a_variable_that_does_not_parse_is_reported() {
    let variables = [("FAKE_VK_QUEUES", "nonsense")];
    child::run(
        &variables,
        || Gpu::new().destroy(),
        |outcome| {
            outcome.assert_misuse(&["FAKE_VK_QUEUES: cannot read the value 'nonsense'"]);
        },
    );
}
