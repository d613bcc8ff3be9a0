//! No circles between modules.
//!
//! Each module is a room: its children, each with all below it, and the items of its own file. One uses another if a path in it leads
//! to the other or goes through it, also by way of an import or a re-export. A circle in which a child takes part is a complaint.
//! So children never use each other in turns; and a child may use what its parent's file defines only where that needs nothing
//! of the child: plain data may stand there, what is made from the children may not be asked for by them.
//!
//! Methods are told apart from their type, so that a type's data may lie below what makes it. What is reached through a method of a
//! value is not seen, but for methods of `self`. Tests are left out.

mod names;
mod rooms;
mod source;
mod tokens;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use rooms::{Node, Room};
use source::Module;

/// An arrow that is known to be part of a circle.
struct Known {
    /// The folder of the crate.
    of: &'static str,
    /// Who uses, and whom: modules, or items of their parent's file.
    arrow: (&'static str, &'static str),
    /// Why it is there still.
    why: &'static str,
}

/// Circles that wait for their mending. It only gets shorter.
const KNOWN: &[Known] = &[];

pub fn check(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    let mut unseen: Vec<&Known> = KNOWN.iter().collect();
    let read = |file: &Path| -> Result<Option<String>> {
        let file = root.join(file);
        Ok(if file.is_file() { Some(fs::read_to_string(file)?) } else { None })
    };
    for file in files.iter().filter(|file| file.ends_with("src/lib.rs") || file.ends_with("src/main.rs")) {
        let Some(of) = file.parent().and_then(Path::parent) else { continue };
        let modules = source::modules(file, &read)?;
        let known: Vec<&Known> = KNOWN.iter().filter(|known| of == Path::new(known.of)).collect();
        let (found, met) = complaints_of(&modules, &known);
        unseen.retain(|known| !met.contains(&known.arrow));
        complaints.extend(found.into_iter().map(|circle| format!("{}: modules in a circle:{circle}", of.display())));
    }
    complaints.extend(unseen.into_iter().map(|known| {
        let (from, to) = known.arrow;
        format!(
            "{}: {from} → {to} is part of no circle: strike it from xtask/src/tidy/circles.rs ({})",
            known.of, known.why
        )
    }));
    Ok(complaints)
}

/// The circles of a crate as text; and those of the known arrows that are part of one.
fn complaints_of(modules: &[Module], known: &[&Known]) -> (Vec<String>, Vec<(&'static str, &'static str)>) {
    let (mut complaints, mut met) = (Vec::new(), Vec::new());
    for room in rooms::rooms(modules).values_mut() {
        let nodes: Vec<Node> = room.nodes().collect();
        for known in known {
            let find = |name: &str| nodes.iter().copied().find(|node| name_of(modules, *node) == name);
            let (Some(from), Some(to)) = (find(known.arrow.0), find(known.arrow.1)) else { continue };
            if room.remove(from, to) {
                met.push(known.arrow);
            }
        }
        complaints.extend(room.circles().iter().map(|circle| describe(modules, room, circle)));
    }
    (complaints, met)
}

fn describe(modules: &[Module], room: &Room, circle: &[Node]) -> String {
    let next = circle.iter().skip(1).chain(circle.first());
    let arrows = circle.iter().zip(next).filter_map(|(from, to)| {
        let seen = room.arrow(*from, *to)?;
        let (from, to) = (name_of(modules, *from), name_of(modules, *to));
        let (file, line) = (modules[seen.module].file.display(), seen.mention.line);
        Some(format!("\n    {from} → {to}: {file}:{line} ({})", seen.mention.path.join("::")))
    });
    arrows.collect()
}

fn name_of(modules: &[Module], node: Node) -> String {
    match node {
        Node::Child(module) => modules[module].path.join("::"),
        Node::Item(module, item) => {
            let path = modules[module].path.iter().map(String::as_str);
            path.chain([modules[module].items[item].name.as_str()]).collect::<Vec<_>>().join("::")
        }
    }
}

#[cfg(test)]
mod tests;
