//! The helper as a program of its own, for programs that cannot re-execute themselves, and for tests.

fn main() {
    convoke_runtime::helper_entry();
}
