//! What the layer that records and the layer that captures have in common: the loader's interface, the arguments that programs
//! pass, and maps by handle.

pub mod arguments;
pub mod handles;
pub mod loader;
