//! Queue families, and how timestamps leave the GPU in each.

use ash::vk;

/// How results of a queue family leave the GPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The host resets the queries before each submission and asks the driver for results: nothing but timestamps is
    /// added to the program's command buffers. Needs host query reset, and a driver that answers without waiting.
    Asked,
    /// Reset and copied to mapped memory of ours inside the command buffer. The copy waits for the last timestamp, so
    /// the device cannot start what follows before it has finished what came before.
    Copied,
    /// The family has no timestamps, or no way to get at them.
    None,
}

/// A queue family.
#[derive(Clone, Copy)]
pub struct Family {
    pub flags: vk::QueueFlags,
    pub queues: u32,
    pub timestamp_bits: u32,
    pub delivery: Delivery,
}

impl Family {
    /// Queries can be reset in its command buffers.
    pub fn resets_queries(&self) -> bool {
        self.flags
            .intersects(vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE)
    }
}

/// The queue families of a device.
pub struct Families(pub Vec<Family>);

impl Families {
    pub fn get(&self, index: u32) -> Option<&Family> {
        self.0.get(index as usize)
    }

    /// Results of some family are delivered this way.
    pub fn have(&self, delivery: Delivery) -> bool {
        self.0.iter().any(|family| family.delivery == delivery)
    }

    /// The device has no second queue.
    pub fn have_one_queue(&self) -> bool {
        self.0.iter().map(|family| family.queues).sum::<u32>() == 1
    }
}
