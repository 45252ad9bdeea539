//! The tables of a store.

/// Version of the tables below. A store of any other version is refused.
pub const SCHEMA_VERSION: i64 = 3;

/// Marks the file as a store of this program (`PRAGMA application_id`), so that no other program's
/// database is taken for a store. The value is "toll" in ASCII.
pub(super) const APPLICATION_ID: i64 = 0x746f_6c6c;

// Samples are 64-bit little-endian floats in one blob for each trial and metric. At a million
// samples, a row for each would cost ten times the space and time, and text three times the time.
pub(super) const TABLES: &str = "
CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    uid TEXT NOT NULL UNIQUE,
    hash INTEGER,
    signature BLOB,
    record TEXT NOT NULL,
    treatments TEXT NOT NULL,
    experiment TEXT NOT NULL
) STRICT;
CREATE TABLE trials (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs(id),
    block INTEGER NOT NULL,
    treatment INTEGER NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (run_id, block, treatment)
) STRICT;
CREATE TABLE samples (
    trial_id INTEGER NOT NULL REFERENCES trials(id),
    metric TEXT NOT NULL,
    iterations BLOB NOT NULL,
    PRIMARY KEY (trial_id, metric)
) STRICT, WITHOUT ROWID;
CREATE TABLE boots (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs(id),
    record TEXT NOT NULL
) STRICT;
CREATE INDEX boots_of_run ON boots (run_id);
CREATE TABLE profiles (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs(id),
    record TEXT NOT NULL
) STRICT;
CREATE INDEX profiles_of_run ON profiles (run_id);
CREATE TABLE baselines (
    name TEXT NOT NULL,
    experiment TEXT NOT NULL,
    run_id INTEGER NOT NULL REFERENCES runs(id),
    saved_at TEXT NOT NULL,
    PRIMARY KEY (name, experiment)
) STRICT, WITHOUT ROWID;
";
