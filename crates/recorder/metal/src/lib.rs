//! Recording Metal programs on macOS.
#![forbid(unsafe_code)]
