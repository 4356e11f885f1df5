//! A stub of libcuda and libcupti, for tests on machines without CUDA.
