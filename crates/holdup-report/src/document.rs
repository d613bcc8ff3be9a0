//! Puts the parts into one document.

use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{GLUE, WASM, gzip};

/// The page as it was built from `ui/`.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// `index.html`
    pub html: &'a str,
    /// `app.js`
    pub script: &'a str,
    /// `app.css`
    pub style: &'a str,
}

/// A trace that the document brings along.
#[derive(Debug, Clone)]
pub struct Shown {
    /// What it is called.
    pub name: String,
    /// Its bytes as a `.holdup` file, packed by [`gzip`].
    pub packed: Vec<u8>,
    /// What is said of the recording of which it is a part; JSON null if it is the whole of it.
    pub part: Value,
}

/// Where the page links its style sheet.
const STYLE: &str = r#"<link rel="stylesheet" href="app.css">"#;
/// Where it calls its script.
const SCRIPT: &str = r#"<script src="app.js" defer></script>"#;
/// Behind this stands the policy.
const CHARSET: &str = r#"<meta charset="utf-8">"#;

/// The document: `page` with `traces` and all that shows them.
///
/// # Errors
/// A sentence, if the page is not what `ui/` builds: that is a mistake of ours.
pub fn document(page: &Page, traces: &[Shown]) -> Result<String, String> {
    let (script, style) = (page.script, page.style);
    if script.contains("</script") || script.contains("<!--") || GLUE.contains("</script") || GLUE.contains("<!--") {
        return Err("a script of the page holds what ends a script: it cannot stand inside the report".to_owned());
    }
    if style.contains("</style") {
        return Err("the page's style sheet holds what ends it: it cannot stand inside the report".to_owned());
    }
    let (script_hash, style_hash) = (hash(script), hash(style));
    let policy = [
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '",
        &script_hash,
        "' blob: 'wasm-unsafe-eval'; worker-src blob:; style-src '",
        &style_hash,
        "'; img-src data: blob:; base-uri 'none'; form-action 'none'\">",
    ]
    .concat();
    let mut blocks = String::new();
    let mut block = |id: &str, kind: &str, text: &str| {
        for part in [r#"<script type=""#, kind, r#"" id=""#, id, "\">", text, "</script>\n"] {
            blocks.push_str(part);
        }
    };
    block("holdup-host", "application/json", &host(traces));
    block("holdup-glue", "text/plain", GLUE);
    block("holdup-wasm", "text/plain", wasm()?);
    for (i, shown) in traces.iter().enumerate() {
        block(&element(i), "text/plain", &STANDARD.encode(&shown.packed));
    }
    let html = replace(page.html, CHARSET, &format!("{CHARSET}\n{policy}"))?;
    let html = replace(&html, STYLE, &format!("<style>{style}</style>"))?;
    // A script within a document is not deferred: it stands last.
    let html = replace(&html, SCRIPT, "")?;
    replace(&html, "</body>", &format!("{blocks}<script>{script}</script>\n</body>"))
}

/// The browser's side, as it stands in a document.
fn wasm() -> Result<&'static str, String> {
    static TEXT: OnceLock<Result<String, String>> = OnceLock::new();
    let text = TEXT.get_or_init(|| match zstd::decode_all(WASM) {
        Ok(module) => Ok(STANDARD.encode(gzip(&module))),
        Err(e) => Err(format!("the browser's side is damaged: {e}; run cargo xtask wasm")),
    });
    text.as_deref().map_err(Clone::clone)
}

fn element(number: usize) -> String {
    format!("holdup-trace-{number}")
}

/// What the page's script is told: who answers, and which traces there are.
fn host(traces: &[Shown]) -> String {
    let brought = |(i, shown): (usize, &Shown)| {
        let mut one = json!({ "element": element(i), "name": shown.name });
        // Of a whole there is nothing to say, and what the trace itself says stays.
        if !shown.part.is_null() {
            one["part"] = shown.part.clone();
        }
        one
    };
    let all: Vec<Value> = traces.iter().enumerate().map(brought).collect();
    let first = traces.first().map(|shown| &shown.name);
    let host = json!({ "kind": "wasm", "traces": all, "trace": first });
    // JSON has `<` in strings alone.
    host.to_string().replace('<', "\\u003c")
}

fn replace(html: &str, what: &str, with: &str) -> Result<String, String> {
    match html.split_once(what) {
        Some((before, after)) => Ok([before, with, after].concat()),
        None => Err(format!("the page has no {what}: it was not built for reports")),
    }
}

/// The hash by which a policy allows `text`.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// How long the document is that holds traces of so many packed bytes, within some hundred bytes.
impl Page<'_> {
    /// Bytes of the document without traces.
    ///
    /// # Errors
    /// As [`document`].
    pub fn size(&self) -> Result<usize, String> {
        document(self, &[]).map(|html| html.len())
    }
}

/// Packs a trace's file for [`Shown`].
impl Shown {
    /// A trace called `name`, with the bytes of its `.holdup` file.
    pub fn new(name: &str, file: &[u8], part: Value) -> Self {
        Shown { name: name.to_owned(), packed: gzip(file), part }
    }

    /// How many bytes it takes in the document.
    pub fn size(&self) -> usize {
        self.packed.len().div_ceil(3) * 4 + self.part.to_string().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page {
        html: "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<link rel=\"stylesheet\" href=\"app.css\">\n</head>\n<body>\n\
               <div id=\"app\"></div>\n<script src=\"app.js\" defer></script>\n</body>\n</html>\n",
        script: "start()",
        style: "b{}",
    };

    fn shown(name: &str) -> Shown {
        Shown::new(name, b"PK\x03\x04 a trace", serde_json::json!({ "of": { "duration_s": 2.0 } }))
    }

    #[test]
    fn all_stands_in_one_file() {
        let html = document(&PAGE, &[shown("one"), shown("two")]).expect("document");
        for no in ["src=", "href=", "http:", "https:"] {
            let outside = html.replace(GLUE, "");
            assert!(!outside.contains(no), "{no} in the document");
        }
        // The hash is that of the script between its tags.
        let script = html.rsplit_once("<script>").expect("script").1.split_once("</script>").expect("its end").0;
        assert_eq!(script, "start()");
        assert!(html.contains(&hash(script)), "{html:.400}");
        for id in ["holdup-host", "holdup-glue", "holdup-wasm", "holdup-trace-0", "holdup-trace-1"] {
            assert!(html.contains(&format!("id=\"{id}\"")), "{id}");
        }
        assert_eq!(PAGE.size().expect("size"), document(&PAGE, &[]).expect("document").len());
    }

    #[test]
    fn names_are_no_markup() {
        let hostile = "</script><script>alert(1)</script><!--";
        let html = document(&PAGE, &[shown(hostile)]).expect("document");
        assert!(!html.contains("alert(1)</script>") && !html.contains("<!--"), "the name is markup");
        let json = html.split_once("id=\"holdup-host\">").expect("host").1.split_once("</script>").expect("end").0;
        let host: Value = serde_json::from_str(json).expect("json");
        assert_eq!(host["traces"][0]["name"], hostile);
    }

    #[test]
    fn the_trace_comes_back() {
        let html = document(&PAGE, &[shown("one")]).expect("document");
        let text = html.split_once("id=\"holdup-trace-0\">").expect("trace").1.split_once("</script>").expect("end").0;
        let packed = STANDARD.decode(text).expect("base64");
        assert_eq!(crate::gunzip(&packed).expect("gzip"), b"PK\x03\x04 a trace");
    }

    #[test]
    fn scripts_that_would_end_early_are_refused() {
        let page = Page { script: "x = '</script>'", ..PAGE };
        assert!(document(&page, &[]).is_err());
        assert!(document(&Page { html: "<html>", ..PAGE }, &[]).is_err());
    }
}
