//! Who uses whom in each room, and the circles there.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::names::{Names, Target};
use super::source::{Mention, Module};

/// Something that arrows go from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// A child of the room, with all below it.
    Child(usize),
    /// An item of the room's own file.
    Item(usize, usize),
}

/// Where an arrow is to be seen.
pub struct Use<'a> {
    /// The module in whose file it stands.
    pub module: usize,
    /// What stands there.
    pub mention: &'a Mention,
}

/// The arrows of one room: a module with its children. One use is kept for each.
#[derive(Default)]
pub struct Room<'a> {
    arrows: BTreeMap<Node, BTreeMap<Node, Use<'a>>>,
}

/// The rooms of a crate, by the number of the module.
pub fn rooms(modules: &[Module]) -> BTreeMap<usize, Room<'_>> {
    let names = Names::new(modules);
    let mut rooms = BTreeMap::new();
    for (m, module) in modules.iter().enumerate() {
        // What a module imports from below belongs to the items that name it.
        let imports = module.imports.iter().map(|import| (None, &import.from));
        let items = module.items.iter().enumerate();
        let mentions = items.flat_map(|(i, item)| item.mentions.iter().map(move |mention| (Some(i), mention)));
        for (item, mention) in imports.chain(mentions) {
            let targets = names.targets(m, &mention.path);
            let of_room = |room: usize| targets.iter().any(|t| matches!(t, Target::Item(of, _) if *of == room));
            for target in &targets {
                let Some((room, from, to)) = arrow(modules, m, item, *target) else { continue };
                // Children that spread the methods of a type of their parent's are pages of it: a grammar is a circle by itself.
                let are_pages = matches!((from, to), (Node::Child(_), Node::Child(_))) && of_room(room);
                if mention.is_own && are_pages {
                    continue;
                }
                let arrows = rooms.entry(room).or_insert_with(Room::default).arrows.entry(from).or_default();
                arrows.entry(to).or_insert(Use { module: m, mention });
            }
        }
    }
    rooms
}

/// The arrow that something in module `from` makes by naming `target`, and its room. None goes to a module that `from` itself lies in.
fn arrow(modules: &[Module], from: usize, item: Option<usize>, target: Target) -> Option<(usize, Node, Node)> {
    let (to, to_item) = match target {
        Target::Module(to) => (to, None),
        Target::Item(to, item) => (to, Some(item)),
    };
    let (from_line, to_line) = (line(modules, from), line(modules, to));
    let shared = from_line.iter().zip(&to_line).take_while(|(a, b)| a == b).count();
    let room = from_line[shared - 1];
    let node = |line: &[usize], item: Option<usize>| match line.get(shared) {
        Some(child) => Some(Node::Child(*child)),
        None => item.map(|item| Node::Item(room, item)),
    };
    let (from, to) = (node(&from_line, item)?, node(&to_line, to_item)?);
    (from != to).then_some((room, from, to))
}

/// The modules from the root to this one.
fn line(modules: &[Module], module: usize) -> Vec<usize> {
    let mut line: Vec<usize> = std::iter::successors(Some(module), |m| modules[*m].parent).collect();
    line.reverse();
    line
}

impl<'a> Room<'a> {
    /// The use behind an arrow, if there is one.
    pub fn arrow(&self, from: Node, to: Node) -> Option<&Use<'a>> {
        self.arrows.get(&from)?.get(&to)
    }

    /// All nodes that arrows go from.
    pub fn nodes(&self) -> impl Iterator<Item = Node> {
        self.arrows.keys().copied()
    }

    /// Takes an arrow away; whether it was part of a circle.
    pub fn remove(&mut self, from: Node, to: Node) -> bool {
        let removed = self.arrows.get_mut(&from).and_then(|arrows| arrows.remove(&to)).is_some();
        removed && (from == to || self.way(to, from).is_some())
    }

    /// For each child that is part of a circle, a shortest one; each circle once.
    pub fn circles(&self) -> Vec<Vec<Node>> {
        let mut seen: BTreeSet<Node> = BTreeSet::new();
        let mut circles = Vec::new();
        for child in self.nodes().filter(|node| matches!(node, Node::Child(_))) {
            if seen.contains(&child) {
                continue;
            }
            let back = |next: &Node| self.way(*next, child);
            if let Some(mut circle) = self.arrows[&child].keys().filter_map(back).min_by_key(Vec::len) {
                circle.rotate_right(1);
                seen.extend(&circle);
                circles.push(circle);
            }
        }
        circles
    }

    /// The shortest way from one node to another, both included.
    fn way(&self, from: Node, to: Node) -> Option<Vec<Node>> {
        let mut before = BTreeMap::from([(from, from)]);
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            if node == to {
                let mut way = vec![to];
                while way[way.len() - 1] != from {
                    way.push(before[&way[way.len() - 1]]);
                }
                way.reverse();
                return Some(way);
            }
            for next in self.arrows.get(&node).into_iter().flat_map(BTreeMap::keys) {
                if !before.contains_key(next) {
                    before.insert(*next, node);
                    queue.push_back(*next);
                }
            }
        }
        None
    }
}
