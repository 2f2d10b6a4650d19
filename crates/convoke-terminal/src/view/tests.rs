//! One sample fleet, drawn at every size and led by keys.

mod asking;
mod keys;
mod pictures;
mod sample;
mod sizes;
