//! Feature sections: what perf tells about the machine and its own command line.

use holdup_trace::Meta;
use rustc_hash::FxHashMap;

use super::attr::Attr;
use crate::bytes::{Cursor, text, u16_at, u32_at};
use crate::linux::tracing::{self, Formats};

/// Feature numbers, named as in perf's `header.h`.
mod feature {
    pub const TRACING_DATA: u64 = 1;
    pub const BUILD_ID: u64 = 2;
    pub const HOSTNAME: u64 = 3;
    pub const OSRELEASE: u64 = 4;
    pub const ARCH: u64 = 6;
    pub const NRCPUS: u64 = 7;
    pub const CPUDESC: u64 = 8;
    pub const CMDLINE: u64 = 11;
    pub const EVENT_DESC: u64 = 12;
}

/// A name that perf gives to an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventName {
    /// The event it belongs to, by what it is.
    pub attr: Attr,
    /// Its ids in samples.
    pub ids: Vec<u64>,
    /// The name.
    pub name: String,
}

/// What the feature sections say.
#[derive(Debug, Default)]
pub struct Features {
    /// Formats of the tracepoints.
    pub formats: Formats,
    /// Names of the events.
    pub names: Vec<EventName>,
    /// Build ids by path.
    pub build_ids: FxHashMap<String, Vec<u8>>,
}

impl Features {
    /// Takes in one feature; what is damaged or of no use here is left out.
    pub fn add(&mut self, number: u64, section: &[u8], meta: &mut Meta) {
        let mut c = Cursor::new(section);
        let line = |c: &mut Cursor| c.string().unwrap_or_default();
        match number {
            feature::TRACING_DATA => self.formats.extend(tracing::parse(section).unwrap_or_default()),
            feature::BUILD_ID => self.add_build_ids(section),
            feature::HOSTNAME => meta.host.name = line(&mut c),
            feature::OSRELEASE => meta.host.os = line(&mut c),
            feature::ARCH => meta.host.arch = line(&mut c),
            feature::CPUDESC => meta.host.cpu = line(&mut c),
            feature::NRCPUS => {
                if let (Some(_available), Some(online)) = (c.u32(), c.u32()) {
                    meta.cpus = u16::try_from(online).unwrap_or(0).min(crate::linux::cpus::MAX_CPUS);
                }
            }
            feature::CMDLINE => {
                let count = c.u32().unwrap_or(0);
                meta.command = (0..count).map_while(|_| c.string()).collect();
            }
            feature::EVENT_DESC => drop(self.add_event_names(&mut c)),
            _ => {}
        }
    }

    fn add_event_names(&mut self, c: &mut Cursor) -> Option<()> {
        let (count, attr_size) = (c.u32()?, c.u32()?);
        for _ in 0..count {
            let attr = Attr::parse(c.take(attr_size.into())?)?;
            let ids = c.u32()?;
            let name = c.string()?;
            let ids = c.take(u64::from(ids) * 8)?.chunks_exact(8).filter_map(|id| id.first_chunk());
            self.names.push(EventName { attr, ids: ids.map(|id| u64::from_le_bytes(*id)).collect(), name });
        }
        Some(())
    }

    fn add_build_ids(&mut self, mut section: &[u8]) {
        // Each is a record: header, pid, 20 bytes and padding, path.
        while let Some(size) = u16_at(section, 6).map(usize::from).filter(|&n| n > 8) {
            let Some((record, rest)) = section.split_at_checked(size) else { return };
            self.add_build_id(&record[8..], u16_at(record, 4).unwrap_or(0));
            section = rest;
        }
    }

    /// Takes in one `build_id_event` without its header.
    pub fn add_build_id(&mut self, body: &[u8], misc: u16) {
        const HAS_SIZE: u16 = 1 << 15;
        let Some((id, path)) = body.get(4..).and_then(|b| b.split_at_checked(24)) else { return };
        let size = if misc & HAS_SIZE != 0 { usize::from(id[20]).min(20) } else { 20 };
        if id[..size].iter().any(|&b| b != 0) {
            self.build_ids.insert(text(path), id[..size].to_vec());
        }
    }
}

/// The name in a `PERF_RECORD_EVENT_UPDATE`, with the id of its event.
pub fn updated_name(body: &[u8]) -> Option<(u64, String)> {
    const NAME: u32 = 2;
    let mut c = Cursor::new(body);
    let what = u32_at(c.take(8)?, 0)?;
    let id = c.u64()?;
    (what == NAME).then(|| (id, text(c.rest())))
}
