//! Tables about times.

pub const UTIMENSAT: &str = "
    utimens f 1.0 1.0 -> ENOENT
    create f 0644 -> ok
    utimens f 1000000000.123456789 1100000000.987654321 -> ok
    lstat f -> atime=1000000000.123456789 mtime=1100000000.987654321
    utimens f omit 5.5 -> ok
    lstat f -> atime=1000000000.123456789 mtime=5.5
    utimens f 7.7 omit -> ok
    lstat f -> atime=7.7 mtime=5.5
    utimens f omit omit -> ok
    lstat f -> atime=7.7 mtime=5.5
    utimens f 0.1 0.999999999 -> ok
    lstat f -> atime=0.1 mtime=0.999999999
    utimens f -1000.5 -2.7 -> ok
    lstat f -> atime=-1000.5 mtime=-2.7
    utimens f 4000000000.1 4200000000.2 -> ok
    lstat f -> atime=4000000000.1 mtime=4200000000.2
    utimens f 1.1000000000 1.1 -> EINVAL
    mkdir d 0755 -> ok
    utimens d 10.1 20.2 -> ok
    lstat d -> mtime=20.2
    symlink f s -> ok
    lutimens s 30.3 40.4 -> ok
    lstat s -> mtime=40.4
    lstat f -> mtime=4200000000.2
    utimens s 50.5 60.6 -> ok
    lstat f -> atime=50.5 mtime=60.6
    lstat s -> mtime=40.4
    utimens f/x 1.1 1.1 -> ENOTDIR
    symlink loop loop -> ok
    utimens loop 1.1 1.1 -> ELOOP
    65534:65534 | utimens f 1.1 1.1 -> EPERM
    65534:65534 | utimens f now now -> EACCES
    65534:65534 | utimens f omit omit -> ok
    chmod f 0666 -> ok
    65534:65534 | utimens f now now -> ok
    65534:65534 | utimens f now omit -> EPERM
    65534:65534 | utimens f 1.1 1.1 -> EPERM
    chown f 65534 65534 -> ok
    65534:65534 | utimens f 8.8 9.9 -> ok
    lstat f -> atime=8.8 mtime=9.9
    chmod f 0444 -> ok
    65534:65534 | utimens f now now -> ok
    65534:65534 | utimens f omit 3.3 -> ok
    lstat f -> mtime=3.3
";

pub const CHANGES: &str = "
    mkdir d 0755 -> ok
    create f 0644 -> ok
    changes f append f x -> mtime=new ctime=new
    changes f read f -> mtime=same ctime=same
    changes f chmod f 0600 -> mtime=same ctime=new
    changes f chown f 1 1 -> mtime=same ctime=new
    changes f truncate f 10 -> mtime=new ctime=new
    changes f truncate f 0 -> mtime=new ctime=new
    changes f link f g -> mtime=same ctime=new
    changes f unlink g -> mtime=same ctime=new
    changes f rename f h -> ENOENT
    rename h f -> ok
    changes f stat f -> mtime=same ctime=same
    changes f open f WRONLY,TRUNC -> mtime=new ctime=new
    changes d create d/x 0644 -> mtime=new ctime=new
    changes d append d/x y -> mtime=same ctime=same
    changes d rename d/x d/y -> mtime=new ctime=new
    changes d unlink d/y -> mtime=new ctime=new
    changes d mkdir d/e 0755 -> mtime=new ctime=new
    changes d rmdir d/e -> mtime=new ctime=new
    changes d symlink x d/s -> mtime=new ctime=new
    changes d mknod d/p fifo 0644 -> mtime=new ctime=new
    changes d link f d/f -> mtime=new ctime=new
    changes d list d -> mtime=same ctime=same
    changes d open d/new CREAT,WRONLY 0644 -> mtime=new ctime=new
    changes d open d/new CREAT,WRONLY 0644 -> mtime=same ctime=same
    changes f utimens f 1.1 omit -> mtime=same ctime=new
";
