//! Sessions with scripted servers.
