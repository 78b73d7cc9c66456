//! Why a page cannot be shown ([`Problem`]): a status, and a sentence.
//!
//! Not here: how the sentence looks (`layout`).

use axum::http::StatusCode;
use plimsoll_model::failure::Failure;

/// Why a page cannot be shown.
#[derive(Debug)]
pub struct Problem {
    /// The status of the answer.
    pub status: StatusCode,
    /// A sentence for people.
    pub text: String,
}

impl Problem {
    /// The requested resource does not exist.
    pub fn not_found(text: impl Into<String>) -> Problem {
        Problem { status: StatusCode::NOT_FOUND, text: text.into() }
    }

    /// What was sent cannot be used.
    pub fn bad(text: impl Into<String>) -> Problem {
        Problem { status: StatusCode::BAD_REQUEST, text: text.into() }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        Problem { status: StatusCode::INTERNAL_SERVER_ERROR, text: failure.to_string() }
    }
}
