//! What a stretch of Rust names: the paths in it, those that it imports, and whether an attribute makes it a test.
//!
//! Tokens are read, not types: what is reached through a method of a value is not seen, but for methods of `self`.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A path as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Mention {
    /// Its parts; generic arguments are mentions of their own.
    pub path: Vec<String>,
    /// In the file, from 1.
    pub line: usize,
    /// Whether it was written as a method of `self`, or as something of `Self`.
    pub is_own: bool,
}

/// A name that a `use` brings in.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// The name here; `None` brings in all that `path` has.
    pub name: Option<String>,
    /// What it stands for, with its line.
    pub from: Mention,
}

/// All paths in `tokens`. `own` is what `Self` stands for there.
pub fn mentions(tokens: TokenStream, own: Option<&[String]>) -> Vec<Mention> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut scan = Scan { own, bound: Vec::new(), found: Vec::new() };
    scan.bind(&tokens);
    scan.group(&tokens, false);
    scan.found
}

/// The imports of a `use`, from the token after the word on.
pub fn imports(tree: &[TokenTree]) -> Vec<Import> {
    let mut found = Vec::new();
    use_tree(tree.split(|token| is_punct(Some(token), ';')).next().unwrap_or_default(), &[], &mut found);
    found
}

/// Whether an attribute, given by what stands in its brackets, says that something is a test or built for tests alone.
pub fn is_for_tests(attribute: &TokenStream) -> bool {
    let words: String = attribute.to_string().split_whitespace().collect();
    let in_all = words.strip_prefix("cfg(all(").is_some_and(|all| all.split([',', ')']).any(|word| word == "test"));
    words == "test" || words == "cfg(test)" || in_all
}

/// Whether `::` begins at `i`.
pub fn is_path_separator(tokens: &[TokenTree], i: usize) -> bool {
    matches!(tokens.get(i), Some(TokenTree::Punct(p)) if p.as_char() == ':' && p.spacing() == Spacing::Joint)
        && is_punct(tokens.get(i + 1), ':')
}

/// Whether a token is this sign.
pub fn is_punct(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == sign)
}

/// The path that begins with the word at `i`, and where it ends.
pub fn path_at(tokens: &[TokenTree], mut i: usize) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    while let Some(TokenTree::Ident(word)) = tokens.get(i) {
        path.push(word.to_string());
        i += 1;
        match tokens.get(i + 2) {
            Some(TokenTree::Ident(_)) if is_path_separator(tokens, i) => i += 2,
            _ => break,
        }
    }
    (path, i)
}

fn use_tree(tree: &[TokenTree], before: &[String], found: &mut Vec<Import>) {
    for part in tree.split(|token| is_punct(Some(token), ',')) {
        // A leading `::` names a crate, and so leads nowhere here.
        let Some(first) = part.first() else { continue };
        let (words, end) = path_at(part, 0);
        let mention = |path| Mention { path, line: first.span().start().line, is_own: false };
        let mut path = [before, &words].concat();
        let after = if is_path_separator(part, end) { end + 2 } else { end };
        match part.get(after) {
            Some(TokenTree::Group(inner)) => {
                let inner: Vec<TokenTree> = inner.stream().into_iter().collect();
                use_tree(&inner, &path, found);
            }
            Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                found.push(Import { name: None, from: mention(path) });
            }
            Some(TokenTree::Punct(_)) => {}
            renamed => {
                // `{self}` is the path before it.
                if path.len() > 1 && path.last().is_some_and(|word| word == "self") {
                    path.pop();
                }
                let name = match (renamed, part.get(after + 1)) {
                    (Some(TokenTree::Ident(_)), Some(TokenTree::Ident(name))) => Some(name.to_string()),
                    _ => path.last().cloned(),
                };
                if name.is_some() {
                    found.push(Import { name, from: mention(path) });
                }
            }
        }
    }
}

struct Scan<'a> {
    own: Option<&'a [String]>,
    /// Names of variables, fields and parameters.
    bound: Vec<String>,
    found: Vec<Mention>,
}

impl Scan<'_> {
    fn bind(&mut self, tokens: &[TokenTree]) {
        for (i, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.bind(&group.stream().into_iter().collect::<Vec<_>>()),
                TokenTree::Ident(word) => {
                    let typed = is_punct(tokens.get(i + 1), ':') && !is_path_separator(tokens, i + 1);
                    let before = i.checked_sub(1).map(|i| tokens[i].to_string());
                    if typed || matches!(before.as_deref(), Some("let" | "mut" | "ref" | "for" | "|")) {
                        self.bound.push(word.to_string());
                    }
                }
                _ => {}
            }
        }
    }

    fn group(&mut self, tokens: &[TokenTree], in_parentheses: bool) {
        let mut i = 0;
        while i < tokens.len() {
            match &tokens[i] {
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    self.group(&inner, group.delimiter() == Delimiter::Parenthesis);
                    i += 1;
                }
                // A lifetime.
                TokenTree::Punct(sign) if sign.as_char() == '\'' => i += 2,
                TokenTree::Ident(word) if word == "use" && !is_punct(tokens.get(i + 1), '<') => {
                    let end = (i..tokens.len()).find(|end| is_punct(tokens.get(*end), ';')).unwrap_or(tokens.len());
                    self.found.extend(imports(&tokens[i + 1..end]).into_iter().map(|import| import.from));
                    i = end;
                }
                TokenTree::Ident(_) => i = self.path(tokens, i, in_parentheses),
                _ => i += 1,
            }
        }
    }

    /// The path at `start`, if it is one; where to go on.
    fn path(&mut self, tokens: &[TokenTree], start: usize, in_parentheses: bool) -> usize {
        let before = |n: usize| start.checked_sub(n).map(|i| &tokens[i]);
        let (mut path, end) = path_at(tokens, start);
        let line = tokens[start].span().start().line;
        let is_call = matches!(tokens.get(end), Some(TokenTree::Group(g)) if g.delimiter() == Delimiter::Parenthesis);
        let is_member = is_punct(before(1), '.') && !is_punct(before(2), '.');
        if is_member || is_punct(before(1), ':') && is_punct(before(2), ':') {
            let of_self = is_member && matches!(before(2), Some(TokenTree::Ident(word)) if word == "self");
            if let Some(own) = self.own.filter(|_| of_self && is_call) {
                self.found.push(Mention { path: [own, &path].concat(), line, is_own: true });
            }
            return end;
        }
        if path.len() == 1 && path[0].starts_with(char::is_lowercase) {
            let is_macro = is_punct(tokens.get(end), '!') && !is_punct(tokens.get(end + 1), '=');
            let lone = |token: Option<&TokenTree>| token.is_none() || is_punct(token, ',');
            let is_argument = in_parentheses && lone(before(1)) && lone(tokens.get(end));
            let is_declared = matches!(before(1), Some(TokenTree::Ident(word)) if word == "fn");
            let is_function = is_call && !is_declared || is_argument && !self.bound.contains(&path[0]);
            if !is_macro && !is_function {
                return end;
            }
        }
        let is_own = path[0] == "Self";
        if is_own {
            match self.own {
                Some(own) => drop(path.splice(..1, own.iter().cloned())),
                None => return end,
            }
        }
        self.found.push(Mention { path, line, is_own });
        end
    }
}
