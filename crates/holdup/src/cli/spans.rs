//! How spans are named on the command line.

use std::path::PathBuf;
use std::str::FromStr;

use holdup_record::Argument;

/// Where spans come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanSpec {
    /// Calls of a function: from its entry to its return.
    Function {
        /// The program or library.
        path: PathBuf,
        /// The function's name, or `+0x…`.
        function: Point,
    },
    /// From one probe that a program has built in to another.
    Usdt {
        /// The file; none for that of a running program which has such probes.
        path: Option<PathBuf>,
        /// Whose probes they are.
        provider: String,
        /// Where spans begin.
        begin: Point,
        /// Where they end.
        end: Point,
    },
    /// Requests on sockets, from when they arrive until an answer begins.
    Net {
        /// What they begin with is told, too.
        with_text: bool,
    },
    /// Begins and ends that programs write to a `trace_marker`.
    Marker,
}

/// A function or a probe, and what is read there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Its name.
    pub name: String,
    /// What its first arguments are.
    pub arguments: Vec<Asked>,
}

/// What an argument is said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// What it tells.
    pub kind: Argument,
    /// Its bytes, as C's type has them: of a function's, nothing else is known.
    pub bytes: u8,
}

/// Most arguments that are looked at; no more than two are read.
const LAST_ARGUMENT: usize = 6;

impl FromStr for SpanSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "net" => return Ok(SpanSpec::Net { with_text: false }),
            "marker" => return Ok(SpanSpec::Marker),
            "net(str)" => return Ok(SpanSpec::Net { with_text: true }),
            _ => {}
        }
        let (kind, rest) = text.split_once(':').ok_or_else(|| usage(text))?;
        match kind.trim() {
            "u" => {
                let (path, function) = rest.split_once(':').ok_or_else(|| usage(text))?;
                let function = point(function)?;
                if function.has_key() {
                    return Err("a function's spans end where they began: it has no key. Write int".into());
                }
                Ok(SpanSpec::Function { path: filled(path, text)?.into(), function })
            }
            "usdt" => usdt(text, rest),
            _ => Err(usage(text)),
        }
    }
}

fn usdt(text: &str, rest: &str) -> Result<SpanSpec, String> {
    let (begin, end) = rest.split_once("~~").ok_or_else(|| usage(text))?;
    let mut parts: Vec<&str> = begin.split(':').collect();
    let begin = point(parts.pop().unwrap_or_default())?;
    let provider = filled(parts.pop().ok_or_else(|| usage(text))?, text)?;
    let path = if parts.is_empty() { None } else { Some(filled(&parts.join(":"), text)?.into()) };
    let end = point(end)?;
    let is_keyed = Point::has_key;
    if is_keyed(&begin) != is_keyed(&end) {
        return Err("a key ties begin and end together: write it for both, as in begin(key) ~~ end(key)".into());
    }
    Ok(SpanSpec::Usdt { path, provider, begin, end })
}

fn usage(text: &str) -> String {
    format!(
        "{text:?} names no spans: expected u:PROGRAM:FUNCTION, usdt:[PROGRAM:]PROVIDER:PROBE ~~ PROBE, net, net(str) or marker; \
         behind a name may stand what its arguments are, of int, long, str, key and _: handle(int,str)"
    )
}

fn filled(part: &str, text: &str) -> Result<String, String> {
    let part = part.trim();
    if part.is_empty() { Err(usage(text)) } else { Ok(part.to_owned()) }
}

/// `name`, or `name(int,str)`.
fn point(text: &str) -> Result<Point, String> {
    let text = text.trim();
    let (name, list) = match text.strip_suffix(')').and_then(|t| t.split_once('(')) {
        Some((name, list)) => (name.trim(), list),
        None => (text, ""),
    };
    let name = filled(name, text)?;
    let arguments = list.split(',').map(str::trim).filter(|_| !list.trim().is_empty());
    let arguments: Vec<Asked> = arguments.map(argument).collect::<Result<_, _>>()?;
    let read = arguments.iter().filter(|a| a.kind != Argument::None).count();
    if read > 2 || arguments.len() > LAST_ARGUMENT {
        return Err(format!("{text}: two of the first {LAST_ARGUMENT} arguments can be read; write _ for the others"));
    }
    if arguments.iter().filter(|a| a.kind == Argument::Key).count() > 1 {
        return Err(format!("{text}: there is one key"));
    }
    Ok(Point { name, arguments })
}

impl Point {
    fn has_key(&self) -> bool {
        self.arguments.iter().any(|a| a.kind == Argument::Key)
    }
}

fn argument(word: &str) -> Result<Asked, String> {
    let (kind, bytes) = match word {
        "int" => (Argument::Integer, 4),
        "long" => (Argument::Integer, 8),
        "str" => (Argument::Text, 8),
        "key" => (Argument::Key, 8),
        "_" => (Argument::None, 8),
        other => return Err(format!("{other:?} is not what an argument can be: expected int, long, str, key or _")),
    };
    Ok(Asked { kind, bytes })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn specs_are_read() {
        let spec: SpanSpec = "u:/bin/x:ns::f(int, str)".parse().unwrap();
        let [int, text] = [(Argument::Integer, 4), (Argument::Text, 8)].map(|(kind, bytes)| Asked { kind, bytes });
        let arguments = vec![int, text];
        let function = Point { name: "ns::f".into(), arguments };
        assert_eq!(spec, SpanSpec::Function { path: "/bin/x".into(), function });
        let spec: SpanSpec = "usdt:postgresql:query__start(str) ~~ query__done".parse().unwrap();
        let begin = Point { name: "query__start".into(), arguments: vec![text] };
        let end = Point { name: "query__done".into(), arguments: vec![] };
        assert_eq!(spec, SpanSpec::Usdt { path: None, provider: "postgresql".into(), begin, end });
        assert_eq!(" net ".parse(), Ok(SpanSpec::Net { with_text: false }));
        assert_eq!("marker".parse(), Ok(SpanSpec::Marker));
        assert_eq!("net(str)".parse(), Ok(SpanSpec::Net { with_text: true }));
        let spec: SpanSpec = "usdt:/a/b:p:x(key) ~~ y(_,key)".parse().unwrap();
        assert!(matches!(spec, SpanSpec::Usdt { path: Some(path), .. } if path == Path::new("/a/b")));
    }

    #[test]
    fn what_names_nothing_is_told() {
        for (bad, says) in [
            ("", "names no spans"),
            ("u:/bin/x", "names no spans"),
            ("u::f", "names no spans"),
            ("u:/bin/x:", "names no spans"),
            ("usdt:p:x", "names no spans"),
            ("usdt:x ~~ y", "names no spans"),
            ("nets", "names no spans"),
            ("u:/bin/x:f(float)", "\"float\" is not"),
            ("u:/bin/x:f(int,long,int)", "two of the first 6"),
            ("u:/bin/x:f(key)", "no key"),
            ("usdt:p:x(key) ~~ y", "write it for both"),
        ] {
            let said = bad.parse::<SpanSpec>().unwrap_err();
            assert!(said.contains(says), "{bad}: {said}");
        }
    }
}
