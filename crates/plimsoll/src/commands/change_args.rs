//! The flags of `plimsoll explain` that say what may be changed, as terms.
//!
//! Not here: which changes are possible and their plans (`plimsoll_study::changes`).

use crate::args::ChangeArgs;
use crate::quantity::flag;
use plimsoll_model::failure::Failure;
use plimsoll_model::intervention::VARIED_MAX;
use plimsoll_model::terms::ChangeTerms;
use plimsoll_model::units::parse_number;
use plimsoll_study::runner::PLACE;

/// What the flags say.
pub fn terms(args: &ChangeArgs) -> Result<ChangeTerms<String>, Failure> {
    let identities = args.identities.iter().map(|text| identity(text)).collect::<Result<_, Failure>>()?;
    let vary = args.vary.clone();
    if vary.as_ref().is_some_and(|command| !command.contains(PLACE)) {
        return Err(Failure::usage(format!("--vary: the command has no {PLACE} for the value")));
    }
    let (other_body, may_signal) = (args.other_body.clone(), args.may_signal.clone());
    if other_body.as_deref() == Some("-") {
        return Err(Failure::usage("--other-body: give a text or @FILE, not standard input"));
    }
    if may_signal.iter().any(|word| word.trim().is_empty()) {
        return Err(Failure::usage("--may-signal: give the name or the PID of a process"));
    }
    Ok(ChangeTerms {
        none: args.no_intervene,
        reference: args.reference.clone(),
        identities,
        vary,
        other_body,
        may_signal,
    })
}

/// A header field by which another client names itself, as it is recorded.
pub fn identity(text: &str) -> Result<String, Failure> {
    // The text may hold a secret: it is not repeated.
    let (name, value) = text
        .split_once(':')
        .filter(|(name, _)| !name.trim().is_empty())
        .ok_or_else(|| Failure::usage("--identity: write 'Name: value', a header that identifies another client"))?;
    Ok(format!("{}: {}", name.trim(), value.trim()))
}

/// The values of a setting that are tried.
pub fn values(args: &ChangeArgs) -> Result<Vec<f64>, Failure> {
    let Some(text) = &args.values else { return Ok(Vec::new()) };
    let values: Vec<f64> =
        text.split(',').map(|value| flag("--values", parse_number(value.trim()))).collect::<Result<_, _>>()?;
    match values.iter().all(|value| *value > 0.0) && (2..=VARIED_MAX).contains(&values.len()) {
        true => Ok(values),
        false => Err(Failure::usage(format!("--values: give 2 to {VARIED_MAX} values above 0, such as 2,4,8"))),
    }
}
