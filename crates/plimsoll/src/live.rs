//! What is shown while something runs: one line that is rewritten on a terminal, or lines that stay. Always on standard
//! error, so that standard output holds the result alone.

use std::io::{IsTerminal, Write};

/// The place for progress.
pub struct Live {
    /// Whether a line can be rewritten.
    terminal: bool,
    quiet: bool,
    shown: bool,
}

impl Live {
    pub fn new(quiet: bool) -> Live {
        Live { terminal: std::io::stderr().is_terminal(), quiet, shown: false }
    }

    /// Rewrites the passing line; nothing where lines cannot be rewritten.
    pub fn passing(&mut self, line: &str) {
        if self.terminal && !self.quiet {
            // Cut to the terminal's width: a wrapped line could not be taken back.
            let width = columns();
            let line: String = line.chars().take(width.saturating_sub(1)).collect();
            let _ = write!(std::io::stderr(), "\r\x1b[2K{line}");
            self.shown = true;
        }
    }

    /// Whether lines that stay are seen where the result is going to be seen too: on one terminal.
    pub fn lines_seen(&self) -> bool {
        self.terminal && !self.quiet && std::io::stdout().is_terminal()
    }

    /// Writes a line that stays.
    pub fn line(&mut self, line: &str) {
        self.clear();
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }

    /// Writes a line that stays even when progress is not wanted: where files went, warnings.
    pub fn note(&mut self, line: &str) {
        self.clear();
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    /// Takes the passing line back.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[2K");
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.clear();
    }
}

fn columns() -> usize {
    plimsoll_sys::process::terminal_columns().unwrap_or(80)
}
