//! Placement of labels in a plot: chooses the position at which a label covers the fewest shapes.

use super::plot::Area;
use super::svg::{TextAnchor, text_width};

/// The shapes already drawn in a chart, which labels should not cover.
#[derive(Debug, Default)]
pub struct OccupiedArea {
    /// The occupied rectangles (left, top, right, bottom) in SVG user units.
    boxes: Vec<[f64; 4]>,
    lines: Vec<((f64, f64), (f64, f64))>,
}

/// The text of a label, with its font size in SVG user units.
pub struct TextLabel<'a> {
    pub text: &'a str,
    pub size: f64,
    pub bold: bool,
}

impl TextLabel<'_> {
    /// Returns the rectangle (left, top, right, bottom) that the label covers if its baseline is at
    /// the point (x, y).
    fn label_rectangle(&self, (x, y): (f64, f64), anchor: TextAnchor) -> [f64; 4] {
        let width = text_width(self.text, self.size, self.bold);
        let left = match anchor {
            TextAnchor::Start => x,
            TextAnchor::Middle => x - width / 2.0,
            TextAnchor::End => x - width,
        };
        [left - 2.0, y - self.size, left + width + 2.0, y + 3.0]
    }
}

impl OccupiedArea {
    /// Marks a square around a point as occupied. `half_side` is half the side of the square, in
    /// SVG user units.
    pub fn occupy_point(&mut self, (x, y): (f64, f64), half_side: f64) {
        self.boxes.push([x - half_side, y - half_side, x + half_side, y + half_side]);
    }

    /// Marks a straight line as occupied.
    pub fn occupy_line(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.lines.push((from, to));
    }

    /// Marks a line through several points as occupied.
    pub fn occupy_curve(&mut self, points: &[(f64, f64)]) {
        points.windows(2).for_each(|pair| self.occupy_line(pair[0], pair[1]));
    }

    /// Returns the number of occupied shapes that a rectangle covers.
    fn count_covered(&self, rectangle: &[f64; 4]) -> usize {
        let boxes = self
            .boxes
            .iter()
            .filter(|b| b[0] < rectangle[2] && b[2] > rectangle[0] && b[1] < rectangle[3] && b[3] > rectangle[1]);
        boxes.count() + self.lines.iter().filter(|(from, to)| is_crossed_by_line(rectangle, *from, *to)).count()
    }

    /// Chooses one of the positions `places` for a label inside `area`, and marks the label's
    /// rectangle as occupied. The label covers the fewest shapes at the chosen position. If several
    /// positions cover equally few shapes, the first of these positions is chosen. Returns `None`
    /// if no position is inside `area`.
    pub fn place_label(
        &mut self,
        words: &TextLabel,
        area: &Area,
        places: impl IntoIterator<Item = ((f64, f64), TextAnchor)>,
    ) -> Option<((f64, f64), TextAnchor)> {
        let inside = |room: &[f64; 4]| {
            room[0] >= area.x && room[2] <= area.right_edge() && room[1] >= area.y && room[3] <= area.bottom_edge()
        };
        let rooms = places.into_iter().map(|(at, anchor)| (at, anchor, words.label_rectangle(at, anchor)));
        let best = rooms.filter(|place| inside(&place.2)).min_by_key(|place| self.count_covered(&place.2))?;
        self.boxes.push(best.2);
        Some((best.0, best.1))
    }
}

/// Returns whether a line crosses a rectangle, by the Liang-Barsky clipping algorithm.
fn is_crossed_by_line(rectangle: &[f64; 4], from: (f64, f64), to: (f64, f64)) -> bool {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    for (step, reach) in [
        (-dx, from.0 - rectangle[0]),
        (dx, rectangle[2] - from.0),
        (-dy, from.1 - rectangle[1]),
        (dy, rectangle[3] - from.1),
    ] {
        if step == 0.0 {
            if reach < 0.0 {
                return false;
            }
        } else if step < 0.0 {
            enter = enter.max(reach / step);
        } else {
            leave = leave.min(reach / step);
        }
    }
    enter <= leave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chart_labels_avoid_points_and_lines() {
        let area = Area { x: 0.0, y: 0.0, width: 200.0, height: 100.0 };
        let words = TextLabel { text: "some words", size: 10.0, bold: false };
        let places =
            [((5.0, 50.0), TextAnchor::Start), ((195.0, 50.0), TextAnchor::End), ((100.0, 90.0), TextAnchor::Middle)];
        let mut taken = OccupiedArea::default();
        taken.occupy_point((20.0, 45.0), 4.0);
        assert_eq!(taken.place_label(&words, &area, places), Some(places[1]));
        // The label must be placed at the third position. The previous label occupies the second
        // position, and a line crosses the first position.
        taken.occupy_line((0.0, 0.0), (60.0, 90.0));
        assert_eq!(taken.place_label(&words, &area, places), Some(places[2]));
        let wide = TextLabel { text: "words that have no room at all, in no place of these", ..words };
        assert_eq!(taken.place_label(&wide, &area, places), None);
        for (from, to, expect) in [
            ((0.0, 0.0), (10.0, 10.0), true),
            ((0.0, 4.0), (10.0, 4.0), true),
            ((0.0, 0.0), (1.0, 10.0), false),
            ((4.0, 0.0), (4.0, 2.0), false),
        ] {
            assert_eq!(is_crossed_by_line(&[3.0, 3.0, 5.0, 5.0], from, to), expect, "{from:?} {to:?}");
        }
    }
}
