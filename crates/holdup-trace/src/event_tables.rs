//! The list of the event tables. What is in it is filled, kept in a trace, written, read, counted and described.

use crate::filler::Filler;
use crate::tables::*;
use crate::{Result, Store, Table, TableDoc};

/// Makes fillers, by how long a table may become.
pub(crate) trait MakeFillers {
    /// One for a table that grows with the trace's length.
    fn large<T: Table>(&self) -> Result<Filler<T>>;
    /// One for a table that always fits in memory.
    fn small<T: Table>(&self) -> Result<Filler<T>>;
}

/// Gives stored tables by their names.
pub(crate) trait ReadTables {
    /// The table `T`.
    fn read<T: Table>(&self) -> Result<Store<T>>;
}

/// Takes tables one after the other: see [`Trace::tables`](crate::Trace::tables).
pub trait TakeTables {
    /// What goes wrong; reading a stored table can.
    type Error: From<crate::Error>;

    /// Takes the event table `T`.
    ///
    /// # Errors
    /// Where it cannot be read, or be put where it goes.
    fn events<T: Table>(&mut self, rows: &Store<T>) -> Result<(), Self::Error>;

    /// Takes the dictionary `T`, which is in memory. Ids of other columns name its rows, where they do, from the number `first` on.
    ///
    /// # Errors
    /// Where it cannot be put where it goes.
    fn dictionary<T: Table>(&mut self, rows: &T, first: Option<u32>) -> Result<(), Self::Error>;
}

macro_rules! event_tables {
    ($($(#[doc = $doc:literal])+ $size:ident $field:ident: $table:ident,)+) => {
        /// The rows of a trace, by table. Rows of each table are in time order.
        #[derive(Debug, Clone, Default)]
        pub struct EventTables { $($(#[doc = $doc])+ pub $field: Store<$table>,)+ }

        /// The same tables while they are filled row by row.
        pub(crate) struct Fillers { $(pub $field: Filler<$table>,)+ }

        impl Fillers {
            /// Empty ones.
            pub fn new(from: &impl MakeFillers) -> Result<Self> {
                Ok(Fillers { $($field: from.$size()?,)+ })
            }

            /// The filled tables.
            pub fn finish(self) -> Result<EventTables> {
                Ok(EventTables { $($field: self.$field.finish()?,)+ })
            }
        }

        impl EventTables {
            /// Reads each table.
            pub(crate) fn read(from: &impl ReadTables) -> Result<Self> {
                Ok(EventTables { $($field: from.read()?,)+ })
            }

            /// Hands over each table.
            pub(crate) fn take<W: TakeTables>(&self, to: &mut W) -> Result<(), W::Error> {
                $(to.events(&self.$field)?;)+
                Ok(())
            }

            /// Brings all rows into memory.
            pub(crate) fn load(&mut self) -> Result<()> {
                $(self.$field.bring()?;)+
                Ok(())
            }

            /// Shows `to` the ids in all tables, which are in memory.
            pub(crate) fn refer(&mut self, to: &mut dyn crate::Refer) {
                $(self.$field.refer(to);)+
            }

            /// Name and number of rows of each table.
            pub(crate) fn row_counts(&self) -> Vec<(&'static str, u64)> {
                vec![$(($table::NAME, self.$field.rows()),)+]
            }

            /// What each table is about.
            pub(crate) fn docs() -> Vec<TableDoc> {
                vec![$(TableDoc::of::<$table>(),)+]
            }
        }
    };
}

event_tables! {
    /// Context switches.
    large switches: Switches,
    /// Wake-ups.
    large wakes: Wakes,
    /// Waits with stacks or locks.
    large waits: Waits,
    /// CPU samples.
    large samples: Samples,
    /// Futex waits.
    large futexes: Futexes,
    /// Contention on kernel locks.
    large kernel_locks: KernelLocks,
    /// Block I/O.
    large block_ios: BlockIos,
    /// Changes of thread names.
    large thread_names: ThreadNames,
    /// Which processes are servers.
    small listeners: Listeners,
    /// What processes work on.
    small subjects: Subjects,
    /// Threads that waited all the time.
    small standing_waits: StandingWaits,
    /// Where and how threads may run.
    large placements: Placements,
    /// Units of work.
    large spans: Spans,
    /// Limits of control groups.
    small quotas: Quotas,
    /// Mapped files.
    small images: Images,
    /// What is missing.
    small losses: Losses,
}

/// What each table of a trace is about: the event tables, then the dictionaries.
pub fn table_docs() -> Vec<TableDoc> {
    let dictionaries = [
        TableDoc::of::<Threads>(),
        TableDoc::of::<Locks>(),
        TableDoc::of::<StackNodes>(),
        TableDoc::of::<Frames>(),
        TableDoc::of::<Locations>(),
        TableDoc::of::<Codes>(),
        TableDoc::of::<Lines>(),
    ];
    [EventTables::docs(), dictionaries.into()].concat()
}
