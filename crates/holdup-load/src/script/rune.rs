//! The engine: Rune, compiled once for each thread.

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use rune::diagnostics::{Diagnostic, FatalDiagnosticKind};
use rune::runtime::{RuntimeContext, budget};
use rune::{Context as Modules, Diagnostics, Hash, Module, Options, Sources, TypeHash as _, Unit, Value, Vm};

use super::beneath::Files;
use super::context::Context;
use super::failure::Failure;
use super::limits::{Limits, shortened};
use super::param::Params;
use super::texts::{self, Texts};
use super::{
    Caller, Calling, FunctionInfo, ParamInfo, Place, Script, ScriptError, Source, data, files, numbers, printing,
    values,
};
use crate::session::Session;

/// A script that this thread compiled. Nothing in it is known to another thread.
struct Compiled {
    runtime: Arc<RuntimeContext>,
    unit: Arc<Unit>,
    written: Rc<Written>,
    context: Value,
    functions: Vec<FunctionInfo>,
    params: Vec<ParamInfo>,
    load_count: Option<u64>,
}

/// What messages need to know of a script.
struct Written {
    sources: Sources,
    texts: Texts,
    limits: Limits,
}

/// Runs `body` on this thread with so much memory for the engine.
pub(super) fn within<T>(memory: usize, body: impl FnOnce() -> T) -> T {
    rune::alloc::limit::with(memory, body).call()
}

pub(super) fn compile(source: &Source, session: &Rc<Session>) -> Result<Rc<dyn Script>, ScriptError> {
    match try_compile(source, session) {
        Err(error) if error.message.contains(NO_MEMORY) => Err(ScriptError::limit(None, source.limits.too_much())),
        compiled => compiled,
    }
}

fn try_compile(source: &Source, session: &Rc<Session>) -> Result<Rc<dyn Script>, ScriptError> {
    let params = Params::new(&source.params);
    let files = Files::of(&source.path, source.limits.any_file);
    let modules = modules(&files, &params).map_err(ScriptError::internal)?;
    let texts = Texts::default();
    let mut sources = Sources::new();
    let (script, text) = texts.read_script(&source.path)?;
    sources.insert(script).map_err(ScriptError::internal)?;
    let mut has_load_count = text.contains("const LOAD_COUNT");
    if let Some(path) = library_of(&source.path, &text)
        && let Some((library, text)) = texts.read_part(&files, &path)?
    {
        has_load_count |= text.contains("const LOAD_COUNT");
        sources.insert(library).map_err(ScriptError::internal)?;
    }
    if has_load_count {
        sources.insert(load_count_source().map_err(ScriptError::internal)?).map_err(ScriptError::internal)?;
    }
    let unit = build(&mut sources, &modules, texts::Modules { files, texts: texts.clone() })?;
    let functions = functions(&unit);
    let script = Compiled {
        runtime: Arc::new(modules.runtime().map_err(ScriptError::internal)?),
        unit: Arc::new(unit),
        written: Rc::new(Written { sources, texts, limits: source.limits }),
        context: Value::new(Context::new(Rc::clone(session)).map_err(ScriptError::internal)?)
            .map_err(ScriptError::internal)?,
        functions,
        params: params.seen(),
        load_count: None,
    };
    let load_count = if has_load_count { script.constant_load_count() } else { None };
    Ok(Rc::new(Compiled { load_count, ..script }))
}

/// A file `lib.rn` beside the script is compiled with it, as if it stood in the same file: workloads of one folder share
/// their schema and constants through it, as they do in Latte. Not if the script takes it as a module of that name.
fn library_of(path: &Path, text: &str) -> Option<PathBuf> {
    let library = path.with_file_name("lib.rn");
    let is_module = text.lines().any(|line| line.trim_start().starts_with("mod lib"));
    (path != library && !is_module).then_some(library)
}

/// Reads the constant `LOAD_COUNT`: the engine shows constants to scripts only, so a line of script asks for it.
const LOAD_COUNT_FUNCTION: &str = "holdup_load_count";

fn load_count_source() -> rune::alloc::Result<rune::Source> {
    rune::Source::new(LOAD_COUNT_FUNCTION, format!("pub fn {LOAD_COUNT_FUNCTION}() {{ LOAD_COUNT }}"))
}

/// What a script can use: Rune's own modules without standard output, ours as `latte`, files as `fs`. None of Rune's own reaches
/// a file, a process, the network or the environment.
fn modules(files: &Files, params: &Params) -> Result<Modules, rune::ContextError> {
    let mut modules = Modules::with_config(false)?;
    modules.install(printing::module()?)?;
    let mut ours = Module::with_crate("latte")?;
    let params = params.clone();
    ours.macro_("param", move |context, stream| params.expand(context, stream))?;
    super::context::install(&mut ours)?;
    super::failure::install(&mut ours)?;
    values::install(&mut ours)?;
    data::install(&mut ours)?;
    numbers::install(&mut ours)?;
    modules.install(ours)?;
    modules.install(files::module(files)?)?;
    Ok(modules)
}

fn build(sources: &mut Sources, modules: &Modules, mut loader: texts::Modules) -> Result<Unit, ScriptError> {
    let mut diagnostics = Diagnostics::without_warnings();
    // Not those of the environment.
    let options = Options::default();
    let built = rune::prepare(sources)
        .with_context(modules)
        .with_diagnostics(&mut diagnostics)
        .with_options(&options)
        .with_source_loader(&mut loader)
        .build();
    built.map_err(|e| {
        let first = diagnostics.diagnostics().iter().find_map(|diagnostic| match diagnostic {
            Diagnostic::Fatal(fatal) => Some(fatal),
            _ => None,
        });
        match first.map(|fatal| (fatal, fatal.kind())) {
            Some((fatal, FatalDiagnosticKind::CompileError(error))) => {
                let at = rune::ast::Spanned::span(error).range().start;
                ScriptError::new(place(sources, fatal.source_id(), at), error)
            }
            Some((_, kind)) => ScriptError::new(None, kind),
            None => ScriptError::new(None, e),
        }
    })
}

/// The functions at the top of the script, by name.
fn functions(unit: &Unit) -> Vec<FunctionInfo> {
    let signatures = unit.debug_info().into_iter().flat_map(|debug| debug.functions.values());
    let mut functions: Vec<FunctionInfo> = signatures
        .filter_map(|signature| {
            // The engine shows a signature as `name(a, b)`, and keeps its parts to itself.
            let shown = signature.to_string();
            let (path, names) = shown.split_once('(').unwrap_or((&shown, ")"));
            let args = names.trim_end_matches(')').split(',').filter(|name| !name.trim().is_empty()).count();
            let is_ours = !path.contains([':', '$']) && path != LOAD_COUNT_FUNCTION;
            is_ours.then(|| FunctionInfo { name: path.to_owned(), args })
        })
        .collect();
    functions.sort_by(|a, b| a.name.cmp(&b.name));
    functions.dedup();
    functions
}

fn place(sources: &Sources, id: rune::SourceId, at: usize) -> Option<Place> {
    let source = sources.get(id)?;
    let (line, column) = source.pos_to_utf8_linecol(at);
    let file = source.path().map_or_else(|| source.name().into(), Path::to_owned);
    Some(Place { file, line: line + 1, column: column + 1 })
}

impl Compiled {
    /// The constant `LOAD_COUNT`, if it is a count.
    fn constant_load_count(&self) -> Option<u64> {
        let mut vm = Vm::new(Arc::clone(&self.runtime), Arc::clone(&self.unit));
        budget::with(self.written.limits.steps(), || vm.call([LOAD_COUNT_FUNCTION], ())).call().ok()?.as_integer().ok()
    }
}

impl Script for Compiled {
    fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    fn params(&self) -> &[ParamInfo] {
        &self.params
    }

    fn caller(&self, function: &str) -> Result<Box<dyn Caller>, ScriptError> {
        let Some(info) = self.functions.iter().find(|info| info.name == function) else {
            let names: Vec<&str> = self.functions.iter().map(|info| info.name.as_str()).collect();
            let names = names.join(", ");
            return Err(ScriptError::new(None, format!("the script has no public function `{function}`, but {names}")));
        };
        if !(1..=2).contains(&info.args) {
            let what = format!("`{function}` takes {} arguments; it should take `ctx` or `ctx, i`", info.args);
            return Err(ScriptError::new(None, what));
        }
        Ok(Box::new(Slot {
            vm: Vm::new(Arc::clone(&self.runtime), Arc::clone(&self.unit)),
            written: Rc::clone(&self.written),
            steps: self.written.limits.steps(),
            context: self.context.clone(),
            function: Hash::type_hash([function]),
            takes_cycle: info.args == 2,
        }))
    }

    fn load_count(&self) -> Option<u64> {
        let asked = self.context.borrow_ref::<Context>().ok()?.load_cycle_count;
        if asked > 0 { Some(asked) } else { self.load_count }
    }
}

/// A virtual machine for one call at a time.
struct Slot {
    vm: Vm,
    written: Rc<Written>,
    /// How many of the engine's steps it may take between two waits.
    steps: usize,
    context: Value,
    function: Hash,
    takes_cycle: bool,
}

impl Caller for Slot {
    fn call(&mut self, cycle: i64) -> Calling<'_> {
        Box::pin(async move {
            let context = self.context.clone();
            let execution = if self.takes_cycle {
                self.vm.execute(self.function, (context, cycle))
            } else {
                self.vm.execute(self.function, (context,))
            };
            let result = match execution {
                Ok(mut execution) => {
                    let mut running = pin!(execution.async_complete());
                    // Anew each time: what goes on between two waits counts, not what they come to.
                    let polled = poll_fn(|cx| budget::with(self.steps, || running.as_mut().poll(cx)).call()).await;
                    polled.into_result()
                }
                Err(error) => Err(error),
            };
            match result {
                Ok(value) => self.check(&value).map_err(Box::new),
                Err(error) => Err(Box::new(self.stopped(&error))),
            }
        })
    }
}

impl Slot {
    /// An error that the script returned. It has no place of its own; the last instruction that ran is the `?` or `return` that
    /// gave it back.
    fn check(&self, value: &Value) -> Result<(), ScriptError> {
        if value.type_hash() != <Result<Value, Value>>::HASH {
            return Ok(());
        }
        let Ok(result) = value.borrow_ref::<Result<Value, Value>>() else { return Ok(()) };
        let Err(error) = &*result else { return Ok(()) };
        let place = self.place_of(self.vm.last_ip());
        Err(match error.borrow_ref::<Failure>() {
            Ok(failure) => {
                let error = ScriptError::new(place, &failure.message);
                ScriptError { is_transient: failure.is_transient, ..error }
            }
            Err(_) => ScriptError::new(place, words(error)),
        })
    }

    /// An error of the virtual machine: a panic, a wrong type, an overflow.
    fn stopped(&self, error: &rune::runtime::VmError) -> ScriptError {
        let ip = error.first_location().map(|location| location.ip);
        let said = error.to_string();
        if let Some(limit) = self.limit(&said) {
            // What no instruction caused has no place of its own: it is where the machine stands.
            let place = [ip, Some(self.vm.ip()), Some(self.vm.last_ip())]
                .into_iter()
                .flatten()
                .find_map(|ip| self.place_of(ip));
            return ScriptError::limit(place, limit);
        }
        // The engine keeps no names of methods, only their hashes: the name stands in the script.
        let message = match ip.and_then(|ip| self.method_at(ip)).filter(|_| said.starts_with(NO_METHOD)) {
            Some(name) => {
                said.split("` for ").nth(1).map_or(said.clone(), |of| format!("there is no method `{name}` for {of}"))
            }
            None => said,
        };
        ScriptError::new(ip.and_then(|ip| self.place_of(ip)), message)
    }

    /// The sentence of the limit that the script came to, if it did.
    fn limit(&self, said: &str) -> Option<String> {
        let limits = &self.written.limits;
        if said.contains(NO_STEPS) {
            return Some(limits.too_many_steps());
        }
        (said.contains(NO_MEMORY) || said.contains(NO_SUCH_MEMORY)).then(|| limits.too_much())
    }

    /// The method that the instruction calls. The engine shows no text of its sources.
    fn method_at(&self, ip: usize) -> Option<String> {
        let instruction = self.vm.unit().debug_info()?.instruction_at(ip)?;
        let text = self.written.texts.get(self.written.sources.get(instruction.source_id)?.path()?)?;
        last_method(text.get(instruction.span.range())?).map(str::to_owned)
    }

    fn place_of(&self, ip: usize) -> Option<Place> {
        let instruction = self.vm.unit().debug_info()?.instruction_at(ip)?;
        place(&self.written.sources, instruction.source_id, instruction.span.range().start)
    }
}

/// How the engine says that it may take no more steps, that it may have no more memory, and that no memory is so large.
const NO_STEPS: &str = "Halted for unexpected reason `limited`";
const NO_MEMORY: &str = "bytes of memory";
const NO_SUCH_MEMORY: &str = "Capacity overflow";

/// How the engine begins to say that a value has no such method.
const NO_METHOD: &str = "Missing instance function";

/// The method that is called last in an expression such as `a.b(c.d(1)).e(2)`: `e`.
fn last_method(expression: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let mut last = None;
    for (at, letter) in expression.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '.' if depth == 0 => last = Some(at + 1),
            _ => {}
        }
    }
    let name = expression[last?..].trim_start();
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    (end > 0).then(|| &name[..end])
}

/// What a script would print of an error value.
fn words(value: &Value) -> String {
    if let Ok(text) = value.borrow_string_ref() {
        return shortened(text.to_owned());
    }
    format!("the function returned an error of type {}", value.type_info())
}
