//! The Lua objects `latency` and `requests`, which the script's function `done` receives. Not here:
//! the computation of the figures (`figures`).

use crate::ScriptFigures;
use mlua::{Error, MetaMethod, Result, UserData, UserDataMethods, Value};

/// The Lua object for `latency` or `requests`, which the script's function `done` receives.
#[derive(Debug, Clone)]
pub(crate) struct FiguresHandle {
    pub(crate) figures: ScriptFigures,
    /// Whether `#latency` counts all values, as in wrk2. If false, each distinct value counts once,
    /// as in wrk.
    pub(crate) counts_all: bool,
}

impl UserData for FiguresHandle {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("percentile", |_, this, percent: f64| {
            if percent.is_nan() {
                return Err(Error::runtime("percentile(): the argument must be a number from 0 to 100"));
            }
            Ok(this.figures.percentile(percent) as f64)
        });
        methods.add_meta_method(MetaMethod::Call, |_, this, i: f64| Ok(this.figures.nth_value(i)));
        methods.add_meta_method(MetaMethod::Len, |_, this, ()| {
            Ok(if this.counts_all { this.figures.count() as f64 } else { this.figures.distinct_count() as f64 })
        });
        methods.add_meta_method(MetaMethod::Index, |_, this, key: Value| -> Result<Value> {
            let figures = &this.figures;
            if let Some(i) = key.as_f64().or_else(|| key.as_integer().map(|i| i as f64)) {
                return Ok(Value::Number(figures.nth_value(i).0));
            }
            let Some(key) = key.as_string() else { return Ok(Value::Nil) };
            Ok(match &*key.as_bytes() {
                b"min" => Value::Number(figures.min() as f64),
                b"max" => Value::Number(figures.max() as f64),
                b"mean" => Value::Number(figures.mean()),
                b"stdev" => Value::Number(figures.stdev()),
                _ => Value::Nil,
            })
        });
    }
}
