//! How a policy becomes walls. Decisions are pure (`plan`, `grants`, `filter`), looking is apart from them
//! (`places`), and the doing is in two moments: `stage` starts bubblewrap around the helper, `lock` is what
//! the helper does to itself.

mod apart;
mod beneath;
mod compute;
mod filter;
mod git;
mod grants;
mod guard;
mod links;
mod lock;
mod mounts;
mod overlay;
mod own_git;
mod places;
mod plan;
mod stage;

pub(crate) use self::apart::{apart, become_template, enter_apart};
pub(crate) use self::compute::{allow_computing, rule_everything_out};
pub(crate) use self::filter::program_filters;
pub(crate) use self::grants::{Grant, Marks, grants};
pub(crate) use self::guard::Guard;
pub use self::guard::named_by_git;
pub(crate) use self::lock::{Sent, part, shut, unlinked};
pub(crate) use self::mounts::{listed, views};
pub(crate) use self::own_git::{KEPT, programs as own_programs, with_more};
pub(crate) use self::places::{hidden_home, look};
pub(crate) use self::stage::{Inner, enter_landlock, find_bubblewrap, read_inner, start_namespaces};
