//! A command line as it is recorded: argument by argument, as it was understood, without secrets.
//!
//! Not here: how it comes about and what of it is left out (the binary's table of flags).

use serde::{Deserialize, Serialize};

/// One argument of a recorded command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The flag by its longest name, such as `--header`; `None` for a target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
    /// What was given, as far as it is kept; `None` for a switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Where something was left out: a number that two arguments of one flag share if they were given the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withheld: Option<u32>,
}

impl Said {
    /// The argument as one word of a command line.
    pub fn word(&self) -> String {
        match (&self.flag, &self.value) {
            (Some(flag), Some(value)) if flag.starts_with("--") => format!("{flag}={value}"),
            (Some(flag), Some(value)) => format!("{flag}{value}"),
            (Some(flag), None) => flag.clone(),
            (None, value) => value.clone().unwrap_or_default(),
        }
    }
}
