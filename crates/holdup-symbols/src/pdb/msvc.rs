//! Names as Microsoft's compilers decorate them (`?pop@Queue@work@@QEAAHXZ`), of which only the qualified name matters here.
//!
//! Templates stay as they are: their end is found only by parsing all types in them.

/// Names and scopes in one decorated name; more are no real name.
const PARTS: usize = 64;

/// `work::Queue::pop`; `None` for what is not decorated, and for templates.
pub(super) fn qualified(raw: &str) -> Option<String> {
    let mut rest = raw.strip_prefix('?')?;
    let mut known: Vec<&str> = Vec::new();
    let mut special = "";
    if let Some(code) = rest.strip_prefix('?') {
        (rest, special) = OPERATORS.iter().find_map(|(prefix, name)| Some((code.strip_prefix(prefix)?, *name)))?;
    }
    let mut parts: Vec<&str> = Vec::new();
    // Scopes follow from the inside out, and end with an empty one.
    while !rest.starts_with('@') {
        let first = *rest.as_bytes().first()?;
        if parts.len() > PARTS {
            return None;
        }
        if first.is_ascii_digit() {
            parts.push(known.get(usize::from(first - b'0'))?);
            rest = rest.get(1..)?;
            continue;
        }
        if let Some(anonymous) = rest.strip_prefix("?A") {
            rest = anonymous.split_once('@')?.1;
            known.push("`anonymous namespace'");
        } else if first == b'?' {
            return None;
        } else {
            let (name, after) = rest.split_once('@')?;
            known.push(name);
            rest = after;
        }
        parts.push(known.last()?);
    }
    let last = match special {
        "" => String::new(),
        CONSTRUCTOR => (*parts.first()?).to_owned(),
        DESTRUCTOR => format!("~{}", parts.first()?),
        operator => operator.to_owned(),
    };
    parts.reverse();
    parts.extend((!last.is_empty()).then_some(last.as_str()));
    (!parts.is_empty()).then(|| parts.join("::"))
}

const CONSTRUCTOR: &str = "constructor";
const DESTRUCTOR: &str = "destructor";

/// The longer codes first.
const OPERATORS: [(&str, &str); 33] = [
    ("_G", "`scalar deleting destructor'"),
    ("_E", "`vector deleting destructor'"),
    ("_U", "operator new[]"),
    ("_V", "operator delete[]"),
    ("_4", "operator&="),
    ("_5", "operator|="),
    ("_6", "operator^="),
    ("0", CONSTRUCTOR),
    ("1", DESTRUCTOR),
    ("2", "operator new"),
    ("3", "operator delete"),
    ("4", "operator="),
    ("5", "operator>>"),
    ("6", "operator<<"),
    ("7", "operator!"),
    ("8", "operator=="),
    ("9", "operator!="),
    ("A", "operator[]"),
    ("C", "operator->"),
    ("D", "operator*"),
    ("E", "operator++"),
    ("F", "operator--"),
    ("G", "operator-"),
    ("H", "operator+"),
    ("I", "operator&"),
    ("M", "operator<"),
    ("N", "operator<="),
    ("O", "operator>"),
    ("P", "operator>="),
    ("R", "operator()"),
    ("Y", "operator+="),
    ("Z", "operator-="),
    ("X", "operator*="),
];

#[cfg(test)]
mod tests {
    use super::qualified;

    /// As `llvm-undname` has them, but for arguments.
    #[test]
    fn decorated_names_are_read() {
        let cases = [
            ("?pop@Queue@work@@QEAAHXZ", "work::Queue::pop"),
            ("?main@@YAHXZ", "main"),
            ("??0Queue@work@@QEAA@XZ", "work::Queue::Queue"),
            ("??1Queue@work@@QEAA@XZ", "work::Queue::~Queue"),
            ("??_GQueue@work@@QEAAPEAXI@Z", "work::Queue::`scalar deleting destructor'"),
            ("??RQueue@work@@QEAAHXZ", "work::Queue::operator()"),
            ("?work@1@YAXXZ", ""),
            ("?f@?A0x12345678@@YAXXZ", "`anonymous namespace'::f"),
            ("?f@a@0@YAXXZ", "f::a::f"),
            ("??2@YAPEAX_K@Z", "operator new"),
        ];
        for (raw, name) in cases {
            assert_eq!(qualified(raw).unwrap_or_default(), name, "{raw}");
        }
    }

    #[test]
    fn others_are_left_alone() {
        for raw in ["NtWaitForSingleObject", "??$pop@H@Queue@@QEAAHXZ", "?", "??", "?a", "?a@", "?9@@", "???", "??2"] {
            assert_eq!(qualified(raw), None, "{raw}");
        }
        let long = format!("?f@{}@YAXXZ", "a@".repeat(1000));
        assert_eq!(qualified(&long), None);
    }
}
