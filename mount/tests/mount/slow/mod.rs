//! Families of tests that take minutes, of which `make test` runs the few that
//! .config/nextest.toml names.

mod power_cuts;
