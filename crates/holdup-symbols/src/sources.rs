//! Where names come from beside this machine's own files.

use crate::symbol_path::SymbolPath;

/// Where to look for names of traces from elsewhere. Nothing by default.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    pub(crate) path: SymbolPath,
    pub(crate) notes: Vec<String>,
}

impl Sources {
    /// From what the user says: `option` is that of the command line, a symbol path; `variable` is `_NT_SYMBOL_PATH`.
    ///
    /// Only servers of the command line are asked: the variable is often there for other programs.
    pub fn new(option: Option<&str>, variable: Option<&str>) -> Sources {
        let mut sources = Sources { path: SymbolPath::parse(option.unwrap_or_default()), notes: Vec::new() };
        let path = SymbolPath::parse(variable.unwrap_or_default());
        if option.is_none()
            && let Some(server) = path.servers().next()
        {
            let ask = "is not asked for symbols unless it is named on the command line: --symbols";
            sources.notes.push(format!("{server} (from _NT_SYMBOL_PATH) {ask} {server}"));
        }
        sources.path.0.extend(path.local().0);
        sources
    }
}
