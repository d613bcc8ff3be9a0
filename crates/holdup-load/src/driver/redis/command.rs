//! A line such as `SET user:{} "{} years" EX 10` as a command.

use ::redis::Cmd;

use crate::driver::template::{Places, Template};
use crate::driver::{Args, DriverError, Value, value};

/// The words of a command with their places.
#[derive(Debug)]
pub(super) struct Command {
    words: Vec<Template>,
    places: Places,
}

impl Command {
    pub(super) fn parse(line: &str) -> Result<Command, DriverError> {
        let wrong = |why: String| DriverError::fatal(format!("The command {line:?} {why}."));
        let words = split(line).map_err(wrong)?;
        if words.is_empty() {
            return Err(wrong("is empty".into()));
        }
        let mut places = Places::default();
        let words =
            words.iter().map(|word| Template::parse(word, &mut places)).collect::<Result<_, _>>().map_err(wrong)?;
        places.check_kinds().map_err(wrong)?;
        Ok(Command { words, places })
    }

    /// A word that is nothing but a placeholder takes a list as so many words, and a map as keys and values by turns.
    pub(super) fn fill(&self, args: &Args) -> Result<Cmd, DriverError> {
        self.places.check(args)?;
        let mut command = Cmd::new();
        let mut word = Vec::new();
        for template in &self.words {
            let parts: Vec<&Value> = match template.only_value(args) {
                Some(Value::List(items)) => items.iter().collect(),
                Some(Value::Map(pairs)) => pairs.iter().flat_map(|(key, value)| [key, value]).collect(),
                _ => {
                    word.clear();
                    template.fill(args, &mut word, write)?;
                    command.arg(&word);
                    continue;
                }
            };
            for part in parts {
                word.clear();
                write(part, &mut word)
                    .map_err(|why| DriverError::fatal(format!("An element of a list can't be sent: {why}.")))?;
                command.arg(&word);
            }
        }
        Ok(command)
    }
}

/// Redis knows bytes alone: numbers are their digits.
fn write(value: &Value, into: &mut Vec<u8>) -> Result<(), String> {
    match value {
        Value::Bool(bool) => into.push(if *bool { b'1' } else { b'0' }),
        Value::Int(int) => into.extend_from_slice(int.to_string().as_bytes()),
        Value::Float(float) => into.extend_from_slice(float.to_string().as_bytes()),
        Value::Text(text) => into.extend_from_slice(text.as_bytes()),
        Value::Blob(bytes) => into.extend_from_slice(bytes),
        Value::Uuid(bytes) => into.extend_from_slice(value::show_uuid(bytes).as_bytes()),
        Value::Null | Value::List(_) | Value::Map(_) => {
            return Err(format!("{} cannot be a word of a Redis command", value.kind()));
        }
    }
    Ok(())
}

/// Words as a shell has them: quotes of both kinds, and a backslash before one character. In double quotes `\n`, `\r`, `\t`
/// are what they are in C.
fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match (char, quote) {
            (_, Some(open)) if char == open => quote = None,
            ('\\', None | Some('"')) => {
                let next = chars.next().ok_or("ends in a backslash")?;
                let meant = match (next, quote) {
                    ('n', Some(_)) => '\n',
                    ('r', Some(_)) => '\r',
                    ('t', Some(_)) => '\t',
                    _ => next,
                };
                word.get_or_insert_default().push(meant);
            }
            (_, Some(_)) => word.get_or_insert_default().push(char),
            ('"' | '\'', None) => {
                quote = Some(char);
                // Two quotes are an empty word.
                word.get_or_insert_default();
            }
            (_, None) if char.is_whitespace() => words.extend(word.take()),
            (_, None) => word.get_or_insert_default().push(char),
        }
    }
    if let Some(open) = quote {
        return Err(format!("lacks the closing {open}"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(line: &str, args: &Args) -> Result<Vec<String>, String> {
        let command = Command::parse(line).and_then(|command| command.fill(args)).map_err(|error| error.message)?;
        Ok(command
            .args_iter()
            .map(|arg| match arg {
                ::redis::Arg::Simple(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                other => panic!("{other:?}"),
            })
            .collect())
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        for (line, words) in [
            ("GET a", &["GET", "a"][..]),
            ("  SET  a\t'b c' ", &["SET", "a", "b c"]),
            (r#"SET a "b \"c\"\n""#, &["SET", "a", "b \"c\"\n"]),
            (r"SET 'a\n' b\ c", &["SET", r"a\n", "b c"]),
            ("SET a ''", &["SET", "a", ""]),
            ("SET a x'y'\"z\"", &["SET", "a", "xyz"]),
        ] {
            assert_eq!(packed(line, &Args::None).unwrap(), words, "{line}");
        }
        for (line, part) in
            [("", "empty"), ("SET 'a", "closing '"), ("SET a\\", "backslash"), ("SET {", "belongs to no")]
        {
            assert!(packed(line, &Args::None).unwrap_err().contains(part), "{line}");
        }
    }

    #[test]
    fn values_never_split_a_word() {
        let args = Args::Positional(vec![Value::Int(7), Value::Text("a 'b".into())]);
        assert_eq!(packed("SET user:{} \"<{}>\"", &args).unwrap(), ["SET", "user:7", "<a 'b>"]);
        let args = Args::Positional(vec![Value::Null]);
        assert!(packed("GET {}", &args).unwrap_err().contains("nothing cannot be a word"));
    }

    #[test]
    fn a_list_alone_is_many_words() {
        let list = Value::List(vec![Value::Int(1), Value::Float(0.5)]);
        assert_eq!(packed("MGET {}", &Args::Positional(vec![list.clone()])).unwrap(), ["MGET", "1", "0.5"]);
        let map = Value::Map(vec![(Value::Text("k".into()), Value::Bool(true))]);
        assert_eq!(packed("HSET h {f}", &Args::Named(vec![("f".into(), map)])).unwrap(), ["HSET", "h", "k", "1"]);
        assert!(packed("GET x{}", &Args::Positional(vec![list])).unwrap_err().contains("a list cannot be a word"));
    }
}
