//! Tables about special files, strange names and lengths.

pub const NODES: &str = "
    mknod p fifo 0640 -> ok
    lstat p -> type=fifo mode=0640 uid=0
    mknod p fifo 0640 -> EEXIST
    mknod f file 0644 -> ok
    lstat f -> type=file mode=0644 size=0
    mknod f file 0644 -> EEXIST
    append f text -> ok
    read f -> content=text
    mknod k socket 0600 -> ok
    lstat k -> type=socket mode=0600
    mknod c char 0666 -> ok
    lstat c -> type=char rdev=259
    mknod b block 0660 -> ok
    lstat b -> type=block rdev=1050412
    mknod none/p fifo 0644 -> ENOENT
    mknod f/p fifo 0644 -> ENOTDIR
    mkdir d 0755 -> ok
    mknod d fifo 0644 -> EEXIST
    symlink x s -> ok
    mknod s fifo 0644 -> EEXIST
    chmod p 0111 -> ok
    lstat p -> mode=0111
    chown p 3 4 -> ok
    lstat p -> uid=3 gid=4
    utimens p 1.5 2.6 -> ok
    lstat p -> atime=1.5 mtime=2.6
    65534:65534 | mknod q fifo 0644 -> EACCES
    chmod . 0777 -> ok
    65534:65533 | mknod q fifo 0644 -> ok
    lstat q -> uid=65534 gid=65533
    65534:65534 | mknod c2 char 0644 -> EPERM
    65534:65534 | mknod b2 block 0644 -> EPERM
    unlink q -> ok
    rename p r -> ok
    lstat r -> type=fifo mode=0111
";

pub const STRANGE: &str = "
    create {255} 0644 -> ok
    lstat {255} -> type=file
    create {256} 0644 -> ENAMETOOLONG
    lstat {256} -> ENAMETOOLONG
    mkdir {256} 0755 -> ENAMETOOLONG
    unlink {256} -> ENAMETOOLONG
    rmdir {256} -> ENAMETOOLONG
    symlink x {256} -> ENAMETOOLONG
    link {255} {256} -> ENAMETOOLONG
    rename {255} {256} -> ENAMETOOLONG
    mknod {256} fifo 0644 -> ENAMETOOLONG
    truncate {256} 0 -> ENAMETOOLONG
    chmod {256} 0644 -> ENAMETOOLONG
    open {4096} RDONLY -> ENAMETOOLONG
    append {255} long -> ok
    read {255} -> content=long
    append {255} er -> ok
    read {255} -> content=longer
    rename {255} {254} -> ok
    read {254} -> content=longer
    mkdir {250} 0755 -> ok
    create {250}/{255} 0644 -> ok
    append {250}/{255} x -> ok
    list {250} -> entries=1
    create {xff}{xfe} 0644 -> ok
    append {xff}{xfe} bytes -> ok
    read {xff}{xfe} -> content=bytes
    lstat {xff}{xfe} -> size=5
    mkdir {xc3} 0755 -> ok
    create {xc3}/{x01}{x7f} 0644 -> ok
    list {xc3} -> entries=1
    rename {xff}{xfe} {xc3}/{x80} -> ok
    read {xc3}/{x80} -> content=bytes
    create {x20} 0644 -> ok
    create {x0a} 0644 -> ok
    create \\ 0644 -> ok
    create ... 0644 -> ok
    lstat ... -> type=file
    create -f 0644 -> ok
    list . -> entries=8
    symlink {x41} s -> ok
    lstat ./s -> type=symlink
    lstat .//s -> type=symlink
    lstat {xc3}/../s -> type=symlink
";

pub const TRUNCATE: &str = "
    truncate f 10 -> ENOENT
    create f 0644 -> ok
    truncate f 1234567 -> ok
    lstat f -> size=1234567
    truncate f 567 -> ok
    lstat f -> size=567
    truncate f 0 -> ok
    lstat f -> size=0
    append f abcdef -> ok
    truncate f 3 -> ok
    read f -> content=abc
    append f xyz -> ok
    read f -> content=abcxyz
    truncate f -1 -> EINVAL
    lstat f -> size=6
    truncate f 5000000000 -> ok
    lstat f -> size=5000000000
    truncate f 6 -> ok
    read f -> content=abcxyz
    mkdir d 0755 -> ok
    truncate d 0 -> EISDIR
    truncate d/f 0 -> ENOENT
    truncate f/x 0 -> ENOTDIR
    symlink f s -> ok
    truncate s 2 -> ok
    read f -> content=ab
    symlink loop loop -> ok
    truncate loop 0 -> ELOOP
    65534:65534 | truncate f 0 -> EACCES
    chmod f 0666 -> ok
    65534:65534 | truncate f 1 -> ok
    read f -> content=a
    chmod f 0444 -> ok
    65534:65534 | truncate f 0 -> EACCES
    truncate f 0 -> ok
    lstat f -> size=0
    mknod p fifo 0644 -> ok
    truncate p 0 -> EINVAL
";
