//! A report as data: blocks in reading order. Control characters in its text become visible
//! ([`crate::visible`]), so that text from a run file or a server cannot steer the terminal.

use crate::chart::Theme;
use crate::visible::visible;

fn visible_text(text: impl Into<String>) -> String {
    visible(&text.into()).into_owned()
}

fn all_seen(rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.into_iter().map(|row| row.into_iter().map(visible_text).collect()).collect()
}

/// The meaning of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// The answer.
    Answer,
    /// Something to be doubted or heeded.
    Warning,
}

/// A chart of a report, as pages show it.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartBlock {
    /// The SVG, drawn in [`crate::chart::Theme::Page`].
    pub svg: String,
    /// The same for a narrow screen, drawn in [`crate::chart::Theme::Phone`]; `None`: there is no
    /// narrow form.
    pub narrow: Option<String>,
    /// The figures of the chart as a table, for readers who cannot see the picture: the headings.
    pub headings: Vec<String>,
    /// See `headings`.
    pub rows: Vec<Vec<String>>,
}

/// One piece of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportBlock {
    /// The heading of what follows.
    Heading(String),
    /// A chart. Only pages show it.
    Chart(ChartBlock),
    /// Literal HTML, such as a flame graph. Only pages show it.
    Fragment(String),
    /// A sentence.
    Text(Tone, String),
    /// Labels and their values, one pair a line.
    Facts(Vec<(String, String)>),
    /// A table: headings, then rows of as many cells.
    Table(Vec<String>, Vec<Vec<String>>),
}

/// The blocks of a report, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The blocks.
    pub blocks: Vec<ReportBlock>,
}

impl Report {
    /// Adds a heading.
    pub fn heading(&mut self, text: impl Into<String>) -> &mut Self {
        self.blocks.push(ReportBlock::Heading(visible_text(text)));
        self
    }

    /// Adds a chart and the figures behind it.
    pub fn chart(&mut self, svg: String, headings: &[&str], rows: Vec<Vec<String>>) -> &mut Self {
        let headings = headings.iter().map(|h| visible_text(*h)).collect();
        self.blocks.push(ReportBlock::Chart(ChartBlock { svg, narrow: None, headings, rows: all_seen(rows) }));
        self
    }

    /// Adds a chart that is drawn for wide and for narrow screens, and the figures behind it.
    pub fn drawn(&mut self, draw: impl Fn(Theme) -> String, headings: &[&str], rows: Vec<Vec<String>>) -> &mut Self {
        self.chart(draw(Theme::Page), headings, rows);
        if let Some(ReportBlock::Chart(chart)) = self.blocks.last_mut() {
            chart.narrow = Some(draw(Theme::Phone));
        }
        self
    }

    /// Adds labelled values above a table at the end, or at the end.
    pub fn facts_above_table(&mut self, facts: Vec<(String, String)>) -> &mut Self {
        let table = match self.blocks.last() {
            Some(ReportBlock::Table(..)) => self.blocks.pop(),
            _ => None,
        };
        self.facts(facts.iter().map(|(label, value)| (label.as_str(), value.clone())).collect());
        self.blocks.extend(table);
        self
    }

    /// Makes `sentence` the answer; the previous answer becomes the sentence after it.
    pub fn headline(&mut self, sentence: String) -> &mut Self {
        if let Some(at) = self.blocks.iter().position(|block| matches!(block, ReportBlock::Text(Tone::Answer, _))) {
            if let ReportBlock::Text(tone, _) = &mut self.blocks[at] {
                *tone = Tone::Plain;
            }
            self.blocks.insert(at, ReportBlock::Text(Tone::Answer, visible_text(sentence)));
        }
        self
    }

    /// Adds literal HTML. It must be self-contained, load nothing, and have its text escaped.
    pub fn fragment(&mut self, html: String) -> &mut Self {
        self.blocks.push(ReportBlock::Fragment(html));
        self
    }

    /// Adds all blocks of another report.
    pub fn append(&mut self, other: Report) -> &mut Self {
        self.blocks.extend(other.blocks);
        self
    }

    /// The blocks up to the answer, then the blocks of `between`, then the rest: a chart follows
    /// the answer.
    pub fn after_answer(&mut self, between: Report) -> &mut Self {
        let answer =
            self.blocks.iter().position(|b| matches!(b, ReportBlock::Text(Tone::Answer, _))).map_or(0, |at| at + 1);
        let rest = self.blocks.split_off(answer);
        self.blocks.extend(between.blocks);
        self.blocks.extend(rest);
        self
    }

    /// Adds a sentence.
    pub fn text(&mut self, tone: Tone, text: impl Into<String>) -> &mut Self {
        self.blocks.push(ReportBlock::Text(tone, visible_text(text)));
        self
    }

    /// Adds labelled values.
    pub fn facts(&mut self, facts: Vec<(&str, String)>) -> &mut Self {
        self.blocks.push(ReportBlock::Facts(
            facts.into_iter().map(|(label, value)| (visible_text(label), visible_text(value))).collect(),
        ));
        self
    }

    /// Adds a table.
    pub fn table(&mut self, headings: &[&str], rows: Vec<Vec<String>>) -> &mut Self {
        self.blocks.push(ReportBlock::Table(headings.iter().map(|h| visible_text(*h)).collect(), all_seen(rows)));
        self
    }
}
