//! Modules of a crate as they are written: what each defines, imports and names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

pub use super::tokens::{Import, Mention};
use super::tokens::{imports, is_for_tests, is_punct, mentions, path_at};

/// Something that stands in a module's own file.
pub struct Item {
    /// Its name; `Type::name` in an `impl`, `""` where a macro may define anything.
    pub name: String,
    /// The type whose `impl` it stands in, as it is written there.
    pub of: Option<Vec<String>>,
    /// Whether it is a macro.
    pub is_macro: bool,
    /// What it names.
    pub mentions: Vec<Mention>,
}

/// A module without its children.
#[derive(Default)]
pub struct Module {
    /// From the crate's root on; empty for the root itself.
    pub path: Vec<String>,
    /// Relative to the repository.
    pub file: PathBuf,
    /// The number of the module that it stands in.
    pub parent: Option<usize>,
    /// Modules in it.
    pub children: BTreeMap<String, usize>,
    /// What it defines.
    pub items: Vec<Item>,
    /// What it imports.
    pub imports: Vec<Import>,
}

/// The text of a file, if there is one.
pub type Read<'a> = &'a dyn Fn(&Path) -> Result<Option<String>>;

/// All modules of the crate whose root is `file`, that one first; tests are left out.
pub fn modules(file: &Path, read: Read) -> Result<Vec<Module>> {
    let folder = file.parent().context("a crate's root without a folder")?;
    let mut crate_ = Crate { modules: Vec::new(), read };
    let tokens = crate_.tokens(file)?.with_context(|| format!("{} is missing", file.display()))?;
    let module = Module { file: file.to_owned(), ..Module::default() };
    crate_.add(module, folder, tokens)?;
    Ok(crate_.modules)
}

struct Crate<'a> {
    modules: Vec<Module>,
    read: Read<'a>,
}

impl Crate<'_> {
    /// Takes a module in, and those in it. `folder` is where files of those lie.
    fn add(&mut self, module: Module, folder: &Path, tokens: TokenStream) -> Result<()> {
        let at = self.modules.len();
        self.modules.push(module);
        for part in parts(tokens) {
            match part.keyword.as_str() {
                "use" => self.modules[at].imports.extend(imports(&part.tokens[part.after..])),
                "mod" => self.child(at, folder, &part)?,
                "impl" => self.modules[at].items.extend(methods(part)),
                _ => self.modules[at].items.push(Item {
                    name: part.name(),
                    of: None,
                    is_macro: part.keyword == "macro_rules",
                    mentions: mentions(part.tokens.into_iter().collect(), None),
                }),
            }
        }
        Ok(())
    }

    fn tokens(&self, file: &Path) -> Result<Option<TokenStream>> {
        let text = (self.read)(file)?;
        text.map(|text| text.parse().map_err(|e| anyhow!("{}: {e}", file.display()))).transpose()
    }

    fn child(&mut self, parent: usize, folder: &Path, part: &Part) -> Result<()> {
        let name = part.name();
        let path = [self.modules[parent].path.clone(), vec![name.clone()]].concat();
        let below = folder.join(&name);
        let (file, tokens) = match part.tokens.last() {
            Some(TokenTree::Group(body)) => (self.modules[parent].file.clone(), body.stream()),
            _ => {
                let beside = self.modules[parent].file.parent().unwrap_or(folder);
                let mut files = vec![folder.join(format!("{name}.rs")), below.join("mod.rs")];
                files.extend(part.tokens.iter().filter_map(named_file).map(|file| beside.join(file)));
                let found = files.into_iter().find_map(|file| Some(self.tokens(&file).transpose()?.map(|t| (file, t))));
                found.unwrap_or_else(|| Err(anyhow!("{} has no file", path.join("::"))))?
            }
        };
        let number = self.modules.len();
        self.modules[parent].children.insert(name, number);
        self.add(Module { path, file, parent: Some(parent), ..Module::default() }, &below, tokens)
    }
}

/// The file that an attribute gives a module, if it does; of several for different processors the first is read.
fn named_file(attribute: &TokenTree) -> Option<String> {
    let text = attribute.to_string();
    Some(text.split_once("path = \"")?.1.split_once('"')?.0.to_owned())
}

/// One item of a file or of an `impl`, tests left out.
struct Part {
    keyword: String,
    /// Where the tokens after the keyword begin.
    after: usize,
    /// All of it, attributes too.
    tokens: Vec<TokenTree>,
}

impl Part {
    fn name(&self) -> String {
        let at = if self.keyword == "macro_rules" { self.after + 1 } else { self.after };
        let named = KINDS.contains(&self.keyword.as_str());
        self.tokens.get(at).filter(|_| named).map_or(String::new(), ToString::to_string)
    }
}

/// What an item with a name begins with.
const KINDS: [&str; 10] = ["mod", "fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];

fn parts(tokens: TokenStream) -> Vec<Part> {
    let mut tokens = tokens.into_iter().peekable();
    let mut parts = Vec::new();
    while tokens.peek().is_some() {
        let mut part = Part { keyword: String::new(), after: 0, tokens: Vec::new() };
        let mut for_tests = false;
        for token in tokens.by_ref() {
            let is_braces = matches!(&token, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace);
            let is_semicolon = is_punct(Some(&token), ';');
            if let (TokenTree::Group(group), true) = (&token, part.keyword.is_empty()) {
                let is_inner = is_punct(part.tokens.last(), '!');
                if is_inner && is_for_tests(&group.stream()) {
                    return Vec::new();
                }
                for_tests |= is_for_tests(&group.stream());
                if is_inner && part.tokens.len() == 2 {
                    part.tokens.clear();
                    continue;
                }
            }
            part.tokens.push(token);
            part.note_keyword();
            // These go on after braces: `use a::{b, c};`, `const A: B = B { … };`.
            let goes_on = matches!(part.keyword.as_str(), "use" | "type" | "const" | "static");
            if is_semicolon || is_braces && !goes_on {
                break;
            }
        }
        if !for_tests && !part.tokens.is_empty() {
            parts.push(part);
        }
    }
    parts
}

impl Part {
    /// Looks whether the last token is what says the kind of the item.
    fn note_keyword(&mut self) {
        let Some(TokenTree::Ident(word)) = self.tokens.last() else { return };
        let word = word.to_string();
        let is_const_fn = self.keyword == "const" && matches!(word.as_str(), "fn" | "unsafe" | "async" | "extern");
        let is_prefix = matches!(word.as_str(), "pub" | "unsafe" | "async" | "default" | "extern");
        if (self.keyword.is_empty() && !is_prefix) || is_const_fn && self.after + 1 == self.tokens.len() {
            self.keyword = if is_const_fn { "fn".to_owned() } else { word.clone() };
            self.after = self.tokens.len() + usize::from(is_const_fn && word != "fn");
        }
    }
}

/// What stands in an `impl`.
fn methods(mut part: Part) -> Vec<Item> {
    let Some(TokenTree::Group(body)) = part.tokens.pop() else { return Vec::new() };
    let of = implemented(&part.tokens[part.after..]);
    let header = mentions(part.tokens.into_iter().collect(), None);
    let item = |part: Part| {
        let name = match of.last() {
            Some(of) => format!("{of}::{}", part.name()),
            None => String::new(),
        };
        let body = mentions(part.tokens.into_iter().collect(), Some(&of));
        Item { name, of: Some(of.clone()), is_macro: false, mentions: [header.clone(), body].concat() }
    };
    let mut items: Vec<Item> = parts(body.stream()).into_iter().map(item).collect();
    if items.is_empty() {
        items.push(Item { name: String::from("impl"), of: None, is_macro: false, mentions: header });
    }
    items
}

/// The type that an `impl` is of, from the token after that word on; empty if it is no plain path.
fn implemented(header: &[TokenTree]) -> Vec<String> {
    let mut depth = 0_usize;
    let mut of = None;
    let mut i = 0;
    while i < header.len() {
        match &header[i] {
            TokenTree::Punct(p) if p.as_char() == '<' => depth += 1,
            // Not that of `->`.
            TokenTree::Punct(p) if p.as_char() == '>' && !is_punct(i.checked_sub(1).map(|i| &header[i]), '-') => {
                depth = depth.saturating_sub(1);
            }
            TokenTree::Ident(word) if depth == 0 && word == "where" => break,
            TokenTree::Ident(word) if depth == 0 && word == "for" => of = None,
            TokenTree::Ident(_) if depth == 0 && of.is_none() => {
                let (path, end) = path_at(header, i);
                of = Some(path);
                i = end;
                continue;
            }
            _ => {}
        }
        i += 1;
    }
    of.unwrap_or_default()
}
