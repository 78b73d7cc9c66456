//! A report as data: a list of blocks in reading order. Control characters in the text of blocks
//! are made visible ([`crate::visible_controls`]), so that text from a run file or a server cannot
//! control the terminal.

use crate::chart::Theme;
use crate::visible_controls::escape_to_one_line;

fn visible_text(text: impl Into<String>) -> String {
    escape_to_one_line(&text.into()).into_owned()
}

fn visible_rows(rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.into_iter().map(|row| row.into_iter().map(visible_text).collect()).collect()
}

/// The role of a sentence in a report, which sets its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The sentence is ordinary text.
    Plain,
    /// The sentence is the answer to the user's question.
    Answer,
    /// The sentence is a warning, for example evidence against a figure of the report.
    Warning,
}

/// A chart in a report, which only HTML pages show.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartBlock {
    /// The SVG in the theme [`crate::chart::Theme::Page`].
    pub svg: String,
    /// The chart as SVG for narrow screens, in the theme [`crate::chart::Theme::Phone`]. If this
    /// field is `None`, narrow screens show the wide chart of the field `svg`.
    pub narrow_svg: Option<String>,
    /// The column headings of a table with the chart's figures, for readers who cannot see the
    /// chart.
    pub headings: Vec<String>,
    /// The rows of the table with the chart's figures.
    pub rows: Vec<Vec<String>>,
}

/// One block of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportBlock {
    /// The heading of a section. The section contains the blocks after its heading, up to the next
    /// heading.
    Heading(String),
    /// A chart, which only HTML pages show.
    Chart(ChartBlock),
    /// HTML that pages include without escaping, such as a flame graph. Other formats than HTML
    /// pages omit this block.
    RawHtml(String),
    /// A sentence with its role, such as the answer or a warning.
    Text(Tone, String),
    /// Labelled values: pairs of label and value, one pair on each line.
    Facts(Vec<(String, String)>),
    /// A table: headings, then rows with an equal number of cells.
    Table(Vec<String>, Vec<Vec<String>>),
}

/// A report as a list of blocks in reading order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The blocks of the report.
    pub blocks: Vec<ReportBlock>,
}

impl Report {
    /// Adds a section heading.
    pub fn add_heading(&mut self, text: impl Into<String>) -> &mut Self {
        self.blocks.push(ReportBlock::Heading(visible_text(text)));
        self
    }

    /// Adds a chart to the report, with a table of the chart's figures.
    pub fn add_chart(&mut self, svg: String, headings: &[&str], rows: Vec<Vec<String>>) -> &mut Self {
        let headings = headings.iter().map(|h| visible_text(*h)).collect();
        self.blocks.push(ReportBlock::Chart(ChartBlock { svg, narrow_svg: None, headings, rows: visible_rows(rows) }));
        self
    }

    /// Adds a chart to the report, with a table of the chart's figures. The function calls `draw`
    /// twice, to render one chart for wide screens and one chart for narrow screens.
    pub fn add_responsive_chart(
        &mut self,
        draw: impl Fn(Theme) -> String,
        headings: &[&str],
        rows: Vec<Vec<String>>,
    ) -> &mut Self {
        self.add_chart(draw(Theme::Page), headings, rows);
        if let Some(ReportBlock::Chart(chart)) = self.blocks.last_mut() {
            chart.narrow_svg = Some(draw(Theme::Phone));
        }
        self
    }

    /// Adds labelled values directly above the table at the end of the report. If the report does
    /// not end with a table, the labelled values become the last block of the report.
    pub fn add_facts_above_table(&mut self, facts: Vec<(String, String)>) -> &mut Self {
        let table = match self.blocks.last() {
            Some(ReportBlock::Table(..)) => self.blocks.pop(),
            _ => None,
        };
        self.add_facts(facts.iter().map(|(label, value)| (label.as_str(), value.clone())).collect());
        self.blocks.extend(table);
        self
    }

    /// Makes `sentence` the answer of the report. The previous answer becomes ordinary text below
    /// `sentence`. A report without a previous answer does not change.
    pub fn replace_answer(&mut self, sentence: String) -> &mut Self {
        if let Some(at) = self.blocks.iter().position(|block| matches!(block, ReportBlock::Text(Tone::Answer, _))) {
            if let ReportBlock::Text(tone, _) = &mut self.blocks[at] {
                *tone = Tone::Plain;
            }
            self.blocks.insert(at, ReportBlock::Text(Tone::Answer, visible_text(sentence)));
        }
        self
    }

    /// Adds HTML to the report without escaping the HTML. The HTML must be complete, must load no
    /// external files, and must contain only text that is already escaped.
    pub fn add_raw_html(&mut self, html: String) -> &mut Self {
        self.blocks.push(ReportBlock::RawHtml(html));
        self
    }

    /// Appends all blocks of another report.
    pub fn append(&mut self, other: Report) -> &mut Self {
        self.blocks.extend(other.blocks);
        self
    }

    /// Inserts the blocks of `other`, such as a chart, directly after the answer of the report.
    pub fn insert_after_answer(&mut self, other: Report) -> &mut Self {
        let answer =
            self.blocks.iter().position(|b| matches!(b, ReportBlock::Text(Tone::Answer, _))).map_or(0, |at| at + 1);
        let rest = self.blocks.split_off(answer);
        self.blocks.extend(other.blocks);
        self.blocks.extend(rest);
        self
    }

    /// Adds a sentence to the report. `tone` is the role of the sentence, such as the answer or a
    /// warning.
    pub fn add_sentence(&mut self, tone: Tone, text: impl Into<String>) -> &mut Self {
        self.blocks.push(ReportBlock::Text(tone, visible_text(text)));
        self
    }

    /// Adds labelled values.
    pub fn add_facts(&mut self, facts: Vec<(&str, String)>) -> &mut Self {
        self.blocks.push(ReportBlock::Facts(
            facts.into_iter().map(|(label, value)| (visible_text(label), visible_text(value))).collect(),
        ));
        self
    }

    /// Adds a table.
    pub fn add_table(&mut self, headings: &[&str], rows: Vec<Vec<String>>) -> &mut Self {
        self.blocks.push(ReportBlock::Table(headings.iter().map(|h| visible_text(*h)).collect(), visible_rows(rows)));
        self
    }
}
