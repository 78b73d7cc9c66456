//! The causes that can limit a load line, one file each ([`card::CauseCard`]): the features that
//! each expects, the effects of experiments that it predicts, its sentence, and the next limit
//! without it.
//!
//! A new cause is a file here, its line in [`cards`], its name in `Cause`, a page under
//! `docs/causes`, and three cases of the corpus. Not here: the features (`features`).

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
use card::{CauseCard, Manifestation};

/// All causes of the server, of plimsoll and of the machine.
pub fn cards() -> [&'static CauseCard; 21] {
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

/// All ways, each with its cause.
pub fn ways() -> impl Iterator<Item = (&'static CauseCard, &'static Manifestation)> {
    cards().into_iter().flat_map(|card| card.ways.iter().map(move |way| (card, way)))
}

/// The card of a cause; `None` of what is not known.
pub fn card_of(cause: Cause) -> Option<&'static CauseCard> {
    cards().into_iter().find(|card| card.cause == cause)
}
