//! A complete plan as bytes, for another machine to execute. The bytes include bodies, keys and
//! trusted certificates.
//!
//! The bytes are tagged fields ([`crate::tagged_fields`]). A reader refuses a plan with unknown
//! fields, because the reader would execute a different load. [`Plan::from_bytes`] returns valid
//! plans only, and its memory is bounded by the length of the bytes.
//!
//! Not here: the record of a plan in a run file (`codec`), which has no secrets.

mod fields;
mod listed;
mod load;
mod route;
mod traffic;
mod transport;

pub(crate) use route::route_digest_input;
pub(crate) use traffic::{scenario_digest_input, setup_teardown_digest_input};

use crate::plan::Plan;
use crate::tagged_fields::{FieldReader, append_field};
use fields::{append_number, for_each_field, store_once};

/// The format version that this crate writes. A reader refuses every other version.
const PLAN_FORMAT_VERSION: u64 = 3;

/// The reason why bytes cannot be decoded into an executable plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The bytes have the format of another plimsoll version.
    #[error("the plan is from another plimsoll version: use the same version on all machines")]
    OtherVersion,
    /// The bytes are cut or damaged, or contain values that no plan has.
    #[error("the plan is incomplete")]
    NotAPlan,
}

impl Plan {
    /// Encodes the whole plan, including its secrets.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        append_number(&mut out, 1, PLAN_FORMAT_VERSION);
        append_field(&mut out, 2, |out| traffic::write_traffic(out, &self.traffic));
        append_field(&mut out, 3, |out| load::write_load(out, &self.load));
        append_field(&mut out, 4, |out| transport::write_connection_plan(out, &self.connection_plan));
        out
    }

    /// Decodes a plan from the bytes of [`Plan::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Plan, PlanError> {
        let (mut form, mut parts) = (None, (None, None, None));
        let whole = for_each_field(FieldReader::new(bytes), |tag, value| {
            match tag {
                1 => form = Some(value.read_number()?),
                // The version must be the first field, because it decides how the other fields are
                // decoded.
                _ if form != Some(PLAN_FORMAT_VERSION) => return None,
                2 => store_once(&mut parts.0, traffic::read_traffic(value)?)?,
                3 => store_once(&mut parts.1, load::read_load(value)?)?,
                4 => store_once(&mut parts.2, transport::read_connection_plan(value)?)?,
                _ => return None,
            }
            Some(())
        });
        match (form, whole, parts) {
            (Some(form), ..) if form != PLAN_FORMAT_VERSION => Err(PlanError::OtherVersion),
            (_, Some(()), (Some(traffic), Some(load), Some(connection_plan))) => {
                let plan = Plan { traffic, load, connection_plan };
                if plan.is_within_limits() { Ok(plan) } else { Err(PlanError::NotAPlan) }
            }
            _ => Err(PlanError::NotAPlan),
        }
    }
}
