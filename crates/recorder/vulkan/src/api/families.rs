//! Describes the queue families of a device: groups of queues with the same abilities. For each family it says by
//! which way the results of timestamps (queries that write the GPU's time) leave the GPU.

use ash::vk;

/// The way in which the results of timestamps leave the GPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The host resets the queries before each submission and asks the driver for results, so that nothing but
    /// timestamps is added to the program's command buffers. This takes host query reset, and a driver that answers
    /// without waiting.
    Asked,
    /// The command buffer resets the queries and copies the results to mapped memory of the layer. The copy waits for
    /// the last timestamp, so the device cannot start what follows before it has finished what came before.
    Copied,
    /// The family has no timestamps, or its results cannot be read.
    None,
}

/// A queue family, as timing needs to know it.
#[derive(Clone, Copy)]
pub struct Family {
    pub flags: vk::QueueFlags,
    /// The number of queues that the device offers.
    pub queues: u32,
    /// The valid bits of a timestamp; 0 without timestamps.
    pub timestamp_bits: u32,
    pub delivery: Delivery,
}

impl Family {
    /// Returns whether command buffers of the family can reset queries.
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

    /// Returns whether some family has this delivery.
    pub fn have(&self, delivery: Delivery) -> bool {
        self.0.iter().any(|family| family.delivery == delivery)
    }

    /// Returns whether the device has only one queue.
    pub fn have_one_queue(&self) -> bool {
        self.0.iter().map(|family| family.queues).sum::<u32>() == 1
    }
}
