//! Encodes events as bytes. A record's header holds the group of its event, which thus costs no byte.

use super::{CommonEvent, CudaEvent, Event, VulkanEvent};
use serde::Serialize;

/// A group of events that hooks write.
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
    /// Decodes an event that [`EventGroup::encode`] wrote.
    pub fn decode(group: u32, bytes: &[u8]) -> Option<Event<'_>> {
        match group {
            CommonEvent::GROUP => postcard::from_bytes(bytes).ok().map(Event::Common),
            VulkanEvent::GROUP => postcard::from_bytes(bytes).ok().map(Event::Vulkan),
            CudaEvent::GROUP => postcard::from_bytes(bytes).ok().map(Event::Cuda),
            _ => None,
        }
    }
}
