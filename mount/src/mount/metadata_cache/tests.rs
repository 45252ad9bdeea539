//! Tests of the cache of names and attributes.

use std::ffi::OsStr;
use std::time::Duration;

use crate::source::{Attributes, Entry, Kind};

use super::{AHEAD_MIN, ASKED_MAX, MetadataCache};

const LONG: Duration = Duration::from_secs(3600);

fn bare_directory() -> Attributes {
    Attributes {
        kind: Kind::Directory,
        links: 1,
        ..Attributes::default()
    }
}

fn entry(name: &str) -> Entry {
    Entry {
        name: name.into(),
        kind: None,
        attributes: Some(bare_directory()),
    }
}

fn listed() -> MetadataCache {
    let cache = MetadataCache::new(LONG);
    let name = OsStr::new("a");
    for _ in 0..ASKED_MAX {
        assert_eq!(cache.walked_version(1), None);
        cache.found(1);
    }
    let before = cache.walked_version(1).unwrap();
    cache.take(1, before, Some(&[entry("a")]));
    assert!(cache.child(1, name).is_some());
    assert_eq!(cache.walked_version(1), None);
    cache
}

#[test]
fn a_missing_name_and_one_that_changes_are_asked_for() {
    let cache = listed();
    assert_eq!(cache.child(1, OsStr::new("b")), None);
    let change = cache.change(1, OsStr::new("a"));
    assert_eq!(cache.child(1, OsStr::new("a")), None);
    drop(change);
    assert_eq!(cache.child(1, OsStr::new("a")), None);
}

#[test]
fn a_listing_during_which_something_changed_is_not_taken() {
    let cache = MetadataCache::new(LONG);
    let before = cache.version(1).unwrap();
    cache.touch(&[(1, "a".into())], false);
    cache.take(1, before, Some(&[entry("a")]));
    assert_eq!(cache.child(1, OsStr::new("a")), None);
}

#[test]
fn a_directory_is_what_the_last_of_its_changes_told() {
    let cache = MetadataCache::new(LONG);
    let own = bare_directory();
    let (first, second) = (
        cache.change(1, OsStr::new("a")),
        cache.change(1, OsStr::new("b")),
    );
    second.done(Some(own));
    assert!(cache.directory(1).is_some());
    // The first change may have come after the reply to the second.
    first.done(Some(own));
    assert!(cache.directory(1).is_none());
    cache.change(1, OsStr::new("a")).done(Some(own));
    assert!(cache.directory(1).is_some());
    cache.touch_directory(1);
    assert!(cache.directory(1).is_none());
}

#[test]
fn a_directory_that_cannot_be_listed_is_not_asked_for_all_names_again() {
    let cache = MetadataCache::new(LONG);
    cache.found(1);
    cache.found(1);
    let before = cache.walked_version(1).unwrap();
    cache.take(1, before, None);
    assert_eq!(cache.walked_version(1), None);
    assert_eq!(cache.child(1, OsStr::new("a")), None);
}

#[test]
fn a_directory_is_read_once_within_the_timeout_and_again_after_a_change() {
    let cache = MetadataCache::new(LONG);
    let take = || {
        let before = cache.version(1).unwrap();
        cache.take(1, before, Some(&[entry("b"), entry("a")]));
    };
    take();
    for _ in 0..2 {
        assert_eq!(cache.entries(1).unwrap().0, [entry("b"), entry("a")]);
    }
    drop(cache.change(1, OsStr::new("c")));
    assert!(cache.entries(1).is_none());
    take();
    cache.touch(&[(1, "a".into())], false);
    assert!(cache.entries(1).is_none());
}

#[test]
fn directories_behind_one_are_prefetched_before_those_that_precede_it() {
    let cache = MetadataCache::new(LONG);
    let directory = |name| Entry {
        kind: Some(Kind::Directory),
        ..entry(name)
    };
    let all = [
        directory("c"),
        entry("file"),
        directory("a"),
        directory("b"),
    ];
    cache.take(1, cache.version(1).unwrap(), Some(&all));
    let (next, count) = cache.next_directories(1, OsStr::new("a"));
    assert_eq!((next, count), (vec!["b".into(), "c".into()], AHEAD_MIN));
    assert_eq!(cache.next_directories(1, OsStr::new("a")).1, 2 * AHEAD_MIN);
    assert_eq!(cache.next_directories(1, OsStr::new("none")).1, 0);
}

#[test]
fn a_listing_expires_and_nothing_is_cached_without_a_lifetime() {
    let cache = MetadataCache::new(Duration::from_millis(20));
    let before = cache.version(1).unwrap();
    cache.take(1, before, Some(&[entry("a")]));
    std::thread::sleep(Duration::from_millis(25));
    assert!(cache.entries(1).is_none());
    let cache = MetadataCache::new(Duration::ZERO);
    cache.found(1);
    cache.found(1);
    cache
        .change(1, OsStr::new("a"))
        .done(Some(bare_directory()));
    assert!(cache.directory(1).is_none() && cache.version(1).is_none());
    assert_eq!(cache.walked_version(1), None);
    assert_eq!(cache.child(1, OsStr::new("a")), None);
}

#[test]
fn neither_a_long_listing_is_kept_nor_any_number_of_short_ones() {
    let cache = MetadataCache::new(LONG);
    let take = |directory: u64, count: usize| {
        let entries: Vec<_> = (0..count)
            .map(|number| entry(&number.to_string()))
            .collect();
        let before = cache.version(directory).unwrap();
        cache.take(directory, before, Some(&entries));
        cache.entries(directory).is_some()
    };
    assert!(take(1, 1000));
    assert!(!take(2, 1001));
    assert!((10..400).all(|directory| take(directory, 900)));
    let kept = (10..400).filter(|directory| cache.entries(*directory).is_some());
    assert!(kept.count() < 150);
}
