//! Reads the captures that the environment asks for: the path, and which units of work (steps, tokens, frames) are
//! captured.

use super::{Destination, NotCaptured};
use crate::environment::mlx_variables;
use std::env;

/// The variables that ask for a capture and hold its path. The first one that is set counts; an empty one is not set.
///
/// ```
/// # use gapscope_sdk::capture::CAPTURE_VARIABLES;
/// assert_eq!(CAPTURE_VARIABLES, ["GAPSCOPE_CAPTURE", "MLX_METAL_CAPTURE"]);
/// ```
pub const CAPTURE_VARIABLES: [&str; 2] = ["GAPSCOPE_CAPTURE", mlx_variables::METAL_CAPTURE];

/// The variable with the number of units of work before the capture. Default: 0.
///
/// ```
/// assert_eq!(gapscope_sdk::capture::SKIP_VARIABLE, "GAPSCOPE_CAPTURE_SKIP");
/// ```
pub const SKIP_VARIABLE: &str = "GAPSCOPE_CAPTURE_SKIP";

/// The variable with the number of units of work in the capture. Default: 1.
///
/// ```
/// assert_eq!(gapscope_sdk::capture::TAKE_VARIABLE, "GAPSCOPE_CAPTURE_TAKE");
/// ```
pub const TAKE_VARIABLE: &str = "GAPSCOPE_CAPTURE_TAKE";

/// Returns the capture that the environment asks for, which is read anew at each call. On Metal, Apple's own gate
/// (`MTL_CAPTURE_ENABLED=1`, on older systems `METAL_CAPTURE_ENABLED=1`) must be open as well.
///
/// # Errors
/// [`NotCaptured::NotRequested`].
///
/// ```
/// # use gapscope_sdk::capture::{NotCaptured, requested};
/// // Without GAPSCOPE_CAPTURE and MLX_METAL_CAPTURE:
/// assert_eq!(requested(), Err(NotCaptured::NotRequested));
/// ```
pub fn requested() -> Result<Destination, NotCaptured> {
    CAPTURE_VARIABLES
        .iter()
        .find_map(|variable| env::var_os(variable).filter(|path| !path.is_empty()))
        .map(|path| Destination::File(path.into()))
        .ok_or(NotCaptured::NotRequested)
}

/// The numbers of units of work that the environment asks for: those before the capture, and those in it.
pub(super) struct Units {
    pub skip: u64,
    pub take: u64,
}

/// Reads the units; an unset variable has its default.
///
/// # Errors
/// [`NotCaptured::BadVariable`].
pub(super) fn units() -> Result<Units, NotCaptured> {
    Ok(Units {
        skip: count(SKIP_VARIABLE, 0, 0, "a whole number of units, 0 or more")?,
        take: count(TAKE_VARIABLE, 1, 1, "a whole number of units, 1 or more")?,
    })
}

/// Reads a whole number of at least `least`; `expected` describes valid values in the error.
fn count(
    variable: &'static str,
    default: u64,
    least: u64,
    expected: &'static str,
) -> Result<u64, NotCaptured> {
    let Some(value) = env::var_os(variable).filter(|value| !value.is_empty()) else {
        return Ok(default);
    };
    let value = value.to_string_lossy().into_owned();
    match value.trim().parse() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(NotCaptured::BadVariable {
            variable,
            value,
            expected,
        }),
    }
}
