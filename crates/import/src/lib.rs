//! The files of other tools as traces.
