//! Stacks merged from the root: what a flame graph draws.
//!
//! Siblings stand in the order of their names, since there is no time in a profile. A tree holds at most a given number
//! of frames: the narrowest are left out, and what they spent stands under their caller as [`Tree::SMALLER`], so that a
//! frame's children never hide what it spent itself. For a difference each frame carries both sides, per request.
//!
//! Not here: pixels, colours, the inverted tree (the picture derives it from this one).

use super::View;
use super::diff::{Basis, DiffError, events_variance, sides};
use plimsoll_model::profile::{Function, Profile};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A frame and what lies above it, as sums.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Node {
    /// Index into [`Tree::functions`].
    pub function: u32,
    /// 0 for the first functions of stacks.
    pub depth: u32,
    /// Share of the picture: the sum of absolute values; of a difference, the mean of both sides.
    pub width: f64,
    /// Net sum, in the unit of the column; of a difference, that of the second side, per request.
    pub value: f64,
    /// Of a difference, the sum of the first side, per request; else 0.
    pub before: f64,
    /// Of a difference, the variance of `value - before` by chance; else 0.
    pub variance: f64,
}

/// Merged stacks, each frame after its caller and before its next sibling.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// The functions that the frames name.
    pub functions: Vec<Function>,
    /// The frames.
    pub nodes: Vec<Node>,
    /// How many frames were too narrow to be kept.
    pub left_out: usize,
    /// Whether frames have two sides.
    pub difference: bool,
}

/// Hashes one u64 by one multiplication: keys are pairs of small numbers, and there are tens of millions of them.
#[derive(Default)]
struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

const ROOT: u32 = u32::MAX;

/// A frame while the tree grows. Its caller always has a lower index.
struct Growing {
    caller: u32,
    function: u32,
    width: f64,
    value: f64,
    before: f64,
    variance: f64,
}

#[derive(Default)]
struct Builder {
    nodes: Vec<Growing>,
    children: HashMap<u64, u32, BuildHasherDefault<PairHasher>>,
}

impl Builder {
    /// The frame of a stack's leaf; `None` for an empty stack.
    fn leaf(&mut self, stack: impl Iterator<Item = u32>) -> Option<&mut Growing> {
        let mut at = ROOT;
        for function in stack {
            let nodes = &mut self.nodes;
            at = *self.children.entry(u64::from(at) << 32 | u64::from(function)).or_insert_with(|| {
                nodes.push(Growing { caller: at, function, width: 0.0, value: 0.0, before: 0.0, variance: 0.0 });
                nodes.len() as u32 - 1
            });
        }
        self.nodes.get_mut(at as usize)
    }

    /// Sums up from the leaves, leaves out the narrowest, and puts frames in order. Gives the functions used, too.
    fn finish(mut self, functions: &[&Function], frames_max: usize, difference: bool) -> Tree {
        for at in (0..self.nodes.len()).rev() {
            let Growing { caller, width, value, before, variance, .. } = self.nodes[at];
            if let Some(caller) = self.nodes.get_mut(caller as usize) {
                caller.width += width;
                caller.value += value;
                caller.before += before;
                caller.variance += variance;
            }
        }
        let kept = widest(&self.nodes, frames_max);
        let left_out = kept.iter().filter(|kept| !**kept).count();

        // Children by caller, sorted by the rank of their names.
        let mut by_name: Vec<usize> = (0..functions.len()).collect();
        by_name.sort_by(|a, b| functions[*a].name.cmp(&functions[*b].name));
        let mut rank = vec![0_u32; functions.len()];
        by_name.iter().enumerate().for_each(|(position, function)| rank[*function] = position as u32);
        let mut order: Vec<u32> = (0..self.nodes.len() as u32).filter(|at| kept[*at as usize]).collect();
        order.sort_by_key(|at| {
            let node = &self.nodes[*at as usize];
            (node.caller, rank[node.function as usize])
        });
        let children = |caller: u32| {
            let start = order.partition_point(|at| self.nodes[*at as usize].caller < caller);
            let length = order[start..].partition_point(|at| self.nodes[*at as usize].caller == caller);
            &order[start..start + length]
        };

        let mut narrow: HashMap<u32, Node> = HashMap::new();
        for (node, _) in self.nodes.iter().zip(&kept).filter(|(_, kept)| !**kept) {
            if node.caller != ROOT && !kept[node.caller as usize] {
                continue;
            }
            let sum = narrow.entry(node.caller).or_insert(Node {
                function: 0,
                depth: 0,
                width: 0.0,
                value: 0.0,
                before: 0.0,
                variance: 0.0,
            });
            sum.width += node.width;
            sum.value += node.value;
            sum.before += node.before;
            sum.variance += node.variance;
        }

        let mut tree = Tree { functions: Vec::new(), nodes: Vec::new(), left_out, difference };
        let mut names: HashMap<u32, u32> = HashMap::new();
        let mut smaller = None;
        let mut todo: Vec<(u32, u32)> = children(ROOT).iter().rev().map(|at| (*at, 0)).collect();
        let mut add_narrow = |tree: &mut Tree, caller: u32, depth: u32| {
            if let Some(sum) = narrow.get(&caller) {
                let function = *smaller.get_or_insert_with(|| {
                    tree.functions.push(Function { name: Tree::SMALLER.to_owned(), file: String::new() });
                    tree.functions.len() as u32 - 1
                });
                tree.nodes.push(Node { function, depth, ..*sum });
            }
        };
        add_narrow(&mut tree, ROOT, 0);
        while let Some((at, depth)) = todo.pop() {
            let Growing { function, width, value, before, variance, .. } = self.nodes[at as usize];
            let function = *names.entry(function).or_insert_with(|| {
                tree.functions.push(functions[function as usize].clone());
                tree.functions.len() as u32 - 1
            });
            tree.nodes.push(Node { function, depth, width, value, before, variance });
            add_narrow(&mut tree, at, depth + 1);
            todo.extend(children(at).iter().rev().map(|child| (*child, depth + 1)));
        }
        tree
    }
}

/// Which frames are kept: the widest. A caller is at least as wide as what it calls and has the lower index, so that
/// no kept frame loses its caller.
fn widest(nodes: &[Growing], frames_max: usize) -> Vec<bool> {
    if nodes.len() <= frames_max {
        return vec![true; nodes.len()];
    }
    let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
    let wider = |a: &u32, b: &u32| nodes[*b as usize].width.total_cmp(&nodes[*a as usize].width).then(a.cmp(b));
    if frames_max > 0 {
        order.select_nth_unstable_by(frames_max - 1, wider);
    }
    let mut kept = vec![false; nodes.len()];
    for at in &order[..frames_max] {
        kept[*at as usize] = true;
    }
    // Rounding may make a caller narrower by a hair than its only child.
    for at in 0..nodes.len() {
        let caller = nodes[at].caller;
        kept[at] &= caller == ROOT || kept[caller as usize];
    }
    kept
}

impl Tree {
    /// The name under which frames too narrow to be kept stand together.
    pub const SMALLER: &'static str = "(smaller frames)";

    /// The width of the whole picture.
    pub fn width(&self) -> f64 {
        self.nodes.iter().filter(|node| node.depth == 0).map(|node| node.width).sum()
    }
}

/// Merges the stacks of a view, keeping at most `frames_max` frames.
pub fn tree(profile: &Profile, view: &View, frames_max: usize) -> Tree {
    let mut builder = Builder::default();
    for sample in profile.samples() {
        let value = sample.values()[view.sample_type];
        if value == 0 || !view.keeps(&sample) {
            continue;
        }
        if let Some(leaf) = builder.leaf(sample.root_first()) {
            leaf.width += value.unsigned_abs() as f64;
            leaf.value += value as f64;
        }
    }
    let functions: Vec<&Function> = profile.functions().iter().collect();
    builder.finish(&functions, frames_max, false)
}

/// Merges the stacks of two profiles, with what they cost on either side, keeping at most `frames_max` frames.
///
/// # Errors
/// As [`diff`](super::diff()).
pub fn diff_tree(
    before: (&Profile, &View),
    after: (&Profile, &View),
    basis: Basis,
    frames_max: usize,
) -> Result<Tree, DiffError> {
    let [before, after] = sides(before, after, basis)?;
    let mut functions: Vec<&Function> = Vec::new();
    let mut known: HashMap<&str, u32> = HashMap::new();
    let mut builder = Builder::default();
    for (side, is_after) in [(before, false), (after, true)] {
        let shared: Vec<u32> = side
            .profile
            .functions()
            .iter()
            .map(|function| {
                *known.entry(&function.name).or_insert_with(|| {
                    functions.push(function);
                    functions.len() as u32 - 1
                })
            })
            .collect();
        for sample in side.profile.samples() {
            let value = sample.values()[side.view.sample_type];
            if value == 0 || !side.view.keeps(&sample) {
                continue;
            }
            let stack = sample.root_first().map(|function| shared[function as usize]);
            let Some(leaf) = builder.leaf(stack) else { continue };
            let cost = value as f64 / side.units;
            leaf.width += cost.abs() / 2.0;
            *(if is_after { &mut leaf.value } else { &mut leaf.before }) += cost;
            leaf.variance += events_variance(&side, &sample).map_or(0.0, |(_, v)| v / side.units / side.units);
        }
    }
    Ok(builder.finish(&functions, frames_max, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::read;

    fn lines(text: &str, frames_max: usize) -> Vec<String> {
        let profile = read(text.as_bytes()).expect("folded stacks");
        let tree = tree(&profile, &View::all(0), frames_max);
        let line = |n: &Node| {
            let name = &tree.functions[n.function as usize].name;
            format!("{}{name} {}", " ".repeat(n.depth as usize), n.width)
        };
        tree.nodes.iter().map(line).collect()
    }

    #[test]
    fn stacks_merge_in_the_order_of_names() {
        let text = "main;b;c 3\nother 1\nmain;a 2\nmain;b 1\nmain;b;c;b 5\n";
        let all = ["main 11", " a 2", " b 9", "  c 8", "   b 5", "other 1"];
        assert_eq!(lines(text, 100), all);
        assert_eq!(lines(text, 6), all);
        // What is left out stands under its caller, so that nothing is lost.
        let few = ["(smaller frames) 1", "main 11", " (smaller frames) 2", " b 9", "  c 8", "   (smaller frames) 5"];
        assert_eq!(lines(text, 3), few);
        assert_eq!(lines(text, 0), ["(smaller frames) 12"]);
        assert_eq!(lines("a 0", 5), Vec::<String>::new());
    }

    #[test]
    fn negative_values_have_width() {
        let profile = read(b"main;a -4\nmain;b 1\n").expect("folded stacks");
        let tree = tree(&profile, &View::all(0), 9);
        let sums: Vec<_> = tree.nodes.iter().map(|n| (n.width, n.value)).collect();
        assert_eq!(sums, [(5.0, -3.0), (4.0, -4.0), (1.0, 1.0)]);
        assert_eq!(tree.width(), 5.0);
    }
}
