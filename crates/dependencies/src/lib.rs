//! What each dispatch of a capture reads and writes, and what depends on what.
