//! The store that machines share: a PostgreSQL database, tables in its schema `convoke`.

mod fault;
mod link;
mod marks;
mod ops;
mod schema;
mod shared;
mod store;

pub(crate) use store::Postgres;
