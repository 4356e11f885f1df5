//! Recording Metal programs on macOS.
