//! Where a virtual machine keeps what: it tells it by tables that it exports for debuggers (`gHotSpotVMStructs`, `gHotSpotVMTypes`), so
//! that nothing here goes by versions but how small numbers are packed.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use holdup_symbols::Exports;
use holdup_trace::Image;

use super::target::MAPS_LIMIT;
use crate::memory::{Memory, half, word};

/// Rows of a table that are read: there are some 3,000.
const ROWS: usize = 1 << 14;
/// Bytes of a row of either table.
const FIELD: usize = 48;
const TYPE: usize = 40;

/// Declares the fields that are wanted: of which type, called how, and their names here.
macro_rules! wanted {
    ($($(#[doc = $doc:literal])* $name:ident: $type:literal, $field:literal;)+) => {
        /// Offsets of fields, and addresses of static ones. A field that a machine lacks is `None`.
        #[derive(Debug, Default, Clone)]
        pub(super) struct Structs {
            $($(#[doc = $doc])* pub(super) $name: Option<u64>,)+
            /// Bytes before the slots of a constant pool.
            pub(super) pool_size: Option<u64>,
            /// Bytes before what lies in a block of the code heap.
            pub(super) block_size: Option<u64>,
        }

        impl Structs {
            fn field(&mut self, of: &[u8], name: &[u8]) -> Option<&mut Option<u64>> {
                $(if of == $type.as_bytes() && name == $field.as_bytes() { return Some(&mut self.$name); })+
                None
            }
        }
    };
}

wanted! {
    const_method: "Method", "_constMethod";
    constants: "ConstMethod", "_constants";
    name_index: "ConstMethod", "_name_index";
    pool_holder: "ConstantPool", "_pool_holder";
    class_name: "Klass", "_name";
    symbol_length: "Symbol", "_length";
    symbol_body: "Symbol", "_body[0]";
    heaps: "CodeCache", "_heaps";
    heaps_len: "GrowableArrayBase", "_len";
    heaps_data: "GrowableArray<int>", "_data";
    heap_memory: "CodeHeap", "_memory";
    heap_segments: "CodeHeap", "_segmap";
    heap_shift: "CodeHeap", "_log2_segment_size";
    space_low: "VirtualSpace", "_low";
    space_high: "VirtualSpace", "_high";
    blob_name: "CodeBlob", "_name";
    blob_size: "CodeBlob", "_size";
    code_begin: "CodeBlob", "_code_begin";
    scopes_begin: "CompiledMethod", "_scopes_data_begin";
    metadata: "nmethod", "_metadata_offset";
    points: "nmethod", "_scopes_pcs_offset";
    points_end: "nmethod", "_dependencies_offset";
    /// The address of the machine's major version.
    version: "Abstract_VM_Version", "_vm_major_version";
}

impl Structs {
    /// Those of the machine in the process `pid`.
    pub(super) fn of(pid: u32, memory: &Memory) -> Option<Structs> {
        let image = libjvm(pid)?;
        let exports = Exports::of_live(&image)?;
        let [fields, types] = exports.find(["gHotSpotVMStructs", "gHotSpotVMTypes"]);
        let shift = exports.shift(&image)?;
        let table = |at: Option<(u64, u64)>| memory.word(at?.0.wrapping_add(shift));
        let mut structs = Structs::default();
        structs.read_fields(memory, table(fields)?)?;
        structs.read_types(memory, table(types)?)?;
        Some(structs)
    }

    fn read_fields(&mut self, memory: &Memory, table: u64) -> Option<()> {
        for row in rows(memory, table, FIELD) {
            let (of, name) = (memory.name(word(&row, 0)?), memory.name(word(&row, 8)?));
            let (Some(of), Some(name)) = (of, name) else { continue };
            if let Some(field) = self.field(&of, &name) {
                let at = if half(&row, 24)? != 0 { 40 } else { 32 };
                *field = word(&row, at);
            }
        }
        Some(())
    }

    fn read_types(&mut self, memory: &Memory, table: u64) -> Option<()> {
        for row in rows(memory, table, TYPE) {
            match memory.name(word(&row, 0)?).as_deref() {
                Some(b"ConstantPool") => self.pool_size = word(&row, 32),
                Some(b"HeapBlock") => self.block_size = word(&row, 32),
                _ => {}
            }
        }
        Some(())
    }
}

/// The rows of a table, up to one without a name.
fn rows(memory: &Memory, table: u64, size: usize) -> impl Iterator<Item = Vec<u8>> {
    let row = move |i: usize| memory.read(table.checked_add((i * size) as u64)?, size);
    (0..ROWS).map_while(row).take_while(|row| word(row, 0).is_some_and(|name| name != 0))
}

/// Where the process maps the beginning of its libjvm.so.
fn libjvm(pid: u32) -> Option<Image> {
    let maps = BufReader::new(File::open(format!("/proc/{pid}/maps")).ok()?.take(MAPS_LIMIT));
    // By bytes: a path is any bytes.
    let line = maps.split(b'\n').map_while(Result::ok).find(|line| line.ends_with(b"/libjvm.so"))?;
    let line = String::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end, file_offset) = (number(start)?, number(end)?, number(words.nth(1)?)?);
    let path = line.get(line.find('/')?..)?.into();
    Some(Image { start, end, file_offset, path, pid, build_id: None })
}
