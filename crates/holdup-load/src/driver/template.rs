//! Texts with places for values: `{}` takes them in their order, `{name}` by name, `{{` and `}}` are braces.

use super::{Args, DriverError, Value};

/// A text and its places.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Literal(String),
    Positional(usize),
    Named(String),
}

/// How many values all templates of a statement take together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Places {
    positional: usize,
    names: Vec<String>,
}

impl Template {
    /// Reads a part of a statement; `places` counts through its parts.
    ///
    /// # Errors
    /// What is wrong with a brace, as the end of a sentence.
    pub(super) fn parse(text: &str, places: &mut Places) -> Result<Template, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                literal.push_str(brace);
                rest = after;
                continue;
            }
            let name = rest.split_once('}').filter(|(name, _)| brace == "{" && is_name(name));
            let Some((name, after)) = name else {
                return Err(format!("has a {brace} that belongs to no placeholder: write it twice for a brace"));
            };
            rest = after;
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(places.next(name));
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Template(pieces))
    }

    /// Appends the text with its values, each as `write` puts it.
    pub(super) fn fill(
        &self,
        args: &Args,
        into: &mut Vec<u8>,
        mut write: impl FnMut(&Value, &mut Vec<u8>) -> Result<(), String>,
    ) -> Result<(), DriverError> {
        for piece in &self.0 {
            match piece {
                Piece::Literal(text) => into.extend_from_slice(text.as_bytes()),
                place => write(find(place, args), into).map_err(|why| {
                    let name = match place {
                        Piece::Named(name) => format!("{{{name}}}"),
                        Piece::Positional(index) => format!("number {}", index + 1),
                        Piece::Literal(_) => String::new(),
                    };
                    DriverError::fatal(format!("The value of placeholder {name} can't be sent: {why}."))
                })?,
            }
        }
        Ok(())
    }

    /// The value, if the template is nothing but its place.
    #[cfg(feature = "redis")]
    pub(super) fn only_value<'a>(&self, args: &'a Args) -> Option<&'a Value> {
        match &self.0[..] {
            [Piece::Literal(_)] => None,
            [place] => Some(find(place, args)),
            _ => None,
        }
    }
}

impl Places {
    fn next(&mut self, name: &str) -> Piece {
        if name.is_empty() {
            self.positional += 1;
            return Piece::Positional(self.positional - 1);
        }
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
        Piece::Named(name.to_owned())
    }

    /// Positional and named ones can't be filled by one kind of arguments.
    pub(super) fn check_kinds(&self) -> Result<(), String> {
        if self.positional > 0 && !self.names.is_empty() {
            return Err("has both {} and {name}: use one kind".into());
        }
        Ok(())
    }

    /// Every place has its value and every value its place: [`Template::fill`] relies on it.
    pub(super) fn check(&self, args: &Args) -> Result<(), DriverError> {
        let given = match args {
            Args::None => 0,
            Args::Positional(values) => values.len(),
            Args::Named(values) => return self.check_names(values),
        };
        if let Some(name) = self.names.first() {
            return Err(DriverError::fatal(format!("The placeholder {{{name}}} takes its value by name.")));
        }
        if given != self.positional {
            return Err(DriverError::fatal(format!(
                "The statement has {} placeholders, but {given} values came.",
                self.positional
            )));
        }
        Ok(())
    }

    fn check_names(&self, values: &[(String, Value)]) -> Result<(), DriverError> {
        if self.positional > 0 {
            return Err(DriverError::fatal("The placeholders {} take their values in order, not by name."));
        }
        if let Some(name) = self.names.iter().find(|name| !values.iter().any(|(given, _)| given == *name)) {
            return Err(DriverError::fatal(format!("No value came for the placeholder {{{name}}}.")));
        }
        match values.iter().find(|(given, _)| !self.names.contains(given)) {
            Some((given, _)) => Err(DriverError::fatal(format!("The statement has no placeholder {{{given}}}."))),
            None => Ok(()),
        }
    }
}

fn find<'a>(place: &Piece, args: &'a Args) -> &'a Value {
    let found = match (place, args) {
        (Piece::Positional(index), Args::Positional(values)) => values.get(*index),
        (Piece::Named(name), Args::Named(values)) => values.iter().find(|(n, _)| n == name).map(|(_, value)| value),
        _ => None,
    };
    // `Places::check` has seen to it that there is one.
    found.unwrap_or(&Value::Null)
}

fn is_name(text: &str) -> bool {
    text.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, args: &Args) -> String {
        let mut places = Places::default();
        let template = Template::parse(text, &mut places).expect(text);
        places.check(args).unwrap_or_else(|error| panic!("{error}"));
        let mut bytes = Vec::new();
        let write = |value: &Value, into: &mut Vec<u8>| {
            into.extend_from_slice(format!("<{value:?}>").as_bytes());
            Ok(())
        };
        template.fill(args, &mut bytes, write).expect(text);
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn values_go_to_their_places() {
        let args = Args::Positional(vec![Value::Int(1), Value::Bool(true)]);
        assert_eq!(filled("a{}b{}", &args), "a<Int(1)>b<Bool(true)>");
        let args = Args::Named(vec![("y".into(), Value::Int(2)), ("x_1".into(), Value::Int(1))]);
        assert_eq!(filled("{x_1}{y}{x_1}", &args), "<Int(1)><Int(2)><Int(1)>");
        assert_eq!(filled("{{\"a\": {}}}", &Args::Positional(vec![Value::Int(1)])), "{\"a\": <Int(1)>}");
    }

    #[test]
    fn braces_alone_are_refused() {
        for text in ["{", "}", "a{b c}", "{1}", "x}y", "{a"] {
            assert!(Template::parse(text, &mut Places::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn values_have_to_match_the_places() {
        let mut places = Places::default();
        Template::parse("{} {}", &mut places).expect("two places");
        for (args, part) in [
            (Args::None, "2 placeholders, but 0"),
            (Args::Positional(vec![Value::Null]), "but 1"),
            (Args::Named(Vec::new()), "in order"),
        ] {
            assert!(places.check(&args).unwrap_err().message.contains(part), "{part}");
        }
        let mut places = Places::default();
        Template::parse("{a}", &mut places).expect("a place");
        for (args, part) in [
            (Args::None, "by name"),
            (Args::Named(Vec::new()), "No value came for the placeholder {a}"),
            (Args::Named(vec![("a".into(), Value::Null), ("b".into(), Value::Null)]), "no placeholder {b}"),
        ] {
            assert!(places.check(&args).unwrap_err().message.contains(part), "{part}");
        }
        Template::parse("{}", &mut places).expect("another");
        assert!(places.check_kinds().is_err());
    }
}
