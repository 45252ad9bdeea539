//! Ratios of A/A twins to their originals.

use toll_document::{Column, Document, Inline, Row, table};

use crate::claim::metric_words;
use crate::claim::model::{Analysis, TwinSummary};
use crate::format;

/// The ratios as a table, for the terminal and for documents.
pub fn twins(analysis: &Analysis) -> Document {
    let columns = [
        Column::words("A/A twin"),
        Column::words("by"),
        Column::numbers("twin over original"),
    ];
    let row = |twin: &TwinSummary| {
        Row::new([
            Inline::code(&twin.label),
            metric_words(&twin.metric).into(),
            format::ratio_interval(&twin.ratio).into(),
        ])
    };
    table(columns, analysis.twins.iter().map(row))
}
