//! Running experiments for `toll run` and other verbs that measure: options ([`RunArguments`]),
//! preparing and launching a run ([`launch()`]), and showing its results ([`run_all`]).

pub mod arguments;
pub mod baseline;
mod busy_machine;
mod conclude;
pub mod consent;
pub mod differences;
mod dry;
mod explain_options;
mod explaining;
pub mod exports;
pub mod failure;
pub mod gate;
pub mod kernel_builds;
mod launch;
mod limits;
mod measure;
pub mod measuring_lock;
pub mod over_runs;
pub mod pages;
pub mod price_lists;
pub mod progress;
mod result_options;
mod run_options;
mod select;
pub mod spelling;
mod store_option;
pub mod stores;

pub use arguments::{GuestOptions, NewRun, RunArguments, WorkDirectories, spellings_of};
pub use explain_options::ExplainOptions;
pub use explaining::most_different;
pub use launch::{
    Launch, Launched, launch, listen, nearest, profile, random_seed, resume, same_device,
};
pub use limits::Limits;
pub use measure::{check, command_line, run, run_all, trees_of};
pub use progress::Purpose;
pub use result_options::ResultOptions;
pub use run_options::{Profile, RunOptions};
pub use select::{experiments as select, named};
pub use store_option::WithStore;
