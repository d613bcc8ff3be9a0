//! `param!("rows", 100000)`: a value that the command line can change.

use std::sync::{Arc, Mutex, PoisonError};

use rune::ast;
use rune::macros::{MacroContext, TokenStream, quote};
use rune::parse::Parser;

use super::ParamInfo;

/// What the compiler learns of a script's parameters. Shared with the macro, which the compiler owns; no thread but the
/// compiling one ever looks at it.
#[derive(Clone, Debug, Default)]
pub(super) struct Params {
    given: Arc<Vec<(String, String)>>,
    seen: Arc<Mutex<Vec<ParamInfo>>>,
}

impl Params {
    pub(super) fn new(given: &[(String, String)]) -> Params {
        Params { given: Arc::new(given.to_vec()), seen: Arc::default() }
    }

    /// The parameters that the script asked for, in their order.
    pub(super) fn seen(&self) -> Vec<ParamInfo> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, info: ParamInfo) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.iter().any(|param| param.name == info.name) {
            seen.push(info);
        }
    }

    /// Replaces the macro by the value of the command line, or by its second argument.
    pub(super) fn expand(
        &self,
        context: &mut MacroContext<'_, '_, '_>,
        stream: &TokenStream,
    ) -> rune::compile::Result<TokenStream> {
        let mut parser = Parser::from_token_stream(stream, context.macro_span());
        let name = parser.parse::<ast::LitStr>()?;
        let name = context.resolve(name)?.to_string();
        parser.parse::<ast::Comma>()?;
        let default = parser.parse::<ast::Expr>()?;
        parser.eof()?;
        let written = context.stringify(&default)?.to_string();
        let value = self.given.iter().rev().find(|(given, _)| *given == name).map(|(_, value)| value.clone());
        self.note(ParamInfo { name: name.clone(), default: written.clone(), value: value.clone() });
        let Some(value) = value else { return Ok(quote!(#default).into_token_stream(context)?) };
        let id = context.insert_source(&format!("-P {name}"), &as_written(&value, &written))?;
        let value = context.parse_source::<ast::Expr>(id)?;
        Ok(quote!(#value).into_token_stream(context)?)
    }
}

/// The value as an expression: where the default is text, plain words are text too, so that a shell needs no double quoting.
fn as_written(value: &str, default: &str) -> String {
    let is_quoted = |text: &str| text.starts_with('"') || text.starts_with('`');
    if is_quoted(default.trim()) && !is_quoted(value.trim()) { format!("{value:?}") } else { value.to_owned() }
}
