//! The files that a script is made of: itself, `lib.rn` beside it, and its modules.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rune::ast::Spanned;
use rune::compile::{self, SourceLoader};
use rune::item::ComponentRef;
use rune::{Item, Source};

use super::beneath::{Files, Refusal, open_any, refusal, text_of};
use super::limits::{DEEPEST_BRACKETS, LONGEST_SOURCE};
use super::{Place, ScriptError};

/// What was read, by file. The engine shows no text of its sources, and a message may want it.
#[derive(Clone, Default)]
pub(super) struct Texts(Rc<RefCell<HashMap<PathBuf, Rc<str>>>>);

impl Texts {
    /// The text of a file that the script is made of.
    pub(super) fn get(&self, path: &Path) -> Option<Rc<str>> {
        self.0.borrow().get(path).cloned()
    }

    /// Reads the script itself. The user named it: it may lie anywhere.
    pub(super) fn read_script(&self, path: &Path) -> Result<(Source, Rc<str>), ScriptError> {
        let text = open_any(path).map_err(|e| refusal(path, &e)).and_then(|file| text_of(file, path, most()));
        self.keep(path, text.map_err(|refusal| ScriptError::new(None, refusal.sentence()))?)
    }

    /// Reads another file that it is made of, if there is one.
    pub(super) fn read_part(&self, files: &Files, path: &Path) -> Result<Option<(Source, Rc<str>)>, ScriptError> {
        match files.text(path.strip_prefix(files.folder()).unwrap_or(path), most()) {
            Ok(text) => self.keep(path, text).map(Some),
            Err(Refusal::Missing(_)) => Ok(None),
            Err(refusal) => Err(ScriptError::new(None, refusal.sentence())),
        }
    }

    fn keep(&self, path: &Path, text: String) -> Result<(Source, Rc<str>), ScriptError> {
        check_brackets(path, &text)?;
        let source = Source::with_path(path.display().to_string(), &text, path).map_err(ScriptError::internal)?;
        let text: Rc<str> = text.into();
        self.0.borrow_mut().insert(path.to_owned(), Rc::clone(&text));
        Ok((source, text))
    }
}

fn most() -> usize {
    usize::try_from(LONGEST_SOURCE).unwrap_or(usize::MAX)
}

/// Refuses what stands inside more brackets than a compiler has stack for. It counts those in texts and remarks too: they come
/// in pairs there as well, or are few.
fn check_brackets(path: &Path, text: &str) -> Result<(), ScriptError> {
    let mut depth = 0_usize;
    for (at, letter) in text.bytes().enumerate() {
        match letter {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST_BRACKETS {
            let line = text[..at].lines().count().max(1);
            let column = text[..at].rsplit('\n').next().unwrap_or("").chars().count() + 1;
            let place = Place { file: path.to_owned(), line, column };
            let what = format!("more than {DEEPEST_BRACKETS} brackets are open here: take the expression apart");
            return Err(ScriptError::new(Some(place), what));
        }
    }
    Ok(())
}

/// Finds modules (`mod common;`) among the script's files.
pub(super) struct Modules {
    pub(super) files: Files,
    pub(super) texts: Texts,
}

impl SourceLoader for Modules {
    fn load(&mut self, root: &Path, item: &Item, span: &dyn Spanned) -> compile::Result<Source> {
        let Some(mut base) = root.parent().map(Path::to_owned) else {
            return Err(compile::Error::msg(span, "the script has no folder for modules"));
        };
        for part in item {
            match part {
                ComponentRef::Str(name) => base.push(name),
                _ => return Err(compile::Error::msg(span, format!("{item} is not a module that a file can hold"))),
            }
        }
        for path in [base.join("mod.rn"), base.with_extension("rn")] {
            match self.texts.read_part(&self.files, &path) {
                Ok(Some((source, _))) => return Ok(source),
                Ok(None) => {}
                Err(why) => return Err(compile::Error::msg(span, why.to_string())),
            }
        }
        Err(compile::Error::msg(span, format!("there is no file {}.rn for this module", base.display())))
    }
}
