//! Input made up for measurements and tests, the same from the same seed.

pub mod tables;
