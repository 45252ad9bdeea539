//! Where trials run: machine, file systems, work directories.

pub mod machine;
