//! The reason why the server cannot fulfil a request ([`Problem`]): an HTTP status and a sentence.
//!
//! Not here: the HTML of the error page (`layout`).

use axum::http::StatusCode;
use plimsoll_model::failure::Failure;

/// The reason why the server cannot fulfil a request, as an HTTP status and a sentence.
#[derive(Debug)]
pub struct Problem {
    /// The HTTP status of the response.
    pub status: StatusCode,
    /// The reason as a sentence for the user.
    pub text: String,
}

impl Problem {
    /// Creates a problem with status 404: the requested resource does not exist.
    pub fn not_found(text: impl Into<String>) -> Problem {
        Problem { status: StatusCode::NOT_FOUND, text: text.into() }
    }

    /// Creates a problem with status 400: the content of the request is not valid.
    pub fn bad_request(text: impl Into<String>) -> Problem {
        Problem { status: StatusCode::BAD_REQUEST, text: text.into() }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        Problem { status: StatusCode::INTERNAL_SERVER_ERROR, text: failure.to_string() }
    }
}
