//! The tree of a flame graph.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

/// Nodes of an answer, at most.
const MOST_NODES: usize = 20_000;
/// No parent.
const ROOT: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Node {
    pub(super) name: u32,
    pub(super) parent: u32,
    pub(super) value: f64,
    pub(super) own: f64,
    pub(super) before: f64,
}

#[derive(Default)]
pub(super) struct Tree {
    pub(super) names: Vec<String>,
    known: FxHashMap<String, u32>,
    nodes: Vec<Node>,
    children: FxHashMap<(u32, u32), u32>,
}

impl Tree {
    pub(super) fn add(&mut self, path: &[String], value: f64, before: f64) {
        let mut parent = ROOT;
        for name in path {
            let name = match self.known.get(name) {
                Some(&name) => name,
                None => {
                    self.names.push(name.clone());
                    let id = self.names.len() as u32 - 1;
                    self.known.insert(name.clone(), id);
                    id
                }
            };
            let nodes = &mut self.nodes;
            let node = *self.children.entry((parent, name)).or_insert_with(|| {
                nodes.push(Node { name, parent, ..Node::default() });
                nodes.len() as u32 - 1
            });
            let here = &mut self.nodes[node as usize];
            here.value += value;
            here.before += before;
            parent = node;
        }
        if parent != ROOT {
            self.nodes[parent as usize].own += value;
        }
    }

    /// The largest nodes in the order in which they are drawn, parents before children.
    pub(super) fn ordered(&self, least: f64, left_heavy: bool) -> (Vec<Node>, usize) {
        let weight = |n: &Node| n.value.max(n.before);
        let mut floor = least;
        if self.nodes.len() > MOST_NODES {
            let mut all: Vec<f64> = self.nodes.iter().map(weight).collect();
            all.sort_by(f64::total_cmp);
            floor = floor.max(all[all.len() - MOST_NODES]);
        }
        let mut below: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (i, node) in self.nodes.iter().enumerate() {
            below.entry(node.parent).or_default().push(i as u32);
        }
        for children in below.values_mut() {
            if left_heavy {
                let by = |&i: &u32| Reverse((weight(&self.nodes[i as usize])) as u64);
                children.sort_by_key(by);
            } else {
                children.sort_by_key(|&i| &self.names[self.nodes[i as usize].name as usize]);
            }
        }
        let mut out: Vec<Node> = Vec::new();
        let mut open: Vec<(u32, u32)> = vec![(ROOT, ROOT)];
        while let Some((node, place)) = open.pop() {
            let mut place = place;
            if node != ROOT {
                let here = &self.nodes[node as usize];
                // A child is no heavier than its parent: what is below is left out with it.
                if weight(here) < floor || out.len() >= MOST_NODES {
                    continue;
                }
                out.push(Node { parent: place, ..*here });
                place = out.len() as u32 - 1;
            }
            let children = below.get(&node).into_iter().flatten().rev();
            open.extend(children.map(|&child| (child, place)));
        }
        let cut = self.nodes.len() - out.len();
        (out, cut)
    }
}
