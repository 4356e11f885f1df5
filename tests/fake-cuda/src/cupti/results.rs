//! The values of `CUptiResult` that the stub returns.

use std::ffi::c_int;

pub const SUCCESS: c_int = 0;
pub const INVALID_PARAMETER: c_int = 1;
pub const INVALID_OPERATION: c_int = 7;
pub const OUT_OF_MEMORY: c_int = 8;
pub const MAX_LIMIT_REACHED: c_int = 12;
pub const NOT_INITIALIZED: c_int = 15;
pub const INVALID_KIND: c_int = 21;
pub const HARDWARE_BUSY: c_int = 26;
pub const NOT_SUPPORTED: c_int = 27;
pub const INSUFFICIENT_PRIVILEGES: c_int = 35;
pub const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: c_int = 39;
pub const MIG_DEVICE_NOT_SUPPORTED: c_int = 43;
pub const INVALID_CHIP_NAME: c_int = 46;
pub const UNKNOWN: c_int = 999;
