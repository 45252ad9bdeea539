//! The colours of verdicts and of relations.

use toll_document::Paint;

use crate::claim::model::{Outcome, Relation};

/// The colour in which an outcome is shown.
pub fn paint(outcome: Outcome) -> Paint {
    match outcome {
        Outcome::Supported => Paint::Green,
        Outcome::Refuted => Paint::Red,
        Outcome::Undecided => Paint::Yellow,
        Outcome::NotTestable => Paint::Dim,
    }
}

/// The colour in which a relation is shown.
pub fn paint_of_relation(relation: Relation) -> Paint {
    match relation {
        Relation::Better => Paint::Green,
        Relation::Worse => Paint::Red,
        Relation::Different | Relation::Same | Relation::Undecided => Paint::Plain,
    }
}
