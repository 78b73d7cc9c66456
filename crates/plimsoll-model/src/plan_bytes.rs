//! A complete plan as bytes, for another machine to carry out: bodies, keys and trust included,
//! nothing left out.
//!
//! Tagged fields ([`crate::tagged`]), but unlike figures of a run, a field that a reader does not
//! know is refused: a plan that is understood in part would be another load. Only what is plainly a
//! plan comes back ([`Plan::from_bytes`]); what it takes in memory is bounded by the length of the
//! bytes. Not here: the record of a plan in a run file (`codec`), which holds no secret.

mod carriage;
mod fields;
mod listed;
mod load;
mod route;
mod traffic;

pub(crate) use route::asked_bytes;
pub(crate) use traffic::{around_bytes, program_bytes};

use crate::plan::Plan;
use crate::tagged::{Reader, field};
use fields::{number, once, read};

/// The form written by this crate; another is refused.
const FORM: u64 = 3;

/// Why bytes are no plan that can be carried out here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Written by another version.
    #[error("the plan is of another plimsoll: use the same version on all machines")]
    OtherForm,
    /// Cut, damaged, or with what no plan has.
    #[error("this is not a whole plan")]
    NotAPlan,
}

impl Plan {
    /// The whole plan, secrets included.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        number(&mut out, 1, FORM);
        field(&mut out, 2, |out| traffic::traffic(out, &self.traffic));
        field(&mut out, 3, |out| load::load(out, &self.load));
        field(&mut out, 4, |out| carriage::carriage(out, &self.carriage));
        out
    }

    /// The plan that [`Plan::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Plan, PlanError> {
        let (mut form, mut parts) = (None, (None, None, None));
        let whole = read(Reader::new(bytes), |tag, value| {
            match tag {
                1 => form = Some(value.number()?),
                // What follows is read as the form says.
                _ if form != Some(FORM) => return None,
                2 => once(&mut parts.0, traffic::read_traffic(value)?)?,
                3 => once(&mut parts.1, load::read_load(value)?)?,
                4 => once(&mut parts.2, carriage::read_carriage(value)?)?,
                _ => return None,
            }
            Some(())
        });
        match (form, whole, parts) {
            (Some(form), ..) if form != FORM => Err(PlanError::OtherForm),
            (_, Some(()), (Some(traffic), Some(load), Some(carriage))) => {
                let plan = Plan { traffic, load, carriage };
                if plan.is_bounded() { Ok(plan) } else { Err(PlanError::NotAPlan) }
            }
            _ => Err(PlanError::NotAPlan),
        }
    }
}
