//! Tests the fusion of captures' kernels: chains are merged and run, and what is no chain is refused with its reason.

mod chains;
mod made;
mod random;
mod refused;
