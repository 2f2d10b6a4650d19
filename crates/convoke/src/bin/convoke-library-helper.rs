//! The helper as a program of its own, for embedders whose executable cannot call `helper_entry`, and for
//! tests.

fn main() {
    convoke::helper_entry();
}
