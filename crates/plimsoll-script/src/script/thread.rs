//! A thread as scripts hold it: its address, the globals of its state, and the wish that it end.

use super::address::ScriptAddress;
use super::transfer::transfer;
use mlua::{Error, FromLua, Lua, MetaMethod, Result, UserData, UserDataMethods, Value, WeakLua};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What is known of a thread outside of its state.
#[derive(Debug, Default)]
pub(crate) struct ThreadFacts {
    /// Where its connections go; set by `setup`.
    address: Mutex<Option<SocketAddr>>,
    running: AtomicBool,
    stopped: AtomicBool,
}

impl ThreadFacts {
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The load begins, or has ended.
    pub(crate) fn set_running(&self, running: bool) {
        self.running.store(running, Ordering::Relaxed);
    }

    /// Whether it has been asked to end.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// The userdata that `setup` is given, and `wrk.thread`.
#[derive(Clone)]
pub(crate) struct ThreadHandle {
    pub(crate) facts: Arc<ThreadFacts>,
    /// Weak: a thread's own state holds one of these.
    pub(crate) state: WeakLua,
}

impl ThreadHandle {
    fn state(&self) -> Result<Lua> {
        self.state.try_upgrade().ok_or_else(|| Error::runtime("the thread has ended"))
    }
}

impl UserData for ThreadHandle {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get", |lua, this, name: Value| {
            let value: Value = this.state()?.globals().get(transfer(&name, &this.state()?)?)?;
            transfer(&value, lua)
        });
        methods.add_method("set", |_, this, (name, value): (Value, Value)| {
            let state = this.state()?;
            state.globals().set(transfer(&name, &state)?, transfer(&value, &state)?)
        });
        methods.add_method("stop", |_, this, ()| {
            // As with wrk, there is nothing to stop before and after.
            if this.facts.running.load(Ordering::Relaxed) {
                this.facts.stopped.store(true, Ordering::Relaxed);
            }
            Ok(())
        });
        // What is neither of these nor the address is nil: wrk gives the name back.
        methods.add_meta_method(MetaMethod::Index, |lua, this, key: Value| match key.as_string() {
            Some(key) if key == "addr" => match this.facts.address() {
                Some(address) => Ok(Value::UserData(lua.create_userdata(ScriptAddress(address))?)),
                None => Ok(Value::Nil),
            },
            _ => Ok(Value::Nil),
        });
        methods.add_meta_method(MetaMethod::NewIndex, |lua, this, (key, value): (Value, Value)| {
            match key.as_string() {
                Some(key) if key == "addr" => {
                    let address = match value {
                        Value::Nil => return Err(Error::runtime("a thread's address cannot be nil")),
                        value => ScriptAddress::from_lua(value, lua)?,
                    };
                    *this.facts.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address.0);
                    Ok(())
                }
                _ => Err(Error::runtime(format!("cannot set '{}' on thread", key.to_string()?))),
            }
        });
    }
}
