//! Reads nvtxEventAttributes_t, the structure with the text, category and payload of a label.

use super::payload::PayloadData;
use super::text::Text;
use gapscope_spool::event::Payload;
use std::ffi::c_void;

/// nvtxEventAttributes_v2
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Attributes {
    version: u16,
    bytes: u16,
    /// The program's number of a category; 0 for none.
    pub category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    /// The length of the array of payloads, where there is one.
    reserved: i32,
    /// The bits of the number, or the address of the array of payloads.
    payload: u64,
    message_type: i32,
    message: *const c_void,
}

/// NVTX_PAYLOAD_TYPE_EXT: the payload is an array, and `reserved` its length.
const PAYLOADS: i32 = 0xdfbd_0009_u32 as i32;
/// The size of the first version, with category, colour, payload and message. Later versions only append.
const LEAST_BYTES: u16 = 48;

impl Default for Attributes {
    /// Returns attributes that say nothing.
    fn default() -> Self {
        Attributes {
            version: 0,
            bytes: LEAST_BYTES,
            category: 0,
            color_type: 0,
            color: 0,
            payload_type: 0,
            reserved: 0,
            payload: 0,
            message_type: 0,
            message: std::ptr::null(),
        }
    }
}

impl Attributes {
    /// Reads attributes, if they are of a known size.
    ///
    /// # Safety
    /// `at` is null or points to attributes of the program.
    pub unsafe fn at(at: *const c_void) -> Option<Attributes> {
        if at.is_null() {
            return None;
        }
        // SAFETY: as the caller promises; the first four bytes say how many there are.
        unsafe {
            let bytes = at.cast::<u16>().add(1).read_unaligned();
            (bytes >= LEAST_BYTES).then(|| at.cast::<Attributes>().read_unaligned())
        }
    }

    /// Returns the message.
    ///
    /// # Safety
    /// The attributes are the program's own, and it waits while the text is used.
    pub unsafe fn text<'a>(&self) -> Text<'a> {
        // SAFETY: as the caller promises.
        unsafe { Text::message(self.message_type, self.message) }
    }

    /// Returns the number that the label carries, by its nvtxPayloadType_t: 1 to 3 have 64 bits, 4 to 6 have 32;
    /// `None` for none.
    pub fn payload(&self) -> Option<Payload> {
        let low = self.payload as u32;
        match self.payload_type {
            1 => Some(Payload::Unsigned(self.payload)),
            2 => Some(Payload::Signed(self.payload as i64)),
            3 => Some(Payload::Float(f64::from_bits(self.payload))),
            4 => Some(Payload::Unsigned(low.into())),
            5 => Some(Payload::Signed((low as i32).into())),
            6 => Some(Payload::Float(f32::from_bits(low).into())),
            _ => None,
        }
    }

    /// Returns the payloads of the payload extension.
    ///
    /// # Safety
    /// As for [`Self::text`].
    pub unsafe fn payloads<'a>(&self) -> &'a [PayloadData] {
        if self.payload_type != PAYLOADS {
            return &[];
        }
        // SAFETY: as the caller promises; the extension keeps address and length here.
        unsafe { PayloadData::all(self.payload as *const PayloadData, self.reserved as usize) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_attributes_are_laid_out_as_in_nvtoolsext_h() {
        let offsets = [
            offset_of!(Attributes, category),
            offset_of!(Attributes, color),
            offset_of!(Attributes, payload_type),
            offset_of!(Attributes, payload),
            offset_of!(Attributes, message_type),
            offset_of!(Attributes, message),
            size_of::<Attributes>(),
        ];
        assert_eq!(offsets, [4, 12, 16, 24, 32, 40, 48]);
    }

    #[test]
    fn each_type_of_payload_keeps_its_value() {
        let attributes = |payload_type, payload| Attributes {
            payload_type,
            payload,
            ..Attributes::default()
        };
        // The upper half of a 32-bit payload is undefined.
        let dirty = |low: u32| 0xdead_beef_0000_0000 | u64::from(low);
        for (kind, bits, payload) in [
            (0, 7, None),
            (1, u64::MAX, Some(Payload::Unsigned(u64::MAX))),
            (2, -5i64 as u64, Some(Payload::Signed(-5))),
            (3, 1.5f64.to_bits(), Some(Payload::Float(1.5))),
            (4, dirty(9), Some(Payload::Unsigned(9))),
            (5, dirty(-9i32 as u32), Some(Payload::Signed(-9))),
            (6, dirty(0.5f32.to_bits()), Some(Payload::Float(0.5))),
        ] {
            assert_eq!(attributes(kind, bits).payload(), payload);
        }
    }
}
