//! The session as somebody sees and leads it: pictures at every size, keys, and that nothing raw gets through.

mod keys;
mod news;
mod pictures;
mod play;
mod raw;
