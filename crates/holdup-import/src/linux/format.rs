//! The trace's own descriptions of its tracepoints' fields (`events/*/*/format`).

/// A tracepoint's fields and how they are printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Format {
    /// The subsystem, `sched`.
    pub system: String,
    /// The tracepoint, `sched_switch`.
    pub name: String,
    /// Its number in this trace.
    pub id: u64,
    /// The format of its text, with the meaning of flags.
    pub print: String,
    fields: Vec<(String, Field)>,
}

/// Where an integer or a text lies in a tracepoint's bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Field {
    offset: u32,
    size: u32,
    /// Whether the bytes lie elsewhere: here are their offset and, in the upper half, their number (`__data_loc`).
    dynamic: bool,
}

impl Field {
    /// The unsigned integer in `raw`; 0 where `raw` is too short or the field absent. Sign bits are not extended.
    #[inline]
    pub fn value(self, raw: &[u8]) -> u64 {
        let Some(bytes) = raw.get(self.offset as usize..) else { return 0 };
        let read = match self.size {
            4 => bytes.first_chunk().map(|b| u32::from_le_bytes(*b).into()),
            8 => bytes.first_chunk().map(|b| u64::from_le_bytes(*b)),
            2 => bytes.first_chunk().map(|b| u16::from_le_bytes(*b).into()),
            1 => bytes.first().map(|&b| b.into()),
            _ => None,
        };
        read.unwrap_or(0)
    }

    /// The low 32 bits of [`value`](Self::value).
    #[inline]
    pub fn low(self, raw: &[u8]) -> u32 {
        self.value(raw) as u32
    }

    /// Where it begins.
    pub const fn offset(self) -> usize {
        self.offset as usize
    }

    /// How many bytes it has.
    pub const fn size(self) -> usize {
        self.size as usize
    }

    /// All bytes of the field; none where `raw` is too short.
    #[inline]
    pub fn all(self, raw: &[u8]) -> &[u8] {
        let (start, size) = if self.dynamic {
            let place = self.low(raw);
            (place as usize & 0xffff, place as usize >> 16)
        } else {
            (self.offset as usize, self.size as usize)
        };
        raw.get(start..start.saturating_add(size)).unwrap_or(&[])
    }

    /// The bytes of the field up to the first NUL.
    pub fn bytes(self, raw: &[u8]) -> &[u8] {
        let bytes = self.all(raw);
        &bytes[..bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len())]
    }

    /// Whether the field lies within `raw`.
    pub fn is_within(self, raw: &[u8]) -> bool {
        u64::from(self.offset) + u64::from(self.size) <= raw.len() as u64
    }
}

impl Format {
    /// From a description's text; `None` if it is none.
    pub fn parse(system: &str, text: &str) -> Option<Self> {
        let mut format = Format { system: system.to_owned(), ..Format::default() };
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("name:") {
                name.trim().clone_into(&mut format.name);
            } else if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().ok()?;
            } else if let Some(print) = line.strip_prefix("print fmt:") {
                print.clone_into(&mut format.print);
            } else if line.starts_with("field") {
                format.fields.extend(parse_field(line));
            }
        }
        (!format.name.is_empty()).then_some(format)
    }

    /// `system:name`, as perf names it.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.system, self.name)
    }

    /// The field called `name`.
    pub fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(n, _)| n == name).map(|&(_, field)| field)
    }
}

/// `field:char prev_comm[16]; offset:8; size:16; signed:1;`
fn parse_field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?.split_once(':')?.1;
    let mut field = Field { dynamic: declaration.starts_with("__data_loc"), ..Field::default() };
    for part in parts {
        match part.split_once(':') {
            Some(("offset", n)) => field.offset = n.trim().parse().ok()?,
            Some(("size", n)) => field.size = n.trim().parse().ok()?,
            _ => {}
        }
    }
    let name = declaration.split('[').next()?.split_whitespace().next_back()?;
    Some((name.trim_start_matches('*').to_owned(), field))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 264\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:1;\n\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\nprint fmt: \"x\"\n";

    #[test]
    fn fields_are_found_by_name() {
        let f = Format::parse("sched", SWITCH).expect("a format");
        assert_eq!((f.full_name().as_str(), f.id), ("sched:sched_switch", 264));
        let raw: Vec<u8> = (0..28).collect();
        assert_eq!(f.field("prev_pid").map(|p| p.low(&raw)), Some(0x1b1a_1918));
        assert_eq!(f.field("prev_comm").map(|c| c.bytes(&raw).len()), Some(16));
        assert_eq!(f.field("next_pid"), None);
    }

    #[test]
    fn short_payloads_read_as_zero() {
        let f = Format::parse("sched", SWITCH).expect("a format");
        let pid = f.field("prev_pid").expect("a field");
        assert_eq!(pid.low(&[0; 10]), 0);
        assert!(!pid.is_within(&[0; 27]));
        assert!(pid.is_within(&[0; 28]));
    }
}
