//! What held the cores up: in short, one cause whole, stalls; and runs compared.

use holdup_analysis::diff::{DiffOptions, Facts, diff};
use holdup_analysis::report::Finding;
use holdup_analysis::{Explanation, Options};
use serde_json::{Value, json};

use crate::arguments;
use crate::desk::Desk;
use crate::shape::{Answer, quoted};

pub(crate) fn options(focus: Option<String>, window: Option<[f64; 2]>) -> Result<Options, String> {
    Ok(Options { window: ordered(window)?, focus, top: usize::MAX, ..Options::default() })
}

pub(crate) fn ordered(window: Option<[f64; 2]>) -> Result<Option<(f64, f64)>, String> {
    match window {
        None => Ok(None),
        Some([from, to]) if from >= 0.0 && to > from => Ok(Some((from, to))),
        Some(_) => Err("window: two seconds, the later one behind".into()),
    }
}

fn explanation(desk: &Desk, trace: &str, options: &Options) -> Result<Explanation, String> {
    let opened = desk.trace(trace)?;
    holdup_analysis::explain(&opened, trace, options, desk.workplace.disassembler()).map_err(|e| e.to_string())
}

/// The arguments again, for the next question about the same.
fn same(trace: &str, focus: Option<&str>, window: Option<[f64; 2]>, more: &Value) -> Value {
    let mut arguments = json!({"trace": trace});
    let fields = arguments.as_object_mut().into_iter();
    for fields in fields {
        fields.extend(focus.map(|focus| ("focus".to_owned(), json!(focus))));
        fields.extend(window.map(|window| ("window".to_owned(), json!(window))));
        fields.extend(more.as_object().cloned().unwrap_or_default());
    }
    arguments
}

/// Causes that are shown; the others are counted.
const CAUSES: usize = 5;

pub(crate) fn explain(desk: &Desk, asked: &arguments::Explain) -> Result<Value, String> {
    let found = explanation(desk, &asked.trace, &options(asked.focus.clone(), asked.window)?)?;
    let whole = serde_json::to_value(&found).map_err(|e| e.to_string())?;
    let shown: Vec<&Finding> = found.on_page().take(CAUSES).collect();
    let findings: Vec<Value> = shown.iter().map(|finding| in_short(finding)).collect();
    let stalls: Vec<&str> = found.stalls.iter().take(3).map(|stall| stall.title.as_str()).collect();
    let again = |more: Value| same(&asked.trace, asked.focus.as_deref(), asked.window, &more);
    let mut answer = Answer::new()
        .with_some(&whole, &["trace", "cpu_seconds", "mostly_idle"])
        .with("caveats", found.caveats.iter().map(|c| &c.what).collect::<Vec<_>>())
        .with("findings", findings)
        .with("more_findings", found.findings.len() - shown.len())
        .with_some(&whole, &["smaller"])
        .with("stalls", stalls)
        .with_some(&whole, &["health"]);
    if let Some(first) = shown.first() {
        answer = answer.next("finding", "all evidence of the first cause", &again(json!({"id": first.id})));
        if let Some(&[from, to]) = first.windows.first() {
            let at = json!({"trace": asked.trace, "at_s": (from + to) / 2.0});
            answer = answer.next("chain", "one of its waits, hop by hop", &at);
        }
        if first.culprit.instruction.is_some() {
            let function = json!({"trace": asked.trace, "function": first.culprit.function});
            answer = answer.next("disasm", "its hot instructions", &function);
        }
    }
    if found.stalls.len() > 3 {
        answer = answer.next("stalls", "all short stretches", &again(json!({})));
    }
    Ok(answer.finish())
}

fn in_short(finding: &Finding) -> Value {
    let (culprit, waiters) = (&finding.culprit, &finding.waiters);
    let names = [&culprit.process, &culprit.thread, &culprit.function, &culprit.module, &waiters.function];
    let names: Vec<&str> = names.into_iter().chain(&waiters.names).map(String::as_str).collect();
    let instruction = culprit.instruction.as_ref();
    json!({
        "id": finding.id,
        "kind": finding.kind,
        "title": quoted(&finding.title, &names),
        "culprit": {
            "process": culprit.process, "pid": culprit.pid, "thread": culprit.thread, "tid": culprit.tid,
            "function": culprit.function, "source": culprit.source,
            "instruction": instruction.map(|i| json!({"address": i.address, "text": i.text, "share": i.share})),
        },
        "waiters": {"threads": waiters.threads, "waits": waiters.waits, "max_s": waiters.max_s, "function": waiters.function},
        "blame_cpu_s": finding.blame_cpu_s,
        "lasted_s": finding.lasted_s,
        "gain_at_most": finding.gain_at_most,
        "confidence": finding.confidence,
        "doubts": finding.doubts,
        "advice": quoted(&finding.advice, &names),
    })
}

pub(crate) fn finding(desk: &Desk, asked: &arguments::Finding) -> Result<Value, String> {
    let found = explanation(desk, &asked.trace, &options(asked.focus.clone(), asked.window)?)?;
    let Some(finding) = found.findings.iter().find(|f| f.id == asked.id) else {
        let all = found.findings.len();
        return Err(format!("there is no finding {:?}; explain with this focus and window has {all}", asked.id));
    };
    let answer = Answer::new().with("finding", finding);
    Ok(match finding.windows.first() {
        Some(&[from, to]) => {
            let at = json!({"trace": asked.trace, "at_s": (from + to) / 2.0});
            answer.next("chain", "one of its waits, hop by hop", &at).finish()
        }
        None => answer.finish(),
    })
}

pub(crate) fn stalls(desk: &Desk, asked: &arguments::Explain) -> Result<Value, String> {
    let found = explanation(desk, &asked.trace, &options(asked.focus.clone(), asked.window)?)?;
    let answer = Answer::new().with("stalls", &found.stalls);
    Ok(match found.stalls.first().and_then(|stall| stall.windows.first()) {
        Some(&[from, to]) => {
            let at = json!({"trace": asked.trace, "at_s": (from + to) / 2.0});
            answer.next("chain", "a wait in the longest one, hop by hop", &at).finish()
        }
        None => answer.with("note", "no stretch stands out").finish(),
    })
}

pub(crate) fn compare(desk: &Desk, asked: &arguments::Diff) -> Result<Value, String> {
    const MOST_RUNS: usize = 16;
    if asked.before.is_empty() || asked.after.is_empty() || asked.before.len() + asked.after.len() > 2 * MOST_RUNS {
        return Err(format!("before and after: 1 to {MOST_RUNS} traces each"));
    }
    let options = options(asked.focus.clone(), None)?;
    let facts = |names: &[String]| {
        let one = |name: &String| {
            let trace = desk.trace(name)?;
            Facts::new(&trace, name, &options, desk.workplace.disassembler()).map_err(|e| e.to_string())
        };
        names.iter().map(one).collect::<Result<Vec<Facts>, String>>()
    };
    let (before, after) = (facts(&asked.before)?, facts(&asked.after)?);
    let found = diff(&before, &after, &DiffOptions { per: None, fail_on: None });
    let mut whole = serde_json::to_value(&found).map_err(|e| e.to_string())?;
    let shown = whole.get_mut("changes").and_then(Value::as_array_mut);
    let further = shown.map_or(0, |changes| {
        let further = changes.len().saturating_sub(8);
        changes.truncate(8);
        further
    });
    let names = ["before", "after", "slower", "cpu", "changes", "within_noise", "notes"];
    Ok(Answer::new().with_some(&whole, &names).with("further_changes", further).finish())
}
