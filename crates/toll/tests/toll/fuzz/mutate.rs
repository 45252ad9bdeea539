//! Mutates documents: by structure, so that most of them remain documents, and by bytes, so that
//! some do not.

use serde_json::{Map, Value, json};
use toll_stats::Rng;

/// Texts that have a meaning for some parser.
pub const TEXTS: [&str; 34] = [
    "",
    " ",
    "0",
    "-1",
    "1e400",
    "nan",
    "inf",
    "8PiB",
    "9007199254740993",
    "4KiB",
    "0.0001ms",
    "-5%",
    "1001%",
    "<script>alert(1)</script>",
    "\u{1b}]0;x\u{7}",
    "\u{202e}abc",
    "'; DROP TABLE runs; --",
    "$(reboot)",
    "`reboot`",
    "{a}",
    "{workdir}",
    "{",
    "../../x",
    "/dev/zero",
    "\0",
    "a\nb",
    "\u{feff}",
    "==",
    "a == b or not (c in [d, e])",
    "((((((((((",
    "(a+)+$",
    "[",
    "last",
    "🐈‍⬛",
];

/// Returns a number at an edge of some type or range.
pub fn number(rng: &mut Rng) -> Value {
    match rng.below(22) {
        0 => json!(0),
        1 => json!(-1),
        2 => json!(1),
        3 => json!(u64::MAX),
        4 => json!(i64::MIN),
        5 => json!(i64::MAX),
        6 => json!(u32::MAX),
        7 => json!(1_u64 << 53),
        8 => json!(f64::MAX),
        9 => json!(f64::MIN),
        10 => json!(f64::MIN_POSITIVE),
        11 => json!(5e-324),
        12 => json!(-0.0),
        13 => json!(1e-12),
        14 => json!(1e12),
        15 => json!(0.1 + 0.2),
        16 => json!(1e308),
        17 => json!(1_000_000),
        18 => json!(5_000),
        19 => json!(1 + rng.below(20)),
        20 => json!(rng.below(1 << 30) as f64 / 1e3),
        _ => json!(rng.next_u64()),
    }
}

fn text(rng: &mut Rng) -> String {
    match rng.below(20) {
        0 => "x".repeat(1 << rng.below(17)),
        1 => "{a}".repeat(1 << rng.below(10)),
        2 => "(".repeat(1 << rng.below(14)),
        3 => "not ".repeat(1 << rng.below(12)) + "a == b",
        _ => TEXTS[rng.below(TEXTS.len())].to_owned(),
    }
}

fn value(rng: &mut Rng) -> Value {
    match rng.below(8) {
        0 => Value::Null,
        1 => json!(rng.below(2) == 0),
        2 | 3 => json!(text(rng)),
        4 => json!([]),
        5 => json!({}),
        _ => number(rng),
    }
}

/// Counts the values in a document.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Returns the value at a position in depth-first order.
fn at<'a>(value: &'a mut Value, place: &mut usize) -> Option<&'a mut Value> {
    if *place == 0 {
        return Some(value);
    }
    *place -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| at(item, place)),
        Value::Object(members) => members.values_mut().find_map(|member| at(member, place)),
        _ => None,
    }
}

fn any<'a>(document: &'a mut Value, rng: &mut Rng) -> &'a mut Value {
    let mut place = rng.below(count(document));
    at(document, &mut place).expect("the place is within the document")
}

/// Changes a document in one to five places.
pub fn structure(document: &mut Value, rng: &mut Rng) {
    for _ in 0..1 + rng.below(5) {
        match rng.below(10) {
            0..=3 => {
                let new = value(rng);
                let chosen = any(document, rng);
                // Usually keeps the kind of the value; other kinds are soon refused.
                *chosen = match (&*chosen, rng.below(4)) {
                    (Value::Number(_), 1..) => number(rng),
                    (Value::String(_), 1..) => json!(text(rng)),
                    (Value::Array(_) | Value::Object(_), 1..) => continue,
                    _ => new,
                };
            }
            4 => {
                let from = any(document, rng).clone();
                *any(document, rng) = from;
            }
            5 => remove(any(document, rng), rng),
            6 => grow(any(document, rng), rng),
            7 => rename(any(document, rng), rng),
            8 => {
                if let Value::Array(items) = any(document, rng) {
                    rng.shuffle(items);
                }
            }
            _ => {
                let depth = 1 << rng.below(9);
                let chosen = any(document, rng);
                for _ in 0..depth {
                    *chosen = json!([chosen.take()]);
                }
            }
        }
    }
}

fn remove(chosen: &mut Value, rng: &mut Rng) {
    match chosen {
        Value::Array(items) if !items.is_empty() => _ = items.remove(rng.below(items.len())),
        Value::Object(members) if !members.is_empty() => {
            let key = key(members, rng);
            members.remove(&key);
        }
        _ => {}
    }
}

fn grow(chosen: &mut Value, rng: &mut Rng) {
    match chosen {
        Value::Array(items) if !items.is_empty() => {
            let item = items[rng.below(items.len())].clone();
            let copies = 1 << rng.below(if count(&item) < 4 { 12 } else { 4 });
            items.extend(std::iter::repeat_n(item, copies));
        }
        Value::Object(members) if !members.is_empty() => {
            let key = key(members, rng);
            let member = members[&key].clone();
            members.insert(text(rng), member);
        }
        _ => {}
    }
}

fn rename(chosen: &mut Value, rng: &mut Rng) {
    if let Value::Object(members) = chosen
        && !members.is_empty()
    {
        let key = key(members, rng);
        let member = members
            .remove(&key)
            .expect("the key is one of the object's");
        members.insert(text(rng), member);
    }
}

fn key(members: &Map<String, Value>, rng: &mut Rng) -> String {
    let place = rng.below(members.len());
    let key = members.keys().nth(place);
    key.expect("the place is within the object").clone()
}

/// Changes a text in a few places, regardless of its meaning.
pub fn bytes(text: &str, other: &str, rng: &mut Rng) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + rng.below(4) {
        let place = rng.below(bytes.len().max(1));
        let end = (place + 1 + rng.below(64)).min(bytes.len());
        match rng.below(8) {
            0 if place < bytes.len() => bytes[place] ^= 1 << rng.below(8),
            1 => _ = bytes.drain(place.min(end)..end),
            2 => bytes.truncate(place),
            3 => {
                let part = bytes[place.min(end)..end].repeat(1 << rng.below(8));
                bytes.splice(place..place, part);
            }
            4 => {
                let from = rng.below(other.len().max(1));
                let to = (from + rng.below(400)).min(other.len());
                bytes.splice(
                    place..place,
                    other.as_bytes()[from.min(to)..to].iter().copied(),
                );
            }
            5 => {
                let nested = ["[", "{\"a\":", "[[", "{a=", "("][rng.below(5)];
                let nested = nested.repeat(1 << rng.below(16));
                bytes.splice(place..place, nested.bytes());
            }
            6 => {
                let number = [
                    "1e999",
                    "-1e-999",
                    "99999999999999999999",
                    "nan",
                    "0x",
                    "1_0",
                    "inf",
                ];
                let number = number[rng.below(number.len())];
                let is_digit = |byte: &u8| byte.is_ascii_digit();
                let begin = bytes[place.min(end)..].iter().position(is_digit);
                if let Some(begin) = begin.map(|begin| place + begin) {
                    let digits = bytes[begin..].iter().take_while(|byte| is_digit(byte));
                    let digits = digits.count();
                    bytes.splice(begin..begin + digits, number.bytes());
                }
            }
            _ => {
                let word = TEXTS[rng.below(TEXTS.len())];
                bytes.splice(place..place, word.bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
