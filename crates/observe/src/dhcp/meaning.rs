//! What each kind of message is for, and what comes of its loss.

use super::message::Message;
use super::options::type_name;

/// What a client asks for with a REQUEST (RFC 2131, 4.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// It takes one of the offers.
    Selecting,
    /// It has restarted and asks whether its address is still good.
    InitReboot,
    /// It asks the server that gave the lease for more time (after T1).
    Renewing,
    /// It asks any server for more time (after T2).
    Rebinding,
}

/// The phase of a REQUEST.
pub(super) fn phase(message: &Message, is_broadcast: bool) -> Option<Phase> {
    if message.kind() != Some(3) || message.is_reply {
        return None;
    }
    Some(match (message.value(54), message.client.is_unspecified()) {
        (Some(_), _) => Phase::Selecting,
        (None, true) => Phase::InitReboot,
        (None, false) if is_broadcast => Phase::Rebinding,
        (None, false) => Phase::Renewing,
    })
}

/// The name of a message.
pub(super) fn name(message: &Message) -> String {
    match message.kind() {
        Some(kind) => type_name(kind).map_or_else(|| format!("type {kind}"), str::to_owned),
        None if message.is_reply => "BOOTREPLY".into(),
        None => "BOOTREQUEST".into(),
    }
}

/// What a message says, in a few words.
pub(super) fn summary(message: &Message, phase: Option<Phase>) -> String {
    let asked = message.address_of(50);
    let wanted = asked
        .map(|address| format!(", {address} if it may be"))
        .unwrap_or_default();
    let asked = asked.map_or_else(|| "an address".to_owned(), |address| address.to_string());
    let server = message.address_of(54);
    let server = server.map_or_else(|| "a server".to_owned(), |address| address.to_string());
    let your = message.your;
    let own = message.client;
    match (message.kind(), phase) {
        (Some(1), _) => format!("asks every server for an address{wanted}"),
        (Some(2), _) => format!("{server} offers {your}"),
        (_, Some(Phase::Selecting)) => format!("takes {asked}, which {server} offered"),
        (_, Some(Phase::InitReboot)) => format!("asks whether {asked} is still its own"),
        (_, Some(Phase::Renewing)) => format!("asks its server for more time with {own}"),
        (_, Some(Phase::Rebinding)) => format!("asks any server for more time with {own}"),
        (Some(4), _) => format!("refuses {asked}, which another host uses"),
        (Some(5), _) if your.is_unspecified() => format!("{server} answers with parameters alone"),
        (Some(5), _) => format!("{server} grants {your}"),
        (Some(6), _) => format!("{server} refuses; the client must begin anew"),
        (Some(7), _) => format!("gives {own} back to {server} before its lease runs out"),
        (Some(8), _) => format!("has {own} already and asks for parameters alone"),
        (Some(9), _) => format!("{server} asks the client to renew its lease now"),
        (None, _) if message.is_reply => format!("{your} is assigned by BOOTP, without a lease"),
        (None, _) => "asks for an address by BOOTP".into(),
        _ => "is no part of a lease's exchange".into(),
    }
}

/// What would happen had a message been lost.
pub(super) fn if_lost(message: &Message, phase: Option<Phase>) -> &'static str {
    match (message.kind(), phase) {
        (Some(1), _) => {
            "no server hears of the client, which sends it again after about 4 s, then at twice the \
             interval up to 64 s (RFC 2131, 4.1)"
        }
        (Some(2), _) => {
            "the client takes the offer of another server, or sends DISCOVER again; the server may \
             offer the same address then (RFC 2131, 3.1 and 4.3.1)"
        }
        (_, Some(Phase::Selecting)) => {
            "the server commits nothing; the client sends it again, and after that begins anew \
             with DISCOVER (RFC 2131, 3.1 step 5)"
        }
        (_, Some(Phase::InitReboot)) => {
            "the client sends it again; without an answer it may use the address for the rest of \
             its lease (RFC 2131, 3.2)"
        }
        (_, Some(Phase::Renewing)) => {
            "the client keeps the address and asks again after half of the time left until T2, at \
             least 60 s; from T2 on it asks every server (RFC 2131, 4.4.5)"
        }
        (_, Some(Phase::Rebinding)) => {
            "the client asks again after half of the time left, at least 60 s; when the lease has \
             run out it must give the address up and begin anew (RFC 2131, 4.4.5)"
        }
        (Some(4), _) => {
            "nobody acknowledges it, so nobody notices: the server believes that the client has \
             the address until the lease runs out (RFC 2131, 3.1 step 5 and 4.3.3)"
        }
        (Some(5), _) if message.your.is_unspecified() => {
            "the client asks again, and after a minute or four tries goes on with defaults \
             (RFC 2131, 4.4.3)"
        }
        (Some(5), _) => {
            "the server has noted the lease and the client does not know; it sends REQUEST again \
             and the server answers again (RFC 2131, 3.1 step 5)"
        }
        (Some(6), _) => {
            "the client sends REQUEST again and is refused again (RFC 2131, 3.1 step 5)"
        }
        (Some(7), _) => {
            "nobody acknowledges it, so nobody notices: the address stays taken until the lease \
             runs out; nothing depends on it (RFC 2131, 4.4.6)"
        }
        (Some(8), _) => {
            "the client asks again, and after a minute or four tries goes on with defaults \
             (RFC 2131, 4.4.3)"
        }
        (Some(9), _) => "the server sends it again until the client renews (RFC 3203)",
        (None, _) => "the client sends its request again after a random time (RFC 951, 7.2)",
        _ => "that depends on who sent it; it is no part of a lease's exchange",
    }
}
