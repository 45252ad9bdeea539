//! The meaning of each kind of message, and what happens if it is lost.

use core::net::Ipv4Addr;

use super::message::Message;
use super::message_types::{type_name, words};

/// The purpose of a client's REQUEST (RFC 2131, 4.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    Selecting,
    /// The client has restarted and asks whether its address is still valid.
    InitReboot,
    /// The client asks the server that granted the lease for more time (after T1).
    Renewing,
    /// The client asks any server for more time (after T2).
    Rebinding,
}

pub(super) fn phase(message: &Message, is_broadcast: bool) -> Option<Phase> {
    if message.kind() != Some(3) || message.is_reply {
        return None;
    }
    Some(match (message.option(54), message.client_address) {
        (Some(_), _) => Phase::Selecting,
        (None, None) => Phase::InitReboot,
        (None, Some(_)) if is_broadcast => Phase::Rebinding,
        (None, Some(_)) => Phase::Renewing,
    })
}

/// Returns a short summary of a message, and what would have happened if it had been
/// lost.
pub(super) fn meaning(message: &Message, phase: Option<Phase>) -> (String, &'static str) {
    let key = match (message.kind(), phase) {
        (_, Some(Phase::Selecting)) => "3-selecting".into(),
        (_, Some(Phase::InitReboot)) => "3-init-reboot".into(),
        (_, Some(Phase::Renewing)) => "3-renewing".into(),
        (_, Some(Phase::Rebinding)) => "3-rebinding".into(),
        (Some(5), _) if message.your_address.is_some() => "5-address".into(),
        (None, _) if message.is_reply => "reply".into(),
        (None, _) => "request".into(),
        (Some(kind), _) => kind.to_string(),
    };
    // A type without its own words gets the words of TLS, the last type.
    let [_, says, if_lost] = words(&key).or(words("18")).unwrap_or_default();
    let named = |address: Option<Ipv4Addr>, otherwise: &str| match address {
        Some(address) => address.to_string(),
        None => otherwise.to_owned(),
    };
    let asked = message.address_of(50);
    let wanted = asked.map_or(String::new(), |address| format!(", {address} if possible"));
    let says = says
        .replace("{wanted}", &wanted)
        .replace("{asked}", &named(asked, "an address"))
        .replace("{server}", &named(message.address_of(54), "a server"))
        .replace("{own}", &named(message.client_address, "0.0.0.0"))
        .replace("{your}", &named(message.your_address, "0.0.0.0"));
    (says, if_lost)
}

pub(super) fn name(message: &Message) -> String {
    match message.kind() {
        Some(kind) => type_name(kind),
        None if message.is_reply => "BOOTREPLY".into(),
        None => "BOOTREQUEST".into(),
    }
}
