//! Whose a DPC is, by the driver that its routine lies in.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::image::Image;
use crate::linux::irq::UNKNOWN_SOURCE;

/// What the model calls the interrupts of network and disks: Linux's soft interrupts.
const NETWORK: u16 = 3;
const DISK: u16 = 4;

/// Beginnings of the names of drivers. Network cards' drivers run within NDIS, disks' within their port driver.
const DRIVERS: &[(u16, &[&str])] = &[
    (NETWORK, &["ndis", "tcpip", "netio", "afd", "fwpkclnt", "http", "vmbus_net", "netvsc", "e1", "rt6"]),
    (
        DISK,
        &[
            "storport", "ataport", "scsiport", "stornvme", "storahci", "iastor", "classpnp", "usbstor", "amdsata",
            "nvme",
        ],
    ),
];

/// The kernel's images, and what is known of their routines.
#[derive(Debug, Default)]
pub struct Drivers {
    /// End and kind, by beginning.
    images: BTreeMap<u64, (u64, u16)>,
    routines: FxHashMap<u64, u16>,
}

impl Drivers {
    /// An image of the kernel is there.
    pub fn add(&mut self, image: &Image) {
        let file = image.path.rsplit('\\').next().unwrap_or_default().to_ascii_lowercase();
        let is = |names: &[&str]| names.iter().any(|name| file.starts_with(name));
        let kind = DRIVERS.iter().find(|(_, names)| is(names)).map_or(UNKNOWN_SOURCE, |(kind, _)| *kind);
        self.images.insert(image.base, (image.base.saturating_add(image.size), kind));
        self.routines.clear();
    }

    /// The model's number of a soft interrupt for the DPC of a routine; [`UNKNOWN_SOURCE`] if it has none.
    pub fn source(&mut self, routine: u64) -> u16 {
        let Drivers { images, routines } = self;
        *routines.entry(routine).or_insert_with(|| match images.range(..=routine).next_back() {
            Some((_, &(end, kind))) if routine < end => kind,
            _ => UNKNOWN_SOURCE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_routine_is_its_drivers() {
        let mut drivers = Drivers::default();
        let all = [
            ("\\SystemRoot\\System32\\drivers\\ndis.sys", 0x1000),
            ("\\Windows\\System32\\drivers\\STORPORT.SYS", 0x2000),
            ("win32k.sys", 0x3000),
        ];
        for (path, base) in all {
            drivers.add(&Image { base, size: 0x800, pid: 0, path: path.to_owned() });
        }
        let sources = [0xfff, 0x1000, 0x17ff, 0x1800, 0x2001, 0x3001].map(|routine| drivers.source(routine));
        assert_eq!(sources, [UNKNOWN_SOURCE, NETWORK, NETWORK, UNKNOWN_SOURCE, DISK, UNKNOWN_SOURCE]);
    }
}
