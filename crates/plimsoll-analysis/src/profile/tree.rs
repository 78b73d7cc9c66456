//! Merges the stacks of a profile into a tree of frames for a flame graph. The tree starts at the
//! roots of the stacks.
//!
//! Sibling frames are ordered by name, because a profile has no order of time. A tree contains a
//! limited number of frames: the widest frames. The cost of narrower frames appears below their
//! caller as [`FlameGraphTree::MERGED_FRAME_NAME`], so that the own cost of each frame stays
//! visible. In the tree of two compared profiles, each frame has the cost per request in both
//! profiles.
//!
//! The builder always adds the widest frame that is not yet in the tree. A profile of 50 MB may
//! have ten million distinct frames, of which a flame graph shows thousands. The samples of a frame
//! are adjacent in one array. When a frame joins the tree, its samples in the array are grouped by
//! callee. The callees wait in a heap, from which the builder takes the widest frame. The samples
//! of a frame that does not join the tree are never grouped by callee.
//!
//! Not here: pixels, colours, and the inverted tree, which is derived from this tree.

use super::ProfileView;
use super::diff::{CostDivisor, DiffError, comparison_sides, events_variance};
use plimsoll_model::profile::{Function, Profile};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

/// A frame of the tree, with the sums of its samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlameGraphFrame {
    /// Index of the frame's function in [`FlameGraphTree::functions`].
    pub function: u32,
    /// Number of callers above the frame: 0 for the first function of a stack.
    pub depth: u32,
    /// Width in the picture: the sum of the absolute values of the samples. In a comparison of two
    /// profiles, the mean of the frame's widths in both profiles.
    pub width: f64,
    /// Sum of the samples' values with their signs, in the unit of the column. In a comparison of
    /// two profiles, the sum of the second profile per request.
    pub value: f64,
    /// In a comparison of two profiles, the sum of the first profile per request; otherwise 0.
    pub before: f64,
    /// In a comparison of two profiles, the variance of `value - before` that chance alone would
    /// cause; otherwise 0.
    pub variance: f64,
}

/// The merged stacks of a profile. Each frame comes after its caller and before its next sibling.
#[derive(Debug, Clone, PartialEq)]
pub struct FlameGraphTree {
    /// The functions of the frames.
    pub functions: Vec<Function>,
    /// The frames in drawing order.
    pub nodes: Vec<FlameGraphFrame>,
    /// Whether some frames were too narrow for the tree and were summed up.
    pub has_merged_frames: bool,
    /// Whether the tree compares two profiles, so that each frame has two costs.
    pub is_difference: bool,
}

/// Sums over the samples of a frame. The fields have the same meaning as in [`FlameGraphFrame`].
#[derive(Debug, Clone, Copy, Default)]
struct SampleSums {
    width: f64,
    value: f64,
    before: f64,
    variance: f64,
}

impl SampleSums {
    fn add(&mut self, other: &SampleSums) {
        self.width += other.width;
        self.value += other.value;
        self.before += other.before;
        self.variance += other.variance;
    }
}

/// The function number that stands for the missing caller of the first function of a stack.
const ROOT: u32 = u32::MAX;

/// A frame that waits to join the tree. `start..end` is the frame's range in the ordered array of
/// samples. All samples of the frame have the same first `depth + 1` functions.
struct PendingFrame {
    sums: SampleSums,
    caller: u32,
    function: u32,
    depth: u32,
    start: usize,
    end: usize,
}

impl Ord for PendingFrame {
    /// Orders frames by width, so that the widest frame is the greatest. Of frames with equal
    /// width, the first in the array of samples is the greatest, so that the order is
    /// deterministic.
    fn cmp(&self, other: &PendingFrame) -> Ordering {
        let by_width = self.sums.width.total_cmp(&other.sums.width);
        by_width.then(other.start.cmp(&self.start)).then(other.depth.cmp(&self.depth))
    }
}

impl PartialOrd for PendingFrame {
    fn partial_cmp(&self, other: &PendingFrame) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PendingFrame {
    fn eq(&self, other: &PendingFrame) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PendingFrame {}

/// The stack of one sample, whose frames are processed from the root to some depth. The array of
/// samples contains whole structs instead of indices, so that memory is accessed in order.
#[derive(Debug, Clone, Copy)]
struct SampleStack {
    /// Index of the first frame that is not yet processed, in [`FlameGraphBuilder::frames`].
    at: usize,
    /// Number of the stack's remaining frames, from `at` on.
    left: u32,
    /// The number of the stack's group, while the samples of a frame are grouped by their next
    /// function.
    group: u32,
    sums: SampleSums,
}

/// The stacks of all samples in input order. `frames` contains the frames of all stacks, each stack
/// from its root on.
#[derive(Default)]
struct FlameGraphBuilder {
    frames: Vec<u32>,
    stacks: Vec<SampleStack>,
}

impl FlameGraphBuilder {
    /// Adds a sample. A sample without a stack is dropped, because it cannot be drawn.
    fn add(&mut self, stack: impl Iterator<Item = u32>, sums: SampleSums) {
        let at = self.frames.len();
        self.frames.extend(stack);
        let left = (self.frames.len() - at) as u32;
        if left > 0 {
            self.stacks.push(SampleStack { at, left, group: 0, sums });
        }
    }

    /// Merges the stacks into a tree of at most `frames_max` frames, in drawing order.
    fn build_tree(self, functions: &[&Function], frames_max: usize, difference: bool) -> FlameGraphTree {
        let FlameGraphBuilder { frames, mut stacks } = self;
        let mut divider = CalleeDivider {
            frames,
            group_of: vec![NO_GROUP; functions.len()],
            groups: Vec::new(),
            scratch: Vec::new(),
            waiting: BinaryHeap::new(),
        };
        let mut kept: Vec<PendingFrame> = Vec::new();
        divider.divide_by_next_function(&mut stacks, 0, 0, ROOT);
        while kept.len() < frames_max
            && let Some(widest) = divider.waiting.pop()
        {
            let part = &mut stacks[widest.start..widest.end];
            divider.divide_by_next_function(part, widest.start, widest.depth + 1, kept.len() as u32);
            kept.push(widest);
        }
        let left_out = !divider.waiting.is_empty();
        let mut narrow: HashMap<u32, SampleSums> = HashMap::new();
        // The sums of narrow frames are added in a fixed order, because a sum of floats depends on
        // the order.
        for frame in divider.waiting.into_sorted_vec() {
            narrow.entry(frame.caller).or_default().add(&frame.sums);
        }
        order_frames_for_drawing(&kept, &narrow, functions, left_out, difference)
    }
}

/// The group number that means "no group": the function has no group yet, or the stack has no next
/// function.
const NO_GROUP: u32 = u32::MAX;

/// Divides the samples of a frame by the function that comes next on their stacks.
struct CalleeDivider {
    frames: Vec<u32>,
    /// The group number of each function, while the samples of a frame are grouped.
    group_of: Vec<u32>,
    /// The groups of one frame's samples, while the samples are grouped: next function, number of
    /// samples, sums.
    groups: Vec<(u32, usize, SampleSums)>,
    scratch: Vec<SampleStack>,
    waiting: BinaryHeap<PendingFrame>,
}

impl CalleeDivider {
    /// Sorts `part` of the array of stacks by the next function of each stack. Stacks without a
    /// next function come first. Each next function becomes a frame that waits to join the tree.
    /// `start` is the index of `part` in the whole array.
    fn divide_by_next_function(&mut self, part: &mut [SampleStack], start: usize, depth: u32, caller: u32) {
        self.groups.clear();
        for stack in part.iter_mut() {
            stack.group = NO_GROUP;
            if stack.left == 0 {
                continue;
            }
            let function = self.frames[stack.at];
            let group = &mut self.group_of[function as usize];
            if *group == NO_GROUP {
                *group = self.groups.len() as u32;
                self.groups.push((function, 0, SampleSums::default()));
            }
            stack.group = *group;
            stack.at += 1;
            stack.left -= 1;
            let (_, samples, sums) = &mut self.groups[*group as usize];
            *samples += 1;
            sums.add(&stack.sums);
        }
        let calling: usize = self.groups.iter().map(|(_, samples, _)| samples).sum();
        let mut at = part.len() - calling;
        if self.groups.len() > 1 || (calling > 0 && at > 0) {
            // The index at which the next sample of each group is placed.
            let mut next: Vec<usize> = Vec::with_capacity(self.groups.len());
            for (_, samples, _) in &self.groups {
                next.push(at);
                at += samples;
            }
            let mut ending = 0;
            self.scratch.clear();
            self.scratch.extend_from_slice(part);
            for stack in &self.scratch {
                let slot = if stack.group == NO_GROUP { &mut ending } else { &mut next[stack.group as usize] };
                part[*slot] = *stack;
                *slot += 1;
            }
        }
        let mut at = start + part.len() - calling;
        for (function, samples, sums) in &self.groups {
            self.group_of[*function as usize] = NO_GROUP;
            let (start, end) = (at, at + samples);
            self.waiting.push(PendingFrame { sums: *sums, caller, function: *function, depth, start, end });
            at = end;
        }
    }
}

/// Puts the frames of the tree into drawing order: each frame after its caller, siblings by name.
fn order_frames_for_drawing(
    kept: &[PendingFrame],
    narrow: &HashMap<u32, SampleSums>,
    functions: &[&Function],
    has_merged_frames: bool,
    is_difference: bool,
) -> FlameGraphTree {
    let mut by_name: Vec<usize> = (0..functions.len()).collect();
    by_name.sort_by(|a, b| functions[*a].name.cmp(&functions[*b].name));
    let mut rank = vec![0_u32; functions.len()];
    by_name.iter().enumerate().for_each(|(position, function)| rank[*function] = position as u32);
    let mut order: Vec<u32> = (0..kept.len() as u32).collect();
    order.sort_by_key(|at| (kept[*at as usize].caller, rank[kept[*at as usize].function as usize]));
    let children = |caller: u32| {
        let start = order.partition_point(|at| kept[*at as usize].caller < caller);
        let length = order[start..].partition_point(|at| kept[*at as usize].caller == caller);
        &order[start..start + length]
    };

    let mut tree = FlameGraphTree { functions: Vec::new(), nodes: Vec::new(), has_merged_frames, is_difference };
    // Maps a function to its index in the functions of the tree. The key `None` stands for the sum
    // of narrow frames.
    let mut names: HashMap<Option<u32>, u32> = HashMap::new();
    let mut push = |tree: &mut FlameGraphTree, function: Option<u32>, depth: u32, sums: &SampleSums| {
        let function = *names.entry(function).or_insert_with(|| {
            let smaller = || Function { name: FlameGraphTree::MERGED_FRAME_NAME.to_owned(), file: String::new() };
            tree.functions.push(function.map_or_else(smaller, |function| functions[function as usize].clone()));
            tree.functions.len() as u32 - 1
        });
        let SampleSums { width, value, before, variance } = *sums;
        tree.nodes.push(FlameGraphFrame { function, depth, width, value, before, variance });
    };
    if let Some(sums) = narrow.get(&ROOT) {
        push(&mut tree, None, 0, sums);
    }
    let mut todo: Vec<u32> = children(ROOT).iter().rev().copied().collect();
    while let Some(at) = todo.pop() {
        let frame = &kept[at as usize];
        push(&mut tree, Some(frame.function), frame.depth, &frame.sums);
        if let Some(sums) = narrow.get(&at) {
            push(&mut tree, None, frame.depth + 1, sums);
        }
        todo.extend(children(at).iter().rev());
    }
    tree
}

impl FlameGraphTree {
    /// The name of the frame that sums up the frames that are too narrow for the tree.
    pub const MERGED_FRAME_NAME: &'static str = "(smaller frames)";

    /// Returns the width of the whole picture: the sum of the widths of all frames without a
    /// caller.
    pub fn width(&self) -> f64 {
        self.nodes.iter().filter(|node| node.depth == 0).map(|node| node.width).sum()
    }
}

/// Merges the stacks of a view (the selected samples of a profile) into a tree of at most
/// `frames_max` frames.
pub fn flame_graph_tree(profile: &Profile, view: &ProfileView, frames_max: usize) -> FlameGraphTree {
    let mut builder = FlameGraphBuilder::default();
    for sample in profile.samples() {
        let value = sample.values()[view.column];
        if value == 0 || !view.contains_sample(&sample) {
            continue;
        }
        let (width, value) = (value.unsigned_abs() as f64, value as f64);
        builder.add(sample.functions_from_root(), SampleSums { width, value, before: 0.0, variance: 0.0 });
    }
    let functions: Vec<&Function> = profile.functions().iter().collect();
    builder.build_tree(&functions, frames_max, false)
}

/// Merges the stacks of two profiles into one tree of at most `frames_max` frames. Each frame has
/// its cost in both profiles.
///
/// # Errors
/// The same errors as [`diff`](super::diff()).
pub fn flame_graph_difference_tree(
    before: (&Profile, &ProfileView),
    after: (&Profile, &ProfileView),
    basis: CostDivisor,
    frames_max: usize,
) -> Result<FlameGraphTree, DiffError> {
    let [before, after] = comparison_sides(before, after, basis)?;
    let mut functions: Vec<&Function> = Vec::new();
    let mut known: HashMap<&str, u32> = HashMap::new();
    let mut builder = FlameGraphBuilder::default();
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
            let value = sample.values()[side.view.column];
            if value == 0 || !side.view.contains_sample(&sample) {
                continue;
            }
            let stack = sample.functions_from_root().map(|function| shared[function as usize]);
            let cost = value as f64 / side.divisor;
            let (value, before) = if is_after { (cost, 0.0) } else { (0.0, cost) };
            let variance = events_variance(&side, &sample).map_or(0.0, |(_, v)| v / side.divisor / side.divisor);
            builder.add(stack, SampleSums { width: cost.abs() / 2.0, value, before, variance });
        }
    }
    Ok(builder.build_tree(&functions, frames_max, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::read;

    fn tree_lines(text: &str, frames_max: usize) -> Vec<String> {
        let profile = read(text.as_bytes()).expect("folded stacks");
        let tree = flame_graph_tree(&profile, &ProfileView::all_samples(0), frames_max);
        let line = |n: &FlameGraphFrame| {
            let name = &tree.functions[n.function as usize].name;
            format!("{}{name} {}", " ".repeat(n.depth as usize), n.width)
        };
        tree.nodes.iter().map(line).collect()
    }

    #[test]
    fn merged_stacks_are_sorted_by_name() {
        let text = "main;b;c 3\nother 1\nmain;a 2\nmain;b 1\nmain;b;c;b 5\n";
        let all = ["main 11", " a 2", " b 9", "  c 8", "   b 5", "other 1"];
        assert_eq!(tree_lines(text, 100), all);
        assert_eq!(tree_lines(text, 6), all);
        // The cost of frames that are too narrow for the tree appears below their caller.
        let few = ["(smaller frames) 1", "main 11", " (smaller frames) 2", " b 9", "  c 8", "   (smaller frames) 5"];
        assert_eq!(tree_lines(text, 3), few);
        assert_eq!(tree_lines(text, 0), ["(smaller frames) 12"]);
        assert_eq!(tree_lines("a 0", 5), Vec::<String>::new());
    }

    #[test]
    fn negative_values_have_a_width_in_the_flame_graph() {
        let profile = read(b"main;a -4\nmain;b 1\n").expect("folded stacks");
        let tree = flame_graph_tree(&profile, &ProfileView::all_samples(0), 9);
        let sums: Vec<_> = tree.nodes.iter().map(|n| (n.width, n.value)).collect();
        assert_eq!(sums, [(5.0, -3.0), (4.0, -4.0), (1.0, 1.0)]);
        assert_eq!(tree.width(), 5.0);
    }
}
