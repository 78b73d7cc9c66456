//! The causes that can limit a load line, one file each ([`card::CauseCard`]). The file of a cause
//! contains the expected answers to the features, the predicted effects of experiments, and the
//! sentence about the cause. The file also lists the resources that are saturated because of the
//! cause.
//!
//! A new cause needs a file in this folder, a line in [`cause_cards`] and a variant of `Cause`. A
//! new cause also needs a page under `docs/causes`, and three recorded cases in the corpus
//! (`corpus/`).
//!
//! Not here: the features, questions about the observed server (`features`).

pub mod card;

mod accept_backlog;
mod client;
mod cpu;
mod cpu_quota;
mod delay;
mod disk;
mod downstream;
mod files;
mod gc;
mod limiter;
mod lock;
mod memory;
mod neighbour;
mod network;
mod none;
mod one_thread;
mod pool;
mod ports;
mod slow_reader;
mod warm_up;
mod workers;

use super::cause::Cause;
use card::{CauseCard, CauseForm};

/// Returns the descriptions of all causes, in a fixed order.
pub fn cause_cards() -> [&'static CauseCard; 21] {
    [
        &client::CARD,
        &none::CARD,
        &neighbour::CARD,
        &ports::CARD,
        &files::CARD,
        &accept_backlog::CARD,
        &memory::CARD,
        &cpu_quota::CARD,
        &limiter::CARD,
        &delay::CARD,
        &warm_up::CARD,
        &gc::CARD,
        &one_thread::CARD,
        &cpu::CARD,
        &workers::CARD,
        &pool::CARD,
        &lock::CARD,
        &downstream::CARD,
        &disk::CARD,
        &slow_reader::CARD,
        &network::CARD,
    ]
}

/// Returns all forms of all causes, each form with its cause. Each form leads to different answers
/// to the features (questions about the server).
pub fn cause_forms() -> impl Iterator<Item = (&'static CauseCard, &'static CauseForm)> {
    cause_cards().into_iter().flat_map(|card| card.forms.iter().map(move |form| (card, form)))
}

/// Returns the description of a cause; `None` for [`Cause::Unknown`].
pub fn cause_description(cause: Cause) -> Option<&'static CauseCard> {
    cause_cards().into_iter().find(|card| card.cause == cause)
}
