//! Replaces parts of paths that look like secret keys, because users may share a traffic file. Each
//! key has a distinct replacement, so the number of distinct paths stays the same. Not here:
//! detecting keys ([`redact::replace_keys`]).

use plimsoll_model::{RequestTargets, RouteNumber, redact};
use std::collections::HashMap;

/// The beginning of the replacement of a secret key. A number follows the prefix, as in
/// `withheld-1`.
pub const WITHHELD_KEY_PREFIX: &str = "withheld-";

/// The paths of a log, in which parts that look like secret keys are replaced.
pub struct RedactedTargets {
    targets: RequestTargets,
    /// The paths that contain replacements, by number of the path in `targets`.
    replaced: HashMap<u32, String>,
    /// The number of distinct keys that were replaced.
    pub keys: usize,
}

impl RedactedTargets {
    /// Replaces the secret keys in the paths `targets`. If `keep` is true, no key is replaced.
    pub fn new(targets: RequestTargets, keep: bool) -> RedactedTargets {
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut replaced = HashMap::new();
        if !keep {
            for (number, target) in (0u32..).zip(targets.iter()) {
                let written = redact::replace_keys(target, |key| {
                    let next = numbers.len() + 1;
                    format!("{WITHHELD_KEY_PREFIX}{}", numbers.entry(key.to_owned()).or_insert(next))
                });
                if written != target {
                    replaced.insert(number, written);
                }
            }
        }
        RedactedTargets { targets, replaced, keys: numbers.len() }
    }

    /// Returns the path with the number `number`, in which all secret keys are replaced.
    pub fn redacted_path(&self, number: u32) -> &str {
        self.replaced.get(&number).map_or_else(|| self.targets.get(number), String::as_str)
    }

    /// Records the route of a path in which secret keys were replaced. A path with replaced keys no
    /// longer matches the template of its route, so the route cannot be derived from the path.
    pub fn note_route(&self, number: u32, method: &str, route: RouteNumber, routes: &mut WithheldRoutes) {
        if let Some(target) = self.replaced.get(&number) {
            routes.entry((method.to_owned(), target.clone())).or_insert(route);
        }
    }
}

/// The routes of paths that contain replacements, by method and path.
pub type WithheldRoutes = HashMap<(String, String), RouteNumber>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_secret_key_has_its_own_replacement() {
        let all = [
            "/reset/Zq7xK2mW9vLp4TnR8sYd",
            "/items/42",
            "/reset/Yq7xK2mW9vLp4TnR8sYd",
            "/a?token=Zq7xK2mW9vLp4TnR8sYd",
        ];
        let targets = || {
            let mut targets = RequestTargets::default();
            all.iter().for_each(|target| assert!(targets.push(target).is_some()));
            targets
        };
        let written = RedactedTargets::new(targets(), false);
        let texts: Vec<&str> = (0..4).map(|number| written.redacted_path(number)).collect();
        assert_eq!(texts, ["/reset/withheld-1", "/items/42", "/reset/withheld-2", "/a?token=withheld-1"]);
        assert_eq!(written.keys, 2);
        let kept = RedactedTargets::new(targets(), true);
        assert_eq!(((0..4).map(|number| kept.redacted_path(number)).collect::<Vec<_>>(), kept.keys), (all.to_vec(), 0));
    }
}
