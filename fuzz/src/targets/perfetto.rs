//! Perfetto's traces: packets of protobuf.

use super::{imported, wire};
use crate::Target;
use crate::bytes::{self, Any};
use fastrand::Rng;
use gapscope_import::perfetto;

/// The target.
pub const TARGET: Target = Target {
    name: "perfetto",
    read: |input| imported::import(&perfetto::IMPORTER, input),
    mutate,
};

fn mutate(input: &mut Vec<u8>, rng: &mut Rng, any: Any<'_>) {
    match rng.u8(0..4) {
        0 => bytes::change_value(input, rng),
        1 | 2 => wire::change(input, rng),
        _ => any(input, rng),
    }
}
