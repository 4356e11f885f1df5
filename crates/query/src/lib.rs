//! SQL over one trace or many.
