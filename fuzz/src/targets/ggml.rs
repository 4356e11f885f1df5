//! Logs of ggml's Vulkan backend: lines of text.

use super::imported;
use crate::Target;
use crate::bytes::{self, Any};
use fastrand::Rng;
use gapscope_import::ggml;

/// The target.
pub const TARGET: Target = Target {
    name: "ggml",
    read: |input| imported::import(&ggml::IMPORTER, input),
    mutate,
};

fn mutate(input: &mut Vec<u8>, rng: &mut Rng, any: Any<'_>) {
    match rng.u8(0..4) {
        0 => bytes::change_value(input, rng),
        1 | 2 => bytes::change_lines(input, rng),
        _ => any(input, rng),
    }
}
