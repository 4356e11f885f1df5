//! Encodes events of hooks (gapscope's libraries in a program) as bytes (postcard, a compact binary form of serde),
//! and decodes them. The group of an event (common, Vulkan or CUDA) is in the record's header and takes no byte here.

use super::{CommonEvent, CudaEvent, Event, VulkanEvent};
use serde::Serialize;

/// A type of events that can be written to the spool (the hooks' log): those of every hook, of Vulkan or of CUDA.
pub trait EventGroup: Serialize {
    /// The number of the group in records.
    const GROUP: u32;

    /// Writes the event at the start of `space` and returns its length, or `None` when it does not fit.
    #[inline]
    fn encode(&self, space: &mut [u8]) -> Option<usize> {
        postcard::to_slice(self, space).ok().map(|used| used.len())
    }

    /// Returns the length that [`Self::encode`] needs.
    fn encoded_bytes(&self) -> Option<usize> {
        postcard::experimental::serialized_size(self).ok()
    }
}

impl EventGroup for CommonEvent<'_> {
    const GROUP: u32 = 1;
}

impl EventGroup for VulkanEvent<'_> {
    const GROUP: u32 = 2;
}

impl EventGroup for CudaEvent<'_> {
    const GROUP: u32 = 3;
}

impl Event<'_> {
    /// Decodes an event of a group from its bytes; `None` for an unknown group or damaged bytes.
    pub fn decode(group: u32, bytes: &[u8]) -> Option<Event<'_>> {
        match group {
            CommonEvent::GROUP => postcard::from_bytes(bytes).ok().map(Event::Common),
            VulkanEvent::GROUP => postcard::from_bytes(bytes).ok().map(Event::Vulkan),
            CudaEvent::GROUP => postcard::from_bytes(bytes).ok().map(Event::Cuda),
            _ => None,
        }
    }
}
