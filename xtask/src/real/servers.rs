//! Servers, and what drives them.

mod etcd;
mod gateways;
pub mod instruments;
mod mariadb;
mod memcached;
mod nginx;
mod pools;
pub mod postgres;
mod proxies;
mod python;
pub mod redis;
mod sqlite;
mod sysbench;

use super::case::Case;
pub use instruments::{attach_wall, strace_wall};

/// All of them, in the table's order.
pub const ALL: &[&Case] = &[
    &postgres::HOT_ROW,
    &postgres::HOT_WORK,
    &postgres::IDLE_TRANSACTION,
    &postgres::GROUP_COMMIT,
    &postgres::ADVISORY,
    &postgres::TABLE_LOCK,
    &proxies::PGBOUNCER,
    &mariadb::COMMIT,
    &mariadb::METADATA,
    &sqlite::WRITERS,
    &sqlite::FSYNC,
    &redis::KEYS_COMMAND,
    &redis::FSYNC,
    &sysbench::THREADS,
    &sysbench::MUTEX,
    &nginx::ONE_WORKER,
    &nginx::SLOW_BACKEND,
    &proxies::VARNISH,
    &proxies::HAPROXY,
    &memcached::ONE_THREAD,
    &etcd::PUTS,
    &python::GIL,
    &gateways::PHP,
    &gateways::WSGI,
    &gateways::PUMA,
    &pools::EXECUTOR,
    &pools::CONNECTIONS,
];
