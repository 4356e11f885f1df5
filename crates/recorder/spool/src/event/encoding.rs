//! Events as bytes.

use super::Event;

impl Event<'_> {
    /// Writes the event at the start of `space`; gives its length, or `None` when it does not fit.
    pub fn encode(&self, space: &mut [u8]) -> Option<usize> {
        postcard::to_slice(self, space).ok().map(|used| used.len())
    }

    /// The length that [`Self::encode`] needs.
    pub fn encoded_bytes(&self) -> Option<usize> {
        postcard::experimental::serialized_size(self).ok()
    }

    /// Reads an event that [`Self::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Option<Event<'_>> {
        postcard::from_bytes(bytes).ok()
    }
}
