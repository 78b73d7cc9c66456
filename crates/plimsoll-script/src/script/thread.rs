//! The Lua object for a thread of the load: the thread's target address, the global variables of
//! its Lua state, and its stop flag.

use super::address::ScriptAddress;
use super::transfer::copy_into_state;
use mlua::{Error, FromLua, Lua, MetaMethod, Result, UserData, UserDataMethods, Value, WeakLua};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The properties of a thread that plimsoll stores outside the thread's Lua state.
#[derive(Debug, Default)]
pub(crate) struct ScriptThreadState {
    /// The address that the thread connects to; set by `setup`.
    address: Mutex<Option<SocketAddr>>,
    running: AtomicBool,
    stopped: AtomicBool,
}

impl ScriptThreadState {
    pub(crate) fn connection_address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the load begins (true) or has ended (false).
    pub(crate) fn set_running(&self, running: bool) {
        self.running.store(running, Ordering::Relaxed);
    }

    /// Returns whether the script asked the thread to stop.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// The Lua object that `setup` receives and that `wrk.thread` contains.
#[derive(Clone)]
pub(crate) struct ThreadHandle {
    pub(crate) thread_state: Arc<ScriptThreadState>,
    /// The thread's Lua state. The reference is weak, because the Lua state itself contains a
    /// [`ThreadHandle`] (`wrk.thread`).
    pub(crate) state: WeakLua,
}

impl ThreadHandle {
    fn upgrade_state(&self) -> Result<Lua> {
        self.state
            .try_upgrade()
            .ok_or_else(|| Error::runtime("the variables of this thread are not accessible: the thread has ended"))
    }
}

impl UserData for ThreadHandle {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get", |lua, this, name: Value| {
            let value: Value = this.upgrade_state()?.globals().get(copy_into_state(&name, &this.upgrade_state()?)?)?;
            copy_into_state(&value, lua)
        });
        methods.add_method("set", |_, this, (name, value): (Value, Value)| {
            let state = this.upgrade_state()?;
            state.globals().set(copy_into_state(&name, &state)?, copy_into_state(&value, &state)?)
        });
        methods.add_method("stop", |_, this, ()| {
            // As in wrk, `stop` has no effect before and after the load.
            if this.thread_state.running.load(Ordering::Relaxed) {
                this.thread_state.stopped.store(true, Ordering::Relaxed);
            }
            Ok(())
        });
        // A thread object returns nil for an unknown key, whereas wrk returns the key itself.
        methods.add_meta_method(MetaMethod::Index, |lua, this, key: Value| match key.as_string() {
            Some(key) if key == "addr" => match this.thread_state.connection_address() {
                Some(address) => Ok(Value::UserData(lua.create_userdata(ScriptAddress(address))?)),
                None => Ok(Value::Nil),
            },
            _ => Ok(Value::Nil),
        });
        methods.add_meta_method(MetaMethod::NewIndex, |lua, this, (key, value): (Value, Value)| {
            match key.as_string() {
                Some(key) if key == "addr" => {
                    let address = match value {
                        Value::Nil => {
                            return Err(Error::runtime(
                                "thread.addr cannot be nil: set an address that wrk.lookup() returned",
                            ));
                        }
                        value => ScriptAddress::from_lua(value, lua)?,
                    };
                    *this.thread_state.address.lock().unwrap_or_else(PoisonError::into_inner) = Some(address.0);
                    Ok(())
                }
                _ => Err(Error::runtime(format!("cannot set '{field}' on thread", field = key.to_string()?))),
            }
        });
    }
}
