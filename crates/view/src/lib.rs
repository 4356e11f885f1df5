//! A trace as a page in the browser, served on loopback.
