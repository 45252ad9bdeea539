//! Tests of inode numbers and names.

use std::ffi::OsStr;
use std::path::Path;

use crate::source::{Attributes, Error, Identity, Kind};
use crate::tree::{ROOT, Tree};

fn attributes(kind: Kind, inode: u64, links: u32) -> Attributes {
    Attributes {
        kind,
        links,
        identity: Some(Identity {
            device: 1,
            inode,
            birth: (0, 0),
        }),
        ..Attributes::default()
    }
}

fn name(name: &str) -> &OsStr {
    OsStr::new(name)
}

fn directory(tree: &Tree, parent: u64, called: &str, inode: u64) -> u64 {
    tree.looked_up(parent, name(called), &attributes(Kind::Directory, inode, 2))
}

fn file(tree: &Tree, parent: u64, called: &str, inode: u64) -> u64 {
    tree.looked_up(parent, name(called), &attributes(Kind::File, inode, 1))
}

#[test]
fn a_path_follows_its_directories_when_they_are_renamed() {
    let tree = Tree::default();
    let a = directory(&tree, ROOT, "a", 10);
    let b = directory(&tree, ROOT, "b", 11);
    let f = file(&tree, a, "f", 12);
    tree.renamed((ROOT, name("a")), (b, name("c")));
    assert_eq!(tree.path(f).unwrap(), Path::new("b/c/f"));
    assert_eq!(tree.parent(a), b);
}

#[test]
fn a_name_that_another_file_has_taken_gets_another_number() {
    let tree = Tree::default();
    let before = file(&tree, ROOT, "f", 10);
    let after = file(&tree, ROOT, "f", 11);
    assert_ne!(before, after);
    assert!(tree.path(before).is_err());
    assert_eq!(tree.path(after).unwrap(), Path::new("f"));
}

#[test]
fn names_with_one_identity_are_one_file_only_if_it_has_several_links() {
    let tree = Tree::default();
    let one = tree.looked_up(ROOT, name("f"), &attributes(Kind::File, 10, 2));
    let other = tree.looked_up(ROOT, name("g"), &attributes(Kind::File, 10, 2));
    assert_eq!(one, other);
    tree.unlinked(ROOT, name("f"));
    assert_eq!(tree.path(one).unwrap(), Path::new("g"));
    let reused = tree.looked_up(ROOT, name("h"), &attributes(Kind::File, 10, 1));
    assert_ne!(reused, one);
}

#[test]
fn a_node_goes_when_it_is_forgotten_and_not_pinned() {
    let tree = Tree::default();
    let a = directory(&tree, ROOT, "a", 10);
    let f = file(&tree, a, "f", 11);
    tree.pin(f);
    tree.forget(f, 1);
    tree.forget(a, 1);
    assert_eq!(tree.path(f).unwrap(), Path::new("a/f"));
    tree.unpin(f);
    let is_gone = |ino| tree.path(ino) == Err(Error::Errno(libc::ESTALE));
    assert!(is_gone(a) && is_gone(f));
    assert_eq!(tree.child(ROOT, name("a")), None);
}

#[test]
fn exchanged_names_keep_their_files_apart() {
    let tree = Tree::default();
    let a = directory(&tree, ROOT, "a", 10);
    let f = file(&tree, a, "f", 11);
    let g = file(&tree, ROOT, "g", 12);
    tree.exchanged((ROOT, name("g")), (ROOT, name("a")));
    assert_eq!(tree.path(f).unwrap(), Path::new("g/f"));
    assert_eq!(tree.path(g).unwrap(), Path::new("a"));
}

#[test]
fn a_rename_between_two_names_of_one_file_leaves_both() {
    let tree = Tree::default();
    let one = tree.looked_up(ROOT, name("f"), &attributes(Kind::File, 10, 2));
    tree.looked_up(ROOT, name("g"), &attributes(Kind::File, 10, 2));
    tree.renamed((ROOT, name("f")), (ROOT, name("g")));
    assert_eq!(tree.child(ROOT, name("f")), Some(one));
    assert_eq!(tree.child(ROOT, name("g")), Some(one));
}

#[test]
fn a_file_that_replaces_another_keeps_its_number_and_the_other_has_no_path() {
    let tree = Tree::default();
    let f = file(&tree, ROOT, "f", 10);
    let g = file(&tree, ROOT, "g", 11);
    tree.renamed((ROOT, name("f")), (ROOT, name("g")));
    assert_eq!(tree.path(f).unwrap(), Path::new("g"));
    assert_eq!(tree.path(g), Err(Error::Errno(libc::ENOENT)));
}
