//! Guests and their kernels: `toll kernel`, `toll guest` and `toll count`.

pub mod count;
mod count_formats;
mod count_report;
pub mod guest;
pub mod kernel;
