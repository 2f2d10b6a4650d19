//! The session as a person sees and leads it: pictures at every size, keys, and no raw text on the terminal.

mod keys;
mod news;
mod pictures;
mod play;
mod raw;
