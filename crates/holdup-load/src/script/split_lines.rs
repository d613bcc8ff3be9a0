//! `fs::read_split_lines_iter`: a file line by line, each in parts. Only the line that is asked for is in memory.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};

use rune::alloc::limit;
use rune::runtime::{Mut, VmResult};
use rune::{Any, ContextError, Module, Value, vm_try};

use super::beneath::Files;
use super::failure::Failure;

/// The lines that are still to come.
#[derive(Any)]
#[rune(item = ::fs)]
pub(super) struct SplitLines {
    lines: BufReader<File>,
    name: String,
    how: How,
}

/// How a line is taken apart.
#[derive(Clone, Debug, PartialEq)]
struct How {
    delimiter: String,
    /// Splits at most; as many as there are without it.
    most: Option<usize>,
    trim: bool,
    skip_empty: bool,
}

impl How {
    /// What a script says of it: a text is the delimiter, a number the splits, the first truth whether parts are trimmed, the
    /// second whether empty ones are left out.
    fn of(said: &[Value]) -> Result<How, Failure> {
        let mut how = How { delimiter: " ".to_owned(), most: None, trim: true, skip_empty: true };
        let mut truths = 0;
        for value in said {
            if let Ok(text) = value.borrow_string_ref() {
                text.clone_into(&mut how.delimiter);
            } else if let Ok(splits) = value.as_signed() {
                how.most = usize::try_from(splits).ok();
            } else if let (Ok(is), 0 | 1) = (value.as_bool(), truths) {
                *[&mut how.trim, &mut how.skip_empty][truths] = is;
                truths += 1;
            } else {
                return Err(Failure::new(
                    "how to split is [delimiter, most splits, trim, skip empty]: a text, a number, and two of true and false",
                ));
            }
        }
        if how.delimiter.is_empty() { Err(Failure::new("the delimiter is empty: write a text")) } else { Ok(how) }
    }

    fn parts<'a>(&'a self, line: &'a str) -> impl Iterator<Item = &'a str> {
        let pieces = self.most.map_or(usize::MAX, |most| most.saturating_add(1));
        let parts = line.splitn(pieces, self.delimiter.as_str());
        let parts = parts.map(|part| if self.trim { part.trim() } else { part });
        parts.filter(|part| !(self.skip_empty && part.is_empty()))
    }
}

impl SplitLines {
    fn open(files: &Files, file: &str, said: &[Value]) -> Result<SplitLines, Failure> {
        let how = How::of(said)?;
        let opened = files.plain(std::path::Path::new(file)).map_err(|refusal| Failure::new(refusal.sentence()))?;
        Ok(SplitLines { lines: BufReader::new(opened), name: file.to_owned(), how })
    }

    /// The next line without its end; none after the last.
    fn line(&mut self, most: usize) -> Result<Option<String>, Failure> {
        let cant = |why: String| Failure::new(format!("{}: {why}", self.name));
        let mut bytes = Vec::new();
        let cap = u64::try_from(most).unwrap_or(u64::MAX);
        (&mut self.lines).take(cap).read_until(b'\n', &mut bytes).map_err(|e| cant(e.to_string()))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.len() >= most {
            return Err(cant("a line is longer than the script's memory".to_owned()));
        }
        let mut line =
            String::from_utf8(bytes).map_err(|_| cant("a line is not UTF-8: it should be a text".to_owned()))?;
        line.truncate(line.trim_end_matches(['\n', '\r']).len());
        Ok(Some(line))
    }
}

/// The parts of the next line.
#[rune::function(instance)]
fn next(mut lines: Mut<SplitLines>) -> VmResult<Option<Result<rune::runtime::Vec, Failure>>> {
    let line = match lines.line(limit::get()) {
        Ok(Some(line)) => line,
        Ok(None) => return VmResult::Ok(None),
        Err(failure) => return VmResult::Ok(Some(Err(failure))),
    };
    let mut parts = rune::runtime::Vec::new();
    for part in lines.how.parts(&line) {
        let part = vm_try!(rune::alloc::String::try_from(part));
        vm_try!(parts.push(vm_try!(Value::new(part))));
    }
    VmResult::Ok(Some(Ok(parts)))
}

/// Adds it.
pub(super) fn install(module: &mut Module, files: &Files) -> Result<(), ContextError> {
    module.ty::<SplitLines>()?;
    module.function_meta(next)?;
    let files = files.clone();
    module
        .function("read_split_lines_iter", move |file: &str, how: &[Value]| SplitLines::open(&files, file, how))
        .build()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart_as_asked() {
        let mut how = How::of(&[]).unwrap();
        let parts = |how: &How, line: &str| how.parts(line).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(parts(&how, "a  b c"), ["a", "b", "c"]);
        how.skip_empty = false;
        assert_eq!(parts(&how, "a  b"), ["a", "", "b"]);
        how = How { delimiter: ";".to_owned(), most: Some(1), trim: false, skip_empty: true };
        assert_eq!(parts(&how, " a; b;c"), [" a", " b;c"]);
        how.trim = true;
        assert_eq!(parts(&how, ";;"), [";"]);
    }
}
