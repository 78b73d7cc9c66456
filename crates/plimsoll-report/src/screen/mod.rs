//! The first screen of a finding ([`Screen`]): the answer, its certainty, the limit, and the next
//! step. A screen has at most [`LINES_MAX`] lines of [`COLUMNS_MAX`] columns. Each part of the
//! screen has a rank, where 0 is the most important rank. If the screen would have too many lines,
//! the parts with the highest rank number are omitted first.
//!
//! Not here: the verbose text (`text`), which contains every part, and the content of each
//! finding's screen (the modules below).

mod bars;
mod explain;
mod find;
mod overload;
mod prove;
mod report;
mod run;
mod sweep;

pub(crate) use bars::TextHistogram;
pub(crate) use explain::{explain_screen, profiled_functions_text};
pub(crate) use find::find_screen;
pub(crate) use overload::overload_screen;
pub(crate) use prove::{ladder_screen, prove_screen};
pub use report::render_shortened_report;
pub(crate) use run::run_screen;
pub(crate) use sweep::sweep_screen;

use crate::block::Tone;
use crate::failure_kinds;
use crate::table_layout::format_table;
use crate::text::style_text;
use crate::visible_controls::escape_to_one_line;
use crate::wrap::{unbreakable_parts, wrap_text};
use plimsoll_analysis::{DoubtKind, FailedResponseGroup};

/// The maximum number of lines of a screen, including blank lines.
pub const LINES_MAX: usize = 25;
/// The maximum width of a screen in columns. Only a single longer word, such as a URL, may exceed
/// the maximum width.
pub const COLUMNS_MAX: usize = 100;
/// The maximum number of warnings on a screen. `WARNING_LINES_MAX` limits the lines of all warnings
/// together.
const WARNINGS_MAX: usize = 3;
const WARNING_LINES_MAX: usize = 5;
/// The maximum number of lines of the answer. If the answer is longer, its end is omitted.
const ANSWER_LINES_MAX: usize = 3;
/// The end of a shortened text, which names the flag that shows the full text.
const CLIPPED_TEXT_END: &str = "(more: --verbose)";

/// One part of a screen. If the parts do not fit on the screen, parts with the highest rank number
/// are omitted first. Parts of rank 0 are never omitted.
struct ScreenPart<'a> {
    rank: u8,
    content: ScreenContent<'a>,
}

enum ScreenContent<'a> {
    /// A fact: a label and its value.
    Fact(&'static str, String),
    /// A table: headings and rows.
    Table(Vec<String>, Vec<Vec<String>>),
    /// A line of text directly below a table.
    Note(String),
    /// A function that renders lines for a terminal with the given number of columns.
    Lines(Box<dyn Fn(usize) -> Vec<String> + 'a>),
    /// A histogram, which is drawn only if enough lines remain.
    Bars(Box<TextHistogram>),
}

/// The first screen of one finding, as parts that are chosen and formatted when the screen is
/// rendered.
pub(crate) struct Screen<'a> {
    answer: String,
    parts: Vec<ScreenPart<'a>>,
    warnings: Vec<String>,
    omitted_warnings: usize,
    next: Option<String>,
}

impl<'a> Screen<'a> {
    /// Creates a screen that contains only an answer, shortened to `ANSWER_LINES_MAX` lines.
    pub(crate) fn new(answer: impl Into<String>) -> Screen<'a> {
        let answer = shorten_to_lines(&escape_to_one_line(&answer.into()), 0, ANSWER_LINES_MAX);
        Screen { answer, parts: Vec::new(), warnings: Vec::new(), omitted_warnings: 0, next: None }
    }

    /// Adds a label with a value, which is shortened to two lines.
    pub(crate) fn add_fact(&mut self, rank: u8, label: &'static str, value: impl Into<String>) -> &mut Screen<'a> {
        let value = shorten_to_lines(&escape_to_one_line(&value.into()), FACT_INDENT, 2);
        self.parts.push(ScreenPart { rank, content: ScreenContent::Fact(label, value) });
        self
    }

    /// Adds a fact about the first kind of failed responses; adds nothing if no response failed.
    pub(crate) fn add_failed_response(&mut self, rank: u8, kinds: &[FailedResponseGroup]) -> &mut Screen<'a> {
        if let Some((label, text)) = failure_kinds::failure_facts(kinds).into_iter().next() {
            self.add_fact(rank, label, text);
        }
        self
    }

    /// Adds the first `rows_max` rows of a table, and a note if there are more rows.
    pub(crate) fn add_table(
        &mut self,
        rank: u8,
        headings: &[&str],
        mut rows: Vec<Vec<String>>,
        rows_max: usize,
    ) -> &mut Screen<'a> {
        let more = rows.len().saturating_sub(rows_max);
        rows.truncate(rows_max);
        let cell = |cell: String| escape_to_one_line(&cell).into_owned();
        let rows = rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect();
        let headings = headings.iter().map(|&heading| heading.to_owned()).collect();
        self.parts.push(ScreenPart { rank, content: ScreenContent::Table(headings, rows) });
        if more > 0 {
            let note = ScreenContent::Note(format!("{more} more rows: --verbose"));
            self.parts.push(ScreenPart { rank, content: note });
        }
        self
    }

    /// Adds a line of text below a table. The text must fit on one line.
    pub(crate) fn add_note(&mut self, rank: u8, text: impl Into<String>) -> &mut Screen<'a> {
        self.parts.push(ScreenPart { rank, content: ScreenContent::Note(text.into()) });
        self
    }

    /// Adds lines of text that the function `lines` renders for a width in columns.
    pub(crate) fn add_lines(&mut self, rank: u8, lines: impl Fn(usize) -> Vec<String> + 'a) -> &mut Screen<'a> {
        self.parts.push(ScreenPart { rank, content: ScreenContent::Lines(Box::new(lines)) });
        self
    }

    /// Adds a histogram, which is drawn only if enough lines remain.
    pub(crate) fn add_bars(&mut self, bars: TextHistogram) -> &mut Screen<'a> {
        self.parts.push(ScreenPart { rank: 9, content: ScreenContent::Bars(Box::new(bars)) });
        self
    }

    /// Adds the warnings that change the meaning of the figures, the most serious first. For less
    /// serious warnings, and for warnings that do not fit, the screen states only their number.
    pub(crate) fn add_warnings(&mut self, mut warnings: Vec<(DoubtKind, String)>) -> &mut Screen<'a> {
        let all = warnings.len();
        warnings.retain(|(kind, _)| warning_rank(*kind).is_some());
        warnings.sort_by_key(|(kind, _)| warning_rank(*kind));
        let mut lines = 0;
        for (_, text) in warnings.iter().take(WARNINGS_MAX) {
            let text = shorten_to_lines(&format!("warning: {}", escape_to_one_line(text)), 0, WARNING_LINES_MAX - 1);
            let its = line_count(&text, 0);
            if lines > 0 && lines + its > WARNING_LINES_MAX {
                break;
            }
            lines += its;
            self.warnings.push(text);
        }
        self.omitted_warnings = all - self.warnings.len();
        self
    }

    /// Adds the next step for the user: a command, and its purpose.
    pub(crate) fn set_next_step(&mut self, next: impl Into<String>) -> &mut Screen<'a> {
        self.next = Some(escape_to_one_line(&next.into()).into_owned());
        self
    }

    /// Renders the screen as text for a terminal with `columns` columns. The parts to show are
    /// always chosen for the width `COLUMNS_MAX`. A narrow terminal therefore shows the same parts
    /// as a wide terminal, in more lines.
    pub(crate) fn render(mut self, colour: bool, columns: Option<usize>) -> String {
        let columns = columns.unwrap_or(COLUMNS_MAX).min(COLUMNS_MAX);
        let bars_at = self.parts.iter().position(|part| matches!(part.content, ScreenContent::Bars(_)));
        let bars = bars_at.map(|at| (at, self.parts.remove(at)));
        while self.format_parts(false, COLUMNS_MAX).lines().count() > LINES_MAX {
            let Some(rank) = self.parts.iter().map(|part| part.rank).max().filter(|rank| *rank > 0) else { break };
            let last = self.parts.iter().rposition(|part| part.rank == rank);
            last.map(|at| self.parts.remove(at));
        }
        if let Some((at, ScreenPart { rank, content: ScreenContent::Bars(bars) })) = bars {
            let free = LINES_MAX.saturating_sub(self.format_parts(false, COLUMNS_MAX).lines().count() + 2);
            if let Some(bars) = bars.limit_rows(free) {
                let part = ScreenPart { rank, content: ScreenContent::Bars(Box::new(bars)) };
                self.parts.insert(at.min(self.parts.len()), part);
            }
        }
        self.format_parts(colour, columns)
    }

    fn format_parts(&self, colour: bool, columns: usize) -> String {
        let mut out = style_text(&self.answer, Tone::Answer, colour, Some(columns)) + "\n";
        let labels = self.parts.iter().filter_map(|part| match &part.content {
            ScreenContent::Fact(label, _) => Some(label.len()),
            _ => None,
        });
        let label_width = labels.max().unwrap_or(0);
        let mut after_fact = false;
        for part in &self.parts {
            let is_fact = matches!(part.content, ScreenContent::Fact(..));
            if !(is_fact && after_fact || matches!(part.content, ScreenContent::Note(_))) {
                out.push('\n');
            }
            after_fact = is_fact;
            match &part.content {
                ScreenContent::Fact(label, value) => {
                    let fact = format!("  {label:<label_width$}  {value}");
                    out += &(wrap_text(&fact, Some(columns), label_width + 4) + "\n");
                }
                ScreenContent::Table(headings, rows) => out += &format_table(headings, rows, Some(columns)),
                ScreenContent::Note(note) => out += &format!("  {note}\n"),
                ScreenContent::Lines(lines) => lines(columns).iter().for_each(|line| out += &format!("{line}\n")),
                ScreenContent::Bars(bars) => out += &bars.render_histogram(),
            }
        }
        if !self.warnings.is_empty() || self.omitted_warnings > 0 {
            out.push('\n');
        }
        for warning in &self.warnings {
            let warning = warning.strip_prefix("warning: ").unwrap_or(warning);
            out += &(style_text(warning, Tone::Warning, colour, Some(columns)) + "\n");
        }
        let more = if self.warnings.is_empty() { "" } else { "more " };
        match self.omitted_warnings {
            0 => {}
            1 => out += &format!("1 {more}warning: add --verbose, or plimsoll show -v RUN_FILE\n"),
            many => {
                out += &format!("{many} {more}warnings: add --verbose, or plimsoll show -v RUN_FILE\n");
            }
        }
        if let Some(next) = &self.next {
            out += &format!("\n{}\n", wrap_text(&format!("next: {next}"), Some(columns), 6));
        }
        out
    }
}

/// The estimated width in columns of a fact's label with its indentation. The fact's value is
/// shortened for the columns that remain on the line after this width.
const FACT_INDENT: usize = 19;

/// Returns the rank of a warning by its kind. Rank 0 is for warnings that change the meaning of the
/// figures most. Returns `None` if the screen only counts warnings of this kind.
fn warning_rank(kind: DoubtKind) -> Option<u8> {
    Some(match kind {
        DoubtKind::Generator | DoubtKind::Interference | DoubtKind::CountMismatch => 0,
        DoubtKind::Contradicted | DoubtKind::SidesDiffer | DoubtKind::Ended => 1,
        DoubtKind::Unsent | DoubtKind::NoSuccess | DoubtKind::Restarted => 2,
        DoubtKind::Noted | DoubtKind::Void | DoubtKind::OutsideTriedLoads => 3,
        DoubtKind::Server | DoubtKind::Surplus => 4,
        DoubtKind::SloImpossible
        | DoubtKind::Unproven
        | DoubtKind::IgnoredLoads
        | DoubtKind::CutOff
        | DoubtKind::Unmeasured
        | DoubtKind::Unconfirmed
        | DoubtKind::Spread
        | DoubtKind::Rough => return None,
    })
}

fn line_count(text: &str, indent: usize) -> usize {
    wrap_text(text, Some(COLUMNS_MAX - indent), 0).lines().count()
}

/// Shortens `text` to `lines_max` lines of the usual width, if possible at the end of a clause. If
/// no clause ends in the second half of the words that fit, the text is cut after the last word
/// that fits. `indent` is the number of columns on each line that are not available for the text.
pub(crate) fn shorten_to_lines(text: &str, indent: usize, lines_max: usize) -> String {
    if line_count(text, indent) <= lines_max {
        return text.to_owned();
    }
    let words: Vec<&str> = unbreakable_parts(text).collect();
    let clipped =
        |count: usize| format!("{} {CLIPPED_TEXT_END}", words[..count].join(" ").trim_end_matches([',', ';', ':']));
    let fits = |count: &usize| line_count(&clipped(*count), indent) <= lines_max;
    let Some(fitting) = (0..words.len()).rev().find(fits) else { return CLIPPED_TEXT_END.to_owned() };
    let at_clause = (fitting / 2..=fitting).rev().find(|count| ends_with_clause(&words, *count));
    clipped(at_clause.unwrap_or(fitting))
}

/// Returns whether a clause ends after the first `count` words, outside of parentheses.
fn ends_with_clause(words: &[&str], count: usize) -> bool {
    let first = &words[..count];
    let number = |bracket: char| first.iter().map(|word| word.matches(bracket).count()).sum::<usize>();
    let ends = first.last().is_some_and(|word| word.ends_with(['.', ',', ';', ':', ')']));
    let aside_follows = words.get(count).is_some_and(|word| word.starts_with('('));
    number('(') == number(')') && count > 0 && (ends || aside_follows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrap::display_width;

    #[test]
    fn a_screen_does_not_exceed_its_size() {
        let mut screen = Screen::new("yes ".repeat(500));
        for rank in 0..40 {
            screen.add_fact(rank % 4 + u8::from(rank > 3), "label", "some words ".repeat(60));
        }
        screen.add_table(2, &["a", "b"], vec![vec!["1".into(), "2".into()]; 30], 5);
        screen.add_warnings(vec![
            (DoubtKind::Rough, "not so weighty".into()),
            (DoubtKind::Interference, "disturbed ".repeat(100)),
            (DoubtKind::Generator, "limited ".repeat(100)),
        ]);
        screen.set_next_step("plimsoll find URL");
        let shown = screen.render(false, None);
        assert!(shown.lines().count() <= LINES_MAX, "{shown}");
        assert!(shown.lines().all(|line| display_width(line) <= COLUMNS_MAX), "{shown}");
        assert!(shown.contains("2 more warnings: add --verbose") && shown.contains(CLIPPED_TEXT_END), "{shown}");
        assert!(shown.ends_with("next: plimsoll find URL\n"), "{shown}");
    }

    #[test]
    fn a_short_text_is_not_clipped() {
        assert_eq!(shorten_to_lines("a few  words", 0, 1), "a few  words");
    }

    #[test]
    fn a_text_is_clipped_at_the_end_of_a_clause() {
        let long = "word ".repeat(30);
        for (text, expect) in [
            (
                format!("nothing else is likely; the experiment supports it ({long})"),
                "nothing else is likely; the experiment supports it",
            ),
            (
                format!("one two three four five six seven eight nine, ten; {long}"),
                "one two three four five six seven eight nine, ten",
            ),
            (
                format!("1. {long}"),
                "1. word word word word word word word word word word word word word word word word",
            ),
        ] {
            let clipped = shorten_to_lines(&text, 0, 1);
            let kept = clipped.strip_suffix(CLIPPED_TEXT_END).expect("clipped").trim_end();
            assert_eq!(kept, expect);
        }
    }
}
