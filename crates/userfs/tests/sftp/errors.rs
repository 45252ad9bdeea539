//! Error numbers.
