//! Tests the dependencies of captures that the tests write, the kernels' footprints that they rest on, and that modules of
//! real programs, damaged ones also, are evaluated.

mod cuda;
mod footprints;
mod hostile;
mod left_out;
mod modules;
mod program;
mod windows;
