//! Shows progress on standard error: on a terminal, a few lines that are rewritten; otherwise, one
//! plain line every few seconds. Standard output contains only the result.

use plimsoll_model::control_characters::escape_keeping_lines;
use plimsoll_report::text::wrap_text;
use plimsoll_report::{Progress, progress_display_lines, progress_line};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// The interval of plain progress lines, which are written if standard error is no terminal.
const PLAIN_LINE_INTERVAL: Duration = Duration::from_secs(5);
/// The smallest height of a terminal, in rows, for a progress display of several lines. A terminal
/// with fewer rows shows only the first progress line.
const MULTI_LINE_ROWS_MIN: usize = 10;

/// The progress display on standard error.
pub struct ProgressDisplay {
    /// Whether standard error is a terminal on which lines can be rewritten.
    is_terminal: bool,
    unicode: bool,
    quiet: bool,
    /// The number of lines on the terminal that the next update rewrites.
    shown_lines: usize,
    last_plain_line_at: Instant,
    /// The heading of the last written table row. Another heading starts a new table.
    heading: String,
}

impl ProgressDisplay {
    pub fn new(quiet: bool) -> ProgressDisplay {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        ProgressDisplay {
            is_terminal: std::io::stderr().is_terminal() && !dumb,
            unicode: is_utf8_locale(),
            quiet,
            shown_lines: 0,
            last_plain_line_at: Instant::now(),
            heading: String::new(),
        }
    }

    /// Shows the current progress in place of the previous one.
    pub fn show_progress(&mut self, progress: &Progress) {
        if self.quiet {
            return;
        }
        if !self.is_terminal {
            if self.last_plain_line_at.elapsed() >= PLAIN_LINE_INTERVAL && progress.live_figures.is_some() {
                self.last_plain_line_at = Instant::now();
                let _ = writeln!(std::io::stderr(), "{}", progress_line(progress));
            }
            return;
        }
        let (columns, rows) = plimsoll_sys::process::terminal_size().unwrap_or((80, 24));
        let mut lines = progress_display_lines(progress, columns, self.unicode);
        if rows < MULTI_LINE_ROWS_MIN {
            lines.truncate(1);
        }
        // All progress lines are written in one call, so that no partial update is visible. Line
        // wrapping is off, because lines that wrap when the terminal becomes narrower could not be
        // removed.
        let text = format!("{}\x1b[?7l{}\x1b[?7h", self.clear_sequence(), lines.join("\n"));
        let _ = std::io::stderr().write_all(text.as_bytes());
        self.shown_lines = lines.len();
    }

    /// Shows one line in place of the previous progress, on a terminal only.
    pub fn show_line(&mut self, line: &str) {
        if self.is_terminal && !self.quiet {
            let text = format!("{}\x1b[?7l{}\x1b[?7h", self.clear_sequence(), escape_keeping_lines(line));
            let _ = std::io::stderr().write_all(text.as_bytes());
            self.shown_lines = 1;
        }
    }

    /// Whether lines that stay on the screen (permanent lines) appear on the same terminal as the
    /// result.
    pub fn are_lines_on_result_terminal(&self) -> bool {
        self.is_terminal && !self.quiet && std::io::stdout().is_terminal()
    }

    /// Returns the width of the terminal in columns; `None` if lines may have any length.
    pub fn terminal_width(&self) -> Option<usize> {
        self.is_terminal.then(|| plimsoll_sys::process::terminal_size().map_or(80, |size| size.0))
    }

    /// Writes a line that stays on the screen (a permanent line), unless `--quiet` is set.
    pub fn print_line_unless_quiet(&mut self, line: &str) {
        if !self.quiet {
            self.print_note(line);
        }
    }

    /// Writes a table row that stays on the screen. The heading is written before the first row
    /// with that heading.
    pub fn print_table_row(&mut self, heading: &str, row: &str) {
        if self.heading != heading {
            self.print_line_unless_quiet(heading);
            heading.clone_into(&mut self.heading);
        }
        self.print_line_unless_quiet(row);
    }

    /// Writes a line that stays on the screen even with `--quiet`, such as the path of a file or a
    /// warning.
    pub fn print_note(&mut self, line: &str) {
        let text =
            format!("{}{}\n", self.clear_sequence(), wrap_text(&escape_keeping_lines(line), self.terminal_width(), 2));
        let _ = std::io::stderr().write_all(text.as_bytes());
        self.shown_lines = 0;
    }

    /// Removes the progress lines from the terminal; permanent lines stay.
    pub fn clear(&mut self) {
        if self.shown_lines > 0 {
            let text = self.clear_sequence();
            let _ = std::io::stderr().write_all(text.as_bytes());
            self.shown_lines = 0;
        }
    }

    /// Returns the control sequence that removes the progress lines.
    fn clear_sequence(&self) -> String {
        match self.shown_lines {
            0 => String::new(),
            1 => "\r\x1b[J".into(),
            lines => format!("\r\x1b[{}A\x1b[J", lines - 1),
        }
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Whether the locale says that the terminal supports UTF-8.
fn is_utf8_locale() -> bool {
    let said = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| std::env::var(name).ok());
    let first = said.into_iter().find(|value| !value.is_empty()).unwrap_or_default().to_lowercase();
    first.contains("utf-8") || first.contains("utf8")
}
