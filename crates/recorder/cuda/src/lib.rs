//! The library that the CUDA driver loads into a program.
