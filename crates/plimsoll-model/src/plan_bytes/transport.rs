//! The transport of a plan as bytes: addresses, protocol, certificates.

use super::fields::{
    append_bytes, append_number, for_each_field, push, read_flag, read_port, read_text, read_u32, store_once,
};
use crate::tagged_fields::{FieldReader, append_field};
use crate::tls::TlsSpec;
use crate::transport::{ConnectionPlan, HttpChoice, ResolveSpec};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

pub(super) fn write_connection_plan(out: &mut Vec<u8>, connection_plan: &ConnectionPlan) {
    let ConnectionPlan { addresses, unix, resolve, tls, http, streams_max, keep_alive, close_reset, connections_max } =
        connection_plan;
    addresses.iter().for_each(|it| append_field(out, 1, |out| encode_address(out, it)));
    unix.iter().for_each(|path| append_bytes(out, 2, path.as_bytes()));
    if let Some(ResolveSpec { host, port, every_ns, public }) = resolve {
        append_field(out, 3, |out| {
            append_bytes(out, 1, host.as_bytes());
            append_number(out, 2, u64::from(*port));
            append_number(out, 3, *every_ns);
            append_number(out, 4, u64::from(*public));
        });
    }
    tls.iter().for_each(|it| append_field(out, 4, |out| write_tls_spec(out, it)));
    append_number(out, 5, u64::from(*keep_alive));
    append_number(out, 6, u64::from(*close_reset));
    append_number(out, 7, u64::from(*connections_max));
    let http = match http {
        HttpChoice::Auto => 0,
        HttpChoice::H1 => 1,
        HttpChoice::H2 => 2,
    };
    append_number(out, 8, http);
    append_number(out, 9, u64::from(*streams_max));
}

pub(super) fn read_connection_plan(message: FieldReader) -> Option<ConnectionPlan> {
    let (mut unix, mut resolve, mut tls) = (None, None, None);
    let (mut keep_alive, mut close_reset, mut connections_max) = (None, None, None);
    let (mut http, mut streams_max) = (None, None);
    let mut addresses = Vec::new();
    for_each_field(message, |tag, value| match tag {
        1 => push(&mut addresses, read_address(value)?),
        2 => store_once(&mut unix, read_text(value)?),
        3 => store_once(&mut resolve, read_resolve_spec(value)?),
        4 => store_once(&mut tls, read_tls_spec(value)?),
        5 => store_once(&mut keep_alive, read_flag(value)?),
        6 => store_once(&mut close_reset, read_flag(value)?),
        7 => store_once(&mut connections_max, read_u32(value)?),
        8 => store_once(
            &mut http,
            match value.read_number()? {
                0 => HttpChoice::Auto,
                1 => HttpChoice::H1,
                2 => HttpChoice::H2,
                _ => return None,
            },
        ),
        9 => store_once(&mut streams_max, read_u32(value).filter(|streams| *streams > 0)?),
        _ => None,
    })?;
    let (keep_alive, close_reset, connections_max) = (keep_alive?, close_reset?, connections_max?);
    let (http, streams_max) = (http?, streams_max?);
    Some(ConnectionPlan { addresses, unix, resolve, tls, http, streams_max, keep_alive, close_reset, connections_max })
}

/// Appends the bytes of the IP address and the port; for IPv6 also the flow label and the scope.
fn encode_address(out: &mut Vec<u8>, address: &SocketAddr) {
    match address {
        SocketAddr::V4(v4) => out.extend_from_slice(&v4.ip().octets()),
        SocketAddr::V6(v6) => out.extend_from_slice(&v6.ip().octets()),
    }
    out.extend_from_slice(&address.port().to_le_bytes());
    if let SocketAddr::V6(v6) = address {
        out.extend_from_slice(&v6.flowinfo().to_le_bytes());
        out.extend_from_slice(&v6.scope_id().to_le_bytes());
    }
}

fn read_address(value: FieldReader) -> Option<SocketAddr> {
    if let Ok([a, b, c, d, port @ ..]) = <[u8; 6]>::try_from(value.bytes) {
        return Some(SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_le_bytes(port)).into());
    }
    let (ip, rest) = value.bytes.split_first_chunk::<16>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let (flow, rest) = rest.split_first_chunk::<4>()?;
    let scope = <[u8; 4]>::try_from(rest).ok()?;
    let (port, flow, scope) = (u16::from_le_bytes(*port), u32::from_le_bytes(*flow), u32::from_le_bytes(scope));
    Some(SocketAddrV6::new(Ipv6Addr::from(*ip), port, flow, scope).into())
}

fn read_resolve_spec(message: FieldReader) -> Option<ResolveSpec> {
    let (mut host, mut port, mut every_ns, mut public) = (None, None, None, None);
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut host, read_text(value)?),
        2 => store_once(&mut port, read_port(value)?),
        3 => store_once(&mut every_ns, value.read_number()?),
        4 => store_once(&mut public, read_flag(value)?),
        _ => None,
    })?;
    Some(ResolveSpec { host: host?, port: port?, every_ns: every_ns?, public: public? })
}

fn write_tls_spec(out: &mut Vec<u8>, tls: &TlsSpec) {
    let TlsSpec { server_name, verify, resume, alpn, roots, certificate_pem, key_pem } = tls;
    append_bytes(out, 1, server_name.as_bytes());
    append_number(out, 2, u64::from(*verify));
    append_number(out, 3, u64::from(*resume));
    alpn.iter().for_each(|protocol| append_bytes(out, 4, protocol.as_bytes()));
    roots.iter().for_each(|root| append_bytes(out, 5, root));
    certificate_pem.iter().for_each(|pem| append_bytes(out, 6, pem));
    key_pem.iter().for_each(|pem| append_bytes(out, 7, pem));
}

fn read_tls_spec(message: FieldReader) -> Option<TlsSpec> {
    let (mut server_name, mut verify, mut resume) = (None, None, None);
    let (mut certificate_pem, mut key_pem) = (None, None);
    let (mut alpn, mut roots) = (Vec::new(), Vec::new());
    for_each_field(message, |tag, value| match tag {
        1 => store_once(&mut server_name, read_text(value)?),
        2 => store_once(&mut verify, read_flag(value)?),
        3 => store_once(&mut resume, read_flag(value)?),
        4 => push(&mut alpn, read_text(value)?),
        5 => push(&mut roots, value.bytes.to_vec()),
        6 => store_once(&mut certificate_pem, value.bytes.to_vec()),
        7 => store_once(&mut key_pem, value.bytes.to_vec()),
        _ => None,
    })?;
    let (server_name, verify, resume) = (server_name?, verify?, resume?);
    Some(TlsSpec { server_name, verify, resume, alpn, roots, certificate_pem, key_pem })
}
