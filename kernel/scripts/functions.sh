# SPDX-License-Identifier: GPL-2.0
# Functions for the Makefile's steps. toll reads lines that begin with `==>`, `prerequisite:`,
# `failed:` and ` | `.

# The environment variables that a build keeps, even if toll starts it. With others that make,
# shells, compilers, git, tar or xz read, the same inputs could give another kernel.
KEPT='PATH HOME TERM TMPDIR XDG_CACHE_HOME http_proxy https_proxy ftp_proxy no_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY NO_PROXY'
for name in $(compgen -e); do
	# Through three of these, make passes its variables to the make that it starts; without PWD
	# the shell does not know where `cd -` leads.
	[[ " $KEPT MAKEFLAGS MFLAGS MAKELEVEL PWD OLDPWD " == *" $name "* ]] || unset -v "$name" || true
done
for name in $(compgen -A function); do
	unset -f "$name"
done
export LC_ALL=C
# The image contains builder, host and time. They are set, so that the same sources make the same
# bytes without a user's name. LOCALVERSION is set, so that a release gets no `+` if the cache is
# inside somebody's repository.
export LOCALVERSION='' KBUILD_BUILD_USER=toll KBUILD_BUILD_HOST=toll KBUILD_BUILD_VERSION=1

# A shell obeys a signal only after its foreground program ends, and does not pass it on; so long
# programs run in the background.
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 1' TERM INT HUP

step() {
	echo "==> $*"
}

fail() {
	echo "failed: $*" >&2
	exit 1
}

# Something must be installed, or room made for it, first.
prerequisite() {
	echo "prerequisite: $*" >&2
	exit 1
}

# name_of FILE: the name that people know, which toll wrote, or else the file's own.
name_of() {
	if [ -e "$1.name" ]; then
		cat "$1.name"
	else
		basename "$1"
	fi
}

# logged LOG COMMAND...: runs a command with its output in the log, whose end is shown if it fails.
logged() {
	local log=$1 status=0
	shift
	echo "\$ $*" >>"$log"
	# The kernel's make must not get the variables of this project's make.
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "$@" >>"$log" 2>&1 &
	wait $! || status=$?
	[ $status != 0 ] || return 0
	echo "failed: ${why-}$* failed (exit status: $status); see $log, whose last lines are:" >&2
	grep -v '^[[:space:]]*$' "$log" | tail -n 15 | sed 's/^/  | /' >&2
	exit 1
}

is_whole() {
	[ -e "$2" ] && echo "$1  $2" | sha256sum --check --status
}

# Room for an unpacked source and a build tree, with some to spare.
check_room() {
	local needed_kib=$((3 << 20)) free_kib
	free_kib=$(df --output=avail -k "$1" | tail -n 1)
	[ "$free_kib" -ge $needed_kib ] || prerequisite "cannot build: $((free_kib >> 20)) GiB are" \
		"free in $1, but source and build tree take about $((needed_kib >> 20)) GiB; free some, or" \
		"set XDG_CACHE_HOME to a directory with more"
}

# unpack_source DEB PACKAGE DIRECTORY
unpack_source() {
	dpkg-deb --fsys-tarfile "$1" | tar -xO "./usr/src/$2.tar.xz" | xz -dc -T0 |
		tar -x -C "$3" --strip-components=1 &
	wait $! || fail "cannot unpack $1; remove it to fetch it again"
}

# settle DIRECTORY PLACE: makes a kernel's unpacked packages usable below PLACE. The headers'
# Makefile names the place where they would be installed. With an image of the kernel beside them,
# linking a module would need another program, for type information that nothing reads. Since Debian
# 13 packages have everything below /usr; since 14 the image is beside its modules.
settle() {
	local release headers
	[ -e "$1/lib" ] || ln -s usr/lib "$1/lib"
	release=$(ls "$1/lib/modules")
	echo "$release" >"$1/kernel.release"
	if [ ! -e "$1/boot" ]; then
		mkdir "$1/boot"
		ln -s "../lib/modules/$release/vmlinuz" "$1/boot/vmlinuz-$release"
		ln -s "../lib/modules/$release/config" "$1/boot/config-$release"
	fi
	headers=$1/usr/src/linux-headers-$release
	if [ -e "$headers" ]; then
		sed -i "s|include /usr/src/|include $2/usr/src/|" "$headers/Makefile"
		rm -f "$headers/vmlinux"
	fi
	PATH=$PATH:/usr/sbin:/sbin depmod -b "$1" "$release"
}

# use_suite DIRECTORY: makes apt use the lists there, instead of this system's.
use_suite() {
	export APT_CONFIG=$1/apt.conf
}

# know_suite SUITE DIRECTORY: fetches the lists of a Debian suite into a directory, from the mirror
# that this system uses, unless they are less than a day old.
know_suite() {
	local suite=$1 directory=$2 keys=/usr/share/keyrings/debian-archive-keyring.gpg mirror said
	use_suite "$directory"
	[ -z "$(find "$directory/fetched" -mmin -1440 2>/dev/null)" ] || return 0
	[ -e $keys ] || prerequisite "cannot fetch the kernel of $suite: $keys is missing; install it" \
		"as root: apt-get install debian-archive-keyring"
	# shellcheck disable=SC2016
	mirror=$(env -u APT_CONFIG apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
		'Origin: Debian' "Label: Debian" | head -n 1)
	[[ $mirror =~ ^https?://[A-Za-z0-9._~:/-]+$ ]] || prerequisite "cannot fetch the kernel of" \
		"$suite: apt has no Debian mirror; add one to its sources and run apt-get update"
	mkdir -p "$directory/lists/partial" "$directory/cache/archives/partial"
	echo "deb [signed-by=$keys] $mirror $suite main" >"$directory/sources.list"
	cat >"$APT_CONFIG" <<-END
		Dir::Etc::SourceList "$directory/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::State::Lists "$directory/lists";
		Dir::State::Status "/dev/null";
		Dir::Cache "$directory/cache";
		Acquire::Languages "none";
	END
	said=$(apt-get -qq update 2>&1) || prerequisite "cannot fetch the lists of $suite:" \
		"${said##*$'\n'}; check whether the mirror $mirror can be reached"
	touch "$directory/fetched"
}

# update_source LOG ORIGINAL TREE PATCH...: makes TREE equal to ORIGINAL with the patches. They are
# applied to a copy of links, in which each written file is a new one. Only files that differ are
# put into the tree. The others keep their times, so that make compiles only what the change
# requires. -u: patch runs other kinds by the editor ed.
update_source() {
	local log=$1 original=$2 tree=$3 new=$3.new patch file
	shift 3
	rm -rf "$new"
	cp -al "$original" "$new"
	for patch in "$@"; do
		step "applying $(name_of "$patch")"
		why="cannot apply $(name_of "$patch"): " logged "$log" patch -d "$new" -p1 -u --get=0 \
			--forward --batch --no-backup-if-mismatch -i "$patch"
	done
	if [ ! -d "$tree" ]; then
		mv "$new" "$tree"
		return
	fi
	{
		find "$new" "$tree" -type f -links 1 -printf '%P\0'
		# Files that another commit added or removed.
		find "$new" "$tree" ! -type d -printf '%P\0' | sort -z | uniq -zu
	} | sort -zu | while IFS= read -r -d '' file; do
		replace_file "$new" "$tree" "$file"
	done
	rm -rf "$new"
}

# replace_file NEW TREE FILE: replaces TREE's file by NEW's, unless they are the same.
replace_file() {
	local from=$1/$3 to=$2/$3
	if [ ! -L "$from" ] && { [ -d "$from" ] || [ ! -e "$from" ]; }; then
		rm -f "$to"
	elif [ -L "$from" ] || [ -L "$to" ] || ! cmp -s "$from" "$to"; then
		[ -L "$to" ] || [ ! -d "$to" ] || rm -rf "$to"
		mkdir -p "$(dirname "$to")"
		cp -d --preserve=mode "$from" "$to.partial"
		mv -T "$to.partial" "$to"
	fi
}

# check_out LOG REPOSITORY COMMIT DIRECTORY: makes DIRECTORY equal to the commit's tree. It uses its
# own index, so that nothing is written into the repository. Files get further links, which changes
# the times of their status; so git compares only size and modification time.
check_out() {
	export GIT_OPTIONAL_LOCKS=0 GIT_INDEX_FILE=$4.index
	step "checking out $3"
	mkdir -p "$4"
	rm -f "$4.index.lock"
	why="cannot check out $3: " logged "$1" git -c core.trustctime=false \
		-c core.checkStat=minimal -c core.hooksPath=/dev/null -c core.fsmonitor=false \
		-c core.autocrlf=false -c core.attributesFile=/dev/null -c advice.updateSparsePath=false \
		--git-dir="$2" --work-tree="$4" read-tree --reset -u "$3"
}

# lay_image DIRECTORY RELEASE IMAGE [MODULES]: lays out an image as a kernel package does.
lay_image() {
	local image config
	image=$(realpath -e "$3")
	config=${image%/*}/config-$2
	rm -rf "$1"
	mkdir -p "$1/boot" "$1/lib/modules"
	cp "$image" "$1/boot/vmlinuz-$2"
	[ -f "$config" ] || config=${4:-/nowhere}/config
	[ -f "$config" ] || config=/dev/null
	cp "$config" "$1/boot/config-$2"
	[ $# = 3 ] || ln -s "$4" "$1/lib/modules/$2"
}

# known_options SOURCE [FRAGMENT...]: filters unmet options, and keeps those that the source knows
# or that a user's fragment asks for. Another version of Linux has other options than our fragment.
known_options() {
	local source=$1 option
	shift
	while read -r line; do
		option=${line%%=*}
		option=${option#CONFIG_}
		if { [ $# -gt 0 ] && grep -q "CONFIG_$option\>" "$@"; } || grep -rqE --include='Kconfig*' \
			"^[[:space:]]*(menu)?config $option\$" "$source"; then
			echo "$line"
		fi
	done
}

# copy_boot_modules ROOT RELEASE DIRECTORY MODULE...: copies modules, uncompressed, each after what
# it needs, and lists them in DIRECTORY/order. A module that ends in a question mark may be missing.
copy_boot_modules() {
	local root=$1 release=$2 directory=$3 module lines path name modules
	shift 3
	rm -rf "$directory"
	mkdir "$directory"
	touch "$directory/order"
	# An image without modules either has everything it needs built in, or does not boot.
	[ -e "$root/lib/modules/$release" ] || return 0
	modules=$(realpath -e "$root/lib/modules/$release")
	for module in "$@"; do
		if ! lines=$(PATH=$PATH:/usr/sbin:/sbin modprobe -C /dev/null -d "$root" -S "$release" \
			--show-depends "${module%\?}" 2>/dev/null); then
			[[ $module == *\? ]] ||
				fail "cannot use Linux $release: the kernel has no $module, which a guest needs"
			continue
		fi
		while read -r what path; do
			[ "$what" = insmod ] || continue
			# A space ends each line.
			path=$(realpath -e "${path% }") || fail "cannot use Linux $release: ${path@Q} is missing"
			[[ $path == "$modules"/* ]] || fail "cannot use Linux $release: modules.dep names" \
				"${path@Q}, which is not below $modules"
			name=${path##*/}
			name=${name%%.ko*}
			name=${name//-/_}.ko
			[ ! -e "$directory/$name" ] || continue
			unpack_module "$path" "$directory/$name"
			echo "$name" >>"$directory/order"
		done <<<"$lines"
	done
}

# unpack_module FILE TO: copies a module, uncompressed. A small file can unpack to a large one.
unpack_module() {
	local bytes_max=$((256 << 20)) unpack=(cat) status=0
	case $1 in
	*.xz) unpack=(xz -dc) ;;
	*.gz) unpack=(gzip -dc) ;;
	*.zst) unpack=(zstd -dcq) ;;
	esac
	command -v "${unpack[0]}" >/dev/null || prerequisite "cannot build: ${unpack[0]} is missing, which" \
		"unpacks ${1@Q}; install it as root: apt-get install ${unpack[0]}"
	"${unpack[@]}" <"$1" 2>/dev/null | head -c $((bytes_max + 1)) >"$2" || status=$?
	[ "$(stat -c %s "$2")" -le $bytes_max ] ||
		fail "cannot use ${1@Q}: it is over $((bytes_max >> 20)) MiB when unpacked"
	if [ $status != 0 ] || [ "$(head -c 4 "$2" | od -An -tx1)" != ' 7f 45 4c 46' ]; then
		fail "cannot use ${1@Q}: it is damaged, or not a module"
	fi
}

json_list() {
	local separator='' item
	for item in "$@"; do
		item=${item//\\/\\\\}
		printf '%s"%s"' "$separator" "${item//\"/\\\"}"
		separator=', '
	done
}
