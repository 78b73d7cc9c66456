//! Copies values from one Lua state to another, including everything in their tables. Tables that
//! contain themselves or occur twice are copied only once.

use mlua::{Error, Lua, Result, Table, Value};
use std::collections::HashMap;

/// Deepest nesting of tables that is copied.
const DEPTH_MAX: usize = 200;

/// Copies `value` to the Lua state `into`. Functions, userdata and coroutines belong to their Lua
/// state, so copying them is refused with wrk's error text.
pub(crate) fn copy_into_state(value: &Value, into: &Lua) -> Result<Value> {
    TableCopier { into, copied: HashMap::new() }.copy_value(value, 0)
}

struct TableCopier<'a> {
    into: &'a Lua,
    /// The copy of each table, by the address of the original.
    copied: HashMap<usize, Table>,
}

impl TableCopier<'_> {
    fn copy_value(&mut self, value: &Value, depth: usize) -> Result<Value> {
        Ok(match value {
            Value::Nil => Value::Nil,
            Value::Boolean(boolean) => Value::Boolean(*boolean),
            Value::Integer(integer) => Value::Integer(*integer),
            Value::Number(number) => Value::Number(*number),
            // The whole string is copied, whereas wrk cuts it at the first NUL byte.
            Value::String(string) => Value::String(self.into.create_string(string.as_bytes())?),
            Value::Table(table) => Value::Table(self.copy_table(table, depth)?),
            other => {
                return Err(Error::runtime(format!(
                    "cannot transfer '{type_name}' to thread",
                    type_name = other.type_name()
                )));
            }
        })
    }

    fn copy_table(&mut self, table: &Table, depth: usize) -> Result<Table> {
        if depth == DEPTH_MAX {
            return Err(Error::runtime(format!(
                "cannot transfer a table to a thread: its values are nested more than {DEPTH_MAX} levels deep"
            )));
        }
        let place = table.to_pointer() as usize;
        if let Some(copy) = self.copied.get(&place) {
            return Ok(copy.clone());
        }
        let copy = self.into.create_table()?;
        self.copied.insert(place, copy.clone());
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            copy.raw_set(self.copy_value(&key, depth + 1)?, self.copy_value(&value, depth + 1)?)?;
        }
        Ok(copy)
    }
}
