//! Tests captures that are written, read, cut and damaged, and the page that describes them.

mod any_capture;
mod cuda;
mod cuda_example;
mod damage;
mod example;
mod hostile;
mod kernel;
mod page;

mod round_trip;
