//! One wait to its cause, and one function instruction by instruction.

use holdup_analysis::annotate::annotate;
use holdup_analysis::chain::{self, Start};
use serde_json::{Value, json};

use crate::arguments;
use crate::desk::Desk;
use crate::shape::Answer;

pub(crate) fn follow(desk: &Desk, asked: &arguments::Chain) -> Result<Value, String> {
    let start = match (asked.wait, asked.at_s) {
        (Some(wait), _) => Start::Wait(wait),
        (None, Some(seconds)) if seconds >= 0.0 => Start::At { seconds, thread: asked.thread.clone() },
        _ => return Err("give wait (its number) or at_s (an instant in seconds)".into()),
    };
    let options = chain::Options { start, focus: asked.focus.clone(), follow: false, top: 8 };
    let trace = desk.trace(&asked.trace)?;
    let mut found =
        chain::chain(&trace, &asked.trace, &options, desk.workplace.disassembler()).map_err(|e| e.to_string())?;
    let main = found.hops.get(found.end.main_hop).map(|hop| hop.did.function.clone()).filter(|f| !f.is_empty());
    for wait in found.hops.iter_mut().filter_map(|hop| hop.wait.as_mut()) {
        application(&mut wait.stack);
        application(&mut wait.waker_stack);
    }
    let whole = serde_json::to_value(&found).map_err(|e| e.to_string())?;
    let answer =
        Answer::new().with_some(&whole, &["at_s", "also_waiting", "note", "end", "shares", "hops", "handoffs"]);
    Ok(match main {
        Some(function) => {
            let arguments = json!({"trace": asked.trace, "function": function});
            answer.next("disasm", "what the one that answers for most of it ran", &arguments).finish()
        }
        None => answer.finish(),
    })
}

/// Keeps of a stack what is next to the application: how the kernel blocks and wakes a thread is always the same.
fn application(stack: &mut Vec<String>) {
    const FRAMES: usize = 6;
    let entry =
        stack.iter().position(|frame| frame.starts_with("entry_SYSCALL_64") || frame.starts_with("el0t_64_sync"));
    stack.drain(..entry.map_or(0, |at| at + 1));
    stack.truncate(FRAMES);
}

/// Instructions that are shown, the hottest.
const INSTRUCTIONS: usize = 24;

pub(crate) fn disasm(desk: &Desk, asked: &arguments::Disasm) -> Result<Value, String> {
    let trace = desk.trace(&asked.trace)?;
    let found =
        annotate(&trace, &asked.trace, &asked.function, desk.workplace.disassembler()).map_err(|e| e.to_string())?;
    let mut hot: Vec<_> = found.instructions.iter().filter(|row| row.samples > 0).collect();
    hot.sort_by(|a, b| b.samples.cmp(&a.samples).then(a.offset.cmp(&b.offset)));
    let quieter = hot.len().saturating_sub(INSTRUCTIONS);
    hot.truncate(INSTRUCTIONS);
    hot.sort_by_key(|row| row.offset);
    let hot: Vec<Value> = hot
        .iter()
        .map(|row| json!({"address": row.address, "text": row.text, "share": row.share, "source": row.source, "loops": row.loops}))
        .collect();
    let whole = serde_json::to_value(&found).map_err(|e| e.to_string())?;
    let answer = Answer::new()
        .with_some(&whole, &["function", "module", "arch", "samples", "share", "has_code", "loops", "notes", "others"])
        .with("hot_instructions", hot)
        .with("less_hot_instructions", quieter);
    Ok(answer.finish())
}
