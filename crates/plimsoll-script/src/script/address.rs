//! Addresses as Lua objects, and the Lua functions `wrk.lookup` and `wrk.connect`. A
//! [`ScriptNetwork`] does the lookups and connections.

use crate::ScriptNetwork;
use mlua::{AnyUserData, Error, FromLua, Lua, MetaMethod, Result, Table, UserData, UserDataMethods, Value};
use std::net::SocketAddr;
use std::sync::Arc;

/// A socket address as a Lua object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScriptAddress(pub(crate) SocketAddr);

impl UserData for ScriptAddress {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        // As in wrk, IPv6 addresses are written without brackets.
        methods.add_meta_method(MetaMethod::ToString, |_, this, ()| Ok(format!("{}:{}", this.0.ip(), this.0.port())));
    }
}

impl FromLua for ScriptAddress {
    fn from_lua(value: Value, _: &Lua) -> Result<Self> {
        let wrong = || {
            Error::runtime(format!(
                "an address that wrk.lookup() returned is expected here, not a value of the Lua type {lua_type}",
                lua_type = value.type_name()
            ))
        };
        let data: &AnyUserData = value.as_userdata().ok_or_else(wrong)?;
        data.borrow::<ScriptAddress>().map(|address| *address).map_err(|_| wrong())
    }
}

/// Adds the functions `lookup` and `connect` to the table `wrk`.
pub(crate) fn add_functions(lua: &Lua, wrk: &Table, network: &Arc<dyn ScriptNetwork>) -> Result<()> {
    let looking = Arc::clone(network);
    let lookup = lua.create_function(move |lua, (host, service): (Option<String>, Option<String>)| {
        let (host, service) = (host.unwrap_or_default(), service.unwrap_or_default());
        let found = looking
            .lookup(&host, &service)
            .map_err(|reason| Error::runtime(format!("unable to resolve {host}:{service} {reason}")))?;
        lua.create_sequence_from(found.into_iter().map(ScriptAddress))
    })?;
    let connecting = Arc::clone(network);
    let connect = lua.create_function(move |_, address: ScriptAddress| Ok(connecting.connect(address.0)))?;
    wrk.raw_set("lookup", lookup)?;
    wrk.raw_set("connect", connect)
}
