//! Mutated lines between `toll`, its probe, guests and the two ends of a transfer.

use serde_json::{Value, json};
use toll_host::store::TrialRecord;
use toll_stats::Rng;
use toll_wire::guest::{decode_guest_answer, decode_guest_request};
use toll_wire::{
    Outcome, decode_request, decode_response, decode_transfer_message, encode,
    encode_transfer_message,
};

use crate::fuzz::drive::{self, Case};
use crate::fuzz::mutate;

/// Returns one line of each kind, as programs of this build write them.
fn lines() -> Vec<Value> {
    let lines = include_str!("lines.jsonl").lines();
    let values = lines.map(|line| serde_json::from_str(line).expect("our own line is JSON"));
    values.collect()
}

fn make(rng: &mut Rng) -> String {
    let mut all = lines();
    let place = rng.below(all.len());
    if rng.below(4) == 0 {
        let other = all[rng.below(all.len())].to_string();
        return mutate::bytes(&all[place].to_string(), &other, rng);
    }
    let line = &mut all[place];
    mutate::structure(line, rng);
    // Without the right version most lines would be refused before their content is read.
    if rng.below(10) > 0 && line.is_object() {
        line["version"] = json!(toll_wire::WIRE_VERSION);
    }
    line.to_string()
}

fn check(line: &str, _case: &mut Case) {
    if let Ok(request) = decode_request(line) {
        let written = encode(&request);
        assert!(!written.contains('\n'));
        assert_eq!(
            encode(&decode_request(&written).expect("an encoded line can be decoded")),
            written
        );
    }
    if let Ok(response) = decode_response(line) {
        let written = encode(&response);
        assert_eq!(
            encode(&decode_response(&written).expect("an encoded line can be decoded")),
            written
        );
        recorded(response.outcome);
    }
    if let Ok(message) = decode_transfer_message(line) {
        let written = encode_transfer_message(&message);
        let read = decode_transfer_message(&written).expect("an encoded line can be decoded");
        assert_eq!(encode_transfer_message(&read), written);
    }
    if let Ok(request) = decode_guest_request(line) {
        let written = encode(&request);
        assert_eq!(
            encode(&decode_guest_request(&written).expect("an encoded line can be decoded")),
            written
        );
    }
    if let Ok(answer) = decode_guest_answer(line) {
        let written = encode(&answer);
        assert_eq!(
            encode(&decode_guest_answer(&written).expect("an encoded line can be decoded")),
            written
        );
    }
}

/// Checks that the samples that a trial's record takes from an answer are finite and of equal
/// length.
fn recorded(outcome: Outcome) {
    let mut trial = TrialRecord::default();
    trial.take_outcome(outcome);
    let values: Vec<&Vec<f64>> = trial.samples.values().collect();
    assert!(values.iter().all(|list| list.len() == values[0].len()));
    assert!(
        values
            .iter()
            .all(|list| list.iter().all(|value| value.is_finite()))
    );
}

#[test]
fn every_line_of_the_corpus_is_understood_by_somebody() {
    for line in lines() {
        let line = line.to_string();
        let understood = decode_request(&line).is_ok()
            || decode_response(&line).is_ok()
            || decode_transfer_message(&line).is_ok()
            || decode_guest_request(&line).is_ok()
            || decode_guest_answer(&line).is_ok();
        assert!(understood, "{line}");
    }
}

#[test]
fn lines_are_refused_or_come_back_as_they_were() {
    drive::fuzz("wire", 20_000, make, check);
}
