//! Bytes bound: what dispatches may read and write through their bindings.
