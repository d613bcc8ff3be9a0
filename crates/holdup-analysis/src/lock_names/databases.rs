//! Locks of databases.

use crate::known::Known;

const ROWS: &str = "Make the transactions that take this lock shorter, or let fewer of them touch the same rows.";

/// What PostgreSQL waits for with its locks.
const OF_POSTGRES: &[Known] = &[
    Known::of_runtime(
        "a row lock of PostgreSQL",
        ROWS,
        &["XactLockTableWait", "heap_lock_tuple", "heap_acquire_tuplock"],
    ),
    Known::of_runtime(
        "the lock that lets one transaction with NOTIFY commit at a time",
        "Notify less often (once for several changes, or from one session), or let who waits for it look at a table now and then.",
        &["PreCommit_Notify"],
    ),
    Known::of_runtime(
        "an advisory lock of PostgreSQL",
        "Keep it for less (pg_advisory_unlock as soon as the work is done, pg_advisory_xact_lock in short transactions), have one for each thing that \
         is worked on, or go on without it (pg_try_advisory_lock).",
        &[
            "pg_advisory_lock_int8",
            "pg_advisory_lock_int4",
            "pg_advisory_lock_shared_int8",
            "pg_advisory_lock_shared_int4",
            "pg_advisory_xact_lock_int8",
            "pg_advisory_xact_lock_int4",
            "pg_advisory_xact_lock_shared_int8",
            "pg_advisory_xact_lock_shared_int4",
        ],
    ),
    Known::of_runtime(
        "the lock on making a table or an index longer",
        "Write in larger batches (COPY, rows of many values), or to several tables or partitions at a time.",
        &["LockRelationForExtension"],
    ),
    Known::of_runtime(
        "a table lock of PostgreSQL",
        "See who has it (pg_locks, pg_blocking_pids) and let that transaction end; change tables with a lock_timeout, and in short transactions: all \
         who come behind a change that waits, wait, too. CREATE INDEX CONCURRENTLY lets others write.",
        &["LockRelationOid", "LockRelation"],
    ),
];

/// The table.
pub(super) const LOCKS: &[Known] = &[
    Known::of_runtime(
        "one of PostgreSQL's lightweight locks (LWLock)",
        "pg_stat_activity names it (wait_event); fewer connections at work at once (a pooler), or batches in {}, relieve it.",
        &["LWLockAcquire", "LWLockAcquireOrWait", "LWLockWaitForVar"],
    ),
    Known {
        within: OF_POSTGRES,
        ..Known::of_runtime("a row or table lock of PostgreSQL", ROWS, &["ProcSleep", "WaitOnLock"])
    },
    Known::of_runtime(
        "SQLite's lock on the database file",
        "One at a time can write: keep write transactions short, or write through one connection.",
        &["sqliteDefaultBusyCallback", "sqlite3InvokeBusyHandler"],
    ),
    Known::of_runtime(
        "the lock on writing to LMDB",
        "One at a time can write: keep write transactions short, with what {} does besides before them, or write through one thread.",
        &["mdb_txn_renew0"],
    ),
    Known::of_runtime(
        "room for new rows in RocksDB or LevelDB (a write stall)",
        "Rows come faster than compaction takes them: give it more threads (max_background_jobs), allow more and larger write buffers \
         (write_buffer_size, max_write_buffer_number) and more files before it slows writers down (level0_slowdown_writes_trigger), or \
         write less in {}.",
        &["rocksdb::DBImpl::DelayWrite", "leveldb::DBImpl::MakeRoomForWrite"],
    ),
    Known::of_runtime(
        "a table lock of MariaDB or MySQL",
        "MyISAM, Aria and MEMORY lock whole tables, and LOCK TABLES does so of any: let the table be InnoDB's (ALTER TABLE … ENGINE=InnoDB), or make \
         the statements that read or write it shorter.",
        &["thr_multi_lock"],
    ),
    Known::of_runtime(
        "a metadata lock of MariaDB or MySQL",
        "See whose transaction or statement uses the table (information_schema.innodb_trx, the plugin metadata_lock_info) and end it; change tables \
         when nobody does, and give that a time-out (lock_wait_timeout): all who come behind it wait, too.",
        &["MDL_context::acquire_lock", "MDL_context::upgrade_shared_lock"],
    ),
    Known::of_runtime("a row lock of InnoDB", ROWS, &["lock_wait_suspend_thread", "lock_wait"]),
    Known::of_runtime(
        "a latch of InnoDB",
        "Let fewer threads work on the same pages and indexes at once.",
        &["sync_array_wait_event"],
    ),
];
