//! Hooks the creation, binding and destruction of device memory and buffers, and tells the layer through
//! [`ObjectHooks`](crate::layer::ObjectHooks), which may change a buffer; where the driver refuses the changed one,
//! the program's is made. A body runs `before`, `after` (after success) or `around` the call of the next layer.

use ash::vk;

use super::Allocator;
use crate::arguments::slice;
use crate::device_hooks;
use crate::layer::TimedCall;

device_hooks! {
    [L: ObjectHooks]

    fn allocate_memory(
        handle: vk::Device,
        info: *const vk::MemoryAllocateInfo<'_>,
        allocator: Allocator<'_>,
        out: *mut vk::DeviceMemory,
    ) -> vk::Result = around |device, call| {
        let timer = device.start_timer();
        let result = call(handle, info, allocator, out);
        L::guard(|| {
            let bytes = Some((*info).allocation_size);
            device.finish_timer(timer, TimedCall::AllocateMemory, result, bytes);
            if result == vk::Result::SUCCESS {
                device.add_memory(*out, &*info);
            }
        });
        result
    };

    fn free_memory(handle: vk::Device, memory: vk::DeviceMemory, allocator: Allocator<'_>) = around |device, call| {
        let timer = device.start_timer();
        L::guard(|| device.remove_memory(memory));
        call(handle, memory, allocator);
        L::guard(|| device.finish_timer(timer, TimedCall::FreeMemory, vk::Result::SUCCESS, None));
    };

    fn create_buffer(
        handle: vk::Device,
        info: *const vk::BufferCreateInfo<'_>,
        allocator: Allocator<'_>,
        out: *mut vk::Buffer,
    ) -> vk::Result = around |device, call| {
        let changed = L::guard(|| device.change_buffer(&*info)).flatten();
        let is_changed = changed
            .is_some_and(|changed| call(handle, &changed, allocator, out) == vk::Result::SUCCESS);
        let result = match is_changed {
            true => vk::Result::SUCCESS,
            false => call(handle, info, allocator, out),
        };
        if result == vk::Result::SUCCESS {
            L::guard(|| device.add_buffer(*out, &*info, is_changed));
        }
        result
    };

    fn destroy_buffer(handle: vk::Device, buffer: vk::Buffer, allocator: Allocator<'_>) =
        before |device| device.remove_buffer(buffer);

    fn bind_buffer_memory(
        handle: vk::Device,
        buffer: vk::Buffer,
        memory: vk::DeviceMemory,
        offset: u64,
    ) -> vk::Result = after |device| device.bind_buffer(buffer, memory, offset);

    fn bind_buffer_memory2(
        handle: vk::Device,
        count: u32,
        infos: *const vk::BindBufferMemoryInfo<'_>,
    ) -> vk::Result = after |device| for info in slice(infos, count) {
        device.bind_buffer(info.buffer, info.memory, info.memory_offset);
    };
}
