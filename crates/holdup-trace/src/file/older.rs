//! What files and spools of earlier versions lack.

use crate::table::table;
use crate::tables::{LossRow, Losses};
use crate::{Cpu, Dictionary, LOST_STACKS, LossKind, Result, Store, StringId, Table, Timestamp};

/// The first version in which a loss has a kind.
pub(super) const WITH_KINDS_OF_LOSSES: u32 = 2;

table! {
    /// What is missing from the trace, as version 1 wrote it.
    OldLosses of OldLoss = "loss" {
        /// What was lost.
        what: StringId, "string";
        /// On which CPU; 65535 for all.
        cpu: Cpu, "cpu";
        /// From when.
        from: Timestamp, "ns since start";
        /// Until when.
        to: Timestamp, "ns since start";
        /// How many.
        count: u64, "number";
    }
}

/// The kind of a loss that is told in words alone. Nothing else reads these words.
pub fn kind_of_loss(what: &str) -> LossKind {
    match what {
        LOST_STACKS => LossKind::Stacks,
        what if what.contains("stack") => LossKind::LimitedStacks,
        "mappings of code" => LossKind::Mappings,
        _ => LossKind::Events,
    }
}

/// The losses of a file of version 1, with their kinds.
pub(super) fn losses(old: &Store<OldLosses>, strings: &Dictionary) -> Result<Store<Losses>> {
    let mut losses = Losses::default();
    for row in old.load()?.rows() {
        let OldLoss { what, cpu, from, to, count } = row;
        losses.push(LossRow { kind: kind_of_loss(strings.get(what)), what, cpu, from, to, count });
    }
    Ok(Store::from_table(losses))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::path::Path;

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipArchive, ZipWriter};

    use super::*;
    use crate::store::arrow_writer;
    use crate::{Destination, LostEvent, Nanos, Trace, TraceBuilder};

    fn losing(words: &[&str]) -> Trace {
        let mut builder = TraceBuilder::new(&Destination::Memory).expect("builder");
        for (count, word) in (1..).zip(words) {
            let what = builder.string(word);
            let lost = LostEvent { kind: LossKind::Unknown, cpu: Cpu(1), span: Nanos(5), count, what };
            builder.push(u64::from(count) * 100, lost);
        }
        builder.finish(None).expect("trace")
    }

    /// Writes the file as version 1 did.
    fn write_old(trace: &Trace, scratch: &Path, path: &Path) {
        crate::file::write(trace, scratch).expect("write");
        let mut new = ZipArchive::new(File::open(scratch).expect("open")).expect("zip");
        let mut old = ZipWriter::new(File::create(path).expect("create"));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        for i in 0..new.len() {
            let mut member = new.by_index(i).expect("member");
            let name = member.name().expect("name").into_owned();
            let mut bytes = Vec::new();
            member.read_to_end(&mut bytes).expect("read");
            match name.as_str() {
                "loss.arrow" => bytes = old_losses(trace),
                "meta.json" => {
                    let mut meta: crate::Meta = serde_json::from_slice(&bytes).expect("meta");
                    meta.version = 1;
                    bytes = serde_json::to_vec(&meta).expect("json");
                }
                _ => {}
            }
            old.start_file(name, options).expect("member");
            old.write_all(&bytes).expect("write");
        }
        old.finish().expect("zip");
    }

    fn old_losses(trace: &Trace) -> Vec<u8> {
        let mut old = OldLosses::default();
        for LossRow { kind: _, what, cpu, from, to, count } in trace.events.losses.load().expect("losses").rows() {
            old.push(OldLoss { what, cpu, from, to, count });
        }
        let mut bytes = Vec::new();
        let mut writer = arrow_writer::<OldLosses, _>(&mut bytes).expect("writer");
        writer.write(&old.to_batch()).expect("batch");
        writer.finish().expect("end");
        drop(writer);
        bytes
    }

    #[test]
    fn losses_of_the_first_version_get_kinds() {
        let dir = tempfile::tempdir().expect("dir");
        let [scratch, path] = ["new.holdup", "old.holdup"].map(|name| dir.path().join(name));
        let words = ["records (buffer full)", LOST_STACKS, "stacks (limited rate, or full buffer)", "mappings of code"];
        write_old(&losing(&words), &scratch, &path);
        let trace = crate::file::read(&path).expect("read");
        let found: Vec<_> = trace.losses().expect("losses").into_iter().map(|l| (l.kind, l.count, l.what)).collect();
        let kinds = [LossKind::Events, LossKind::Stacks, LossKind::LimitedStacks, LossKind::Mappings];
        let wanted = kinds.into_iter().zip(1..).zip(words).map(|((kind, count), what)| (kind, count, what.to_owned()));
        assert_eq!(found, wanted.collect::<Vec<_>>());
        // Written again it is a file of today.
        crate::file::write(&trace, &scratch).expect("write");
        assert_eq!(std::fs::read(&scratch).expect("bytes"), crate::file::write_memory(&trace, true).expect("write"));
        let again = crate::file::read_memory(std::fs::read(&scratch).expect("bytes"), &scratch).expect("read");
        assert_eq!(again.losses().expect("losses"), trace.losses().expect("losses"));
        assert_eq!(again.meta.version, crate::file::VERSION);
    }

    #[test]
    fn kinds_are_kept() {
        let dir = tempfile::tempdir().expect("dir");
        let path = dir.path().join("new.holdup");
        crate::file::write(&losing(&["stacks of hay"]), &path).expect("write");
        let losses = crate::file::read(&path).expect("read").losses().expect("losses");
        assert_eq!(losses[0].kind, LossKind::Unknown, "no words are looked at");
    }
}
