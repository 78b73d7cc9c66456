//! A report as data: blocks in the order in which they are read.

/// How a block is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// The answer.
    Answer,
    /// Something to be doubted or heeded.
    Warning,
}

/// One piece of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A sentence.
    Text(Tone, String),
    /// Labels and their values, one pair a line.
    Facts(Vec<(String, String)>),
    /// A table: headings, then rows of as many cells.
    Table(Vec<String>, Vec<Vec<String>>),
}

/// What is to be shown, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The blocks.
    pub blocks: Vec<Block>,
}

impl Report {
    /// Adds a sentence.
    pub fn text(&mut self, tone: Tone, text: impl Into<String>) -> &mut Self {
        self.blocks.push(Block::Text(tone, text.into()));
        self
    }

    /// Adds labelled values.
    pub fn facts(&mut self, facts: Vec<(&str, String)>) -> &mut Self {
        self.blocks.push(Block::Facts(facts.into_iter().map(|(label, value)| (label.to_owned(), value)).collect()));
        self
    }

    /// Adds a table.
    pub fn table(&mut self, headings: &[&str], rows: Vec<Vec<String>>) -> &mut Self {
        self.blocks.push(Block::Table(headings.iter().map(|h| (*h).to_owned()).collect(), rows));
        self
    }
}
