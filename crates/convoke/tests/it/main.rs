//! The library as an embedder uses it: sessions against the built-in model, the examples' text, the public
//! surface.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod note;
mod page;
mod roles;
mod sessions;
mod surface;
mod tools;
