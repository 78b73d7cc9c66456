//! What is shown while something runs: a few lines that are rewritten on a terminal, or plain lines
//! now and then. Always on standard error, so that standard output holds the result alone.

use plimsoll_model::steering::lines;
use plimsoll_report::text::broken;
use plimsoll_report::{Progress, progress_block, progress_line};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Where lines cannot be rewritten, one is written this often.
const PLAIN_EVERY: Duration = Duration::from_secs(5);
/// Most lines that are rewritten, and as many again must fit on the terminal.
const ROWS_MIN: usize = 10;

/// The place for progress.
pub struct Live {
    /// Whether lines can be rewritten.
    terminal: bool,
    unicode: bool,
    quiet: bool,
    /// Lines on the terminal that will be rewritten.
    shown: usize,
    plain_last: Instant,
    /// The headings of the rows that were written last.
    heading: String,
}

impl Live {
    pub fn new(quiet: bool) -> Live {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Live {
            terminal: std::io::stderr().is_terminal() && !dumb,
            unicode: unicode(),
            quiet,
            shown: 0,
            plain_last: Instant::now(),
            heading: String::new(),
        }
    }

    /// Shows what is known now, in the place of what was shown before.
    pub fn passing(&mut self, progress: &Progress) {
        if self.quiet {
            return;
        }
        if !self.terminal {
            if self.plain_last.elapsed() >= PLAIN_EVERY && progress.now.is_some() {
                self.plain_last = Instant::now();
                let _ = writeln!(std::io::stderr(), "{}", progress_line(progress));
            }
            return;
        }
        let (columns, rows) = plimsoll_sys::process::terminal_size().unwrap_or((80, 24));
        let mut lines = progress_block(progress, columns, self.unicode);
        if rows < ROWS_MIN {
            lines.truncate(1);
        }
        // One write, so that nothing is seen half done; without wrapping, so that a terminal that
        // was just made narrower does not break what will be taken back by lines.
        let text = format!("{}\x1b[?7l{}\x1b[?7h", self.back(), lines.join("\n"));
        let _ = std::io::stderr().write_all(text.as_bytes());
        self.shown = lines.len();
    }

    /// Shows one line in the place of what was shown before, where lines can be rewritten.
    pub fn word(&mut self, line: &str) {
        if self.terminal && !self.quiet {
            let text = format!("{}\x1b[?7l{}\x1b[?7h", self.back(), lines(line));
            let _ = std::io::stderr().write_all(text.as_bytes());
            self.shown = 1;
        }
    }

    /// Whether lines that stay are seen where the result is going to be seen too: on one terminal.
    pub fn lines_seen(&self) -> bool {
        self.terminal && !self.quiet && std::io::stdout().is_terminal()
    }

    /// Columns of the terminal; `None` where lines may be of any length.
    pub fn columns(&self) -> Option<usize> {
        self.terminal.then(|| plimsoll_sys::process::terminal_size().map_or(80, |size| size.0))
    }

    /// Writes a line that stays.
    pub fn line(&mut self, line: &str) {
        if !self.quiet {
            self.note(line);
        }
    }

    /// Writes a row that stays, under its headings: they are written before the first.
    pub fn row(&mut self, heading: &str, row: &str) {
        if self.heading != heading {
            self.line(heading);
            heading.clone_into(&mut self.heading);
        }
        self.line(row);
    }

    /// Writes a line that stays even when progress is not wanted: where files went, warnings.
    pub fn note(&mut self, line: &str) {
        let text = format!("{}{}\n", self.back(), broken(&lines(line), self.columns(), 2));
        let _ = std::io::stderr().write_all(text.as_bytes());
        self.shown = 0;
    }

    /// Takes the passing lines back.
    pub fn clear(&mut self) {
        if self.shown > 0 {
            let text = self.back();
            let _ = std::io::stderr().write_all(text.as_bytes());
            self.shown = 0;
        }
    }

    /// What brings the cursor to where the passing lines began, and removes them.
    fn back(&self) -> String {
        match self.shown {
            0 => String::new(),
            1 => "\r\x1b[J".into(),
            lines => format!("\r\x1b[{}A\x1b[J", lines - 1),
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Whether the locale says that the terminal takes UTF-8.
fn unicode() -> bool {
    let said = ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| std::env::var(name).ok());
    let first = said.into_iter().find(|value| !value.is_empty()).unwrap_or_default().to_lowercase();
    first.contains("utf-8") || first.contains("utf8")
}
