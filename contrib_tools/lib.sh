# shellcheck shell=bash
# lib.sh: what check, quickstart and bench/overhead share.  Sourced, never run.
#
#	packages	a table of what is needed for which purpose; need_packages installs what is missing
#	commands	run_logged and explain_failure: whole output in a log; a failure names command, reason, log
#	sources		copy_tree: a private copy, so that no build writes into the user's checkout
#	servers		private_server: a relocated copy of the distribution's server; install and tests
#			write there and never into the system's directories
#
# Nothing here touches a cluster that it did not create.

ka_minimum_major=15

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
die() { warn "${0##*/}: $*"; exit 1; }

# clock SECONDS: 75 -> 1:15
clock() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# ---------------------------------------------------------------- packages

# purpose, then the package; a|b: either will do; a?: where there is one of that name.  @PG@ is the server's major version.
ka_packages='
build	gcc
build	libc6-dev
build	make
build	pkg-config|pkgconf
build	postgresql-server-dev-@PG@
build	libproc2-dev
build	libjansson-dev
build	libcap-dev
build	libseccomp-dev
server	postgresql-@PG@
server	postgresql-client-@PG@
test	clang
test	libclang-rt-dev
test	libipc-run-perl
test	perl
test	locales
test	procps
sanitize	valgrind
probe	libbpf-dev
probe	libcap-dev
probe	clang
probe	bpftool?
probe	valgrind
probe	linux-perf?
probe	xfsprogs
root	xfsprogs
root	util-linux
root	util-linux-extra?
root	systemd
root	man-db
monitoring	prometheus
monitoring	promtool?
monitoring	prometheus-postgres-exporter
monitoring	python3
browser	chromium|chromium-browser
browser	chromium-driver|chromium-chromedriver
browser	python3
matrix	debootstrap
kernels	qemu-system-x86
kernels	busybox-static
kernels	cpio
kernels	kmod
kernels	e2fsprogs
kernels	xfsprogs
kernels	xz-utils
kernels	zstd
kernels	perl
bench	python3
bench	postgresql-@PG@-pg-wait-sampling
bench	postgresql-@PG@-pg-stat-kcache
'

# packages_for PURPOSE...: the rows of the table, the version filled in
packages_for() {
	local purpose package wanted=" $* "
	while read -r purpose package; do
		[[ -z $purpose || $wanted != *" $purpose "* ]] || say "${package//@PG@/$PG_MAJOR}"
	done <<<"$ka_packages"
}

is_installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }
has_candidate() { [[ -n $(apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \([^(].*\)/\1/p') ]]; }

# missing_packages PURPOSE...: one name a line; of alternatives the first that apt knows
missing_packages() {
	local row package choices choice
	while read -r row; do
		if [[ $row == *\? ]]; then
			row=${row%\?}
			has_candidate "$row" || continue
		fi
		IFS='|' read -ra choices <<<"$row"
		choice=
		for package in "${choices[@]}"; do
			is_installed "$package" && continue 2
			if [[ -z $choice ]] && has_candidate "$package"; then choice=$package; fi
		done
		say "${choice:-${choices[0]}}"
	done < <(packages_for "$@")
}

# apt waits for other package managers, asks nothing, keeps configuration files.
apt_get() {
	DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 \
		-o Dpkg::Options::=--force-confold "$@" </dev/null
}

# Debian's server package creates and starts a cluster "main", and starts the
# clusters that are down.  Neither is wanted: for the time of the installation
# the first is switched off in createcluster.conf, the second by policy-rc.d.
ka_no_cluster='create_main_cluster = false # only while pg_kernel_advisor installs packages'
ka_createcluster=/etc/postgresql-common/createcluster.conf
ka_policy=/usr/sbin/policy-rc.d

hold_services() {
	if [[ ! -e $ka_policy ]]; then
		printf '#!/bin/sh\n# only while pg_kernel_advisor installs packages\nexit 101\n' >$ka_policy
		chmod 755 $ka_policy
	fi
	[[ ! -f $ka_createcluster ]] || grep -qxF "$ka_no_cluster" $ka_createcluster || say "$ka_no_cluster" >>$ka_createcluster
}

release_services() {
	if grep -qs 'only while pg_kernel_advisor installs packages' $ka_policy; then rm -f $ka_policy; fi
	if [[ -f $ka_createcluster ]] && grep -qxF "$ka_no_cluster" $ka_createcluster; then
		# written through, so that owner, mode and a symbolic link stay as they are
		local text
		text=$(grep -vxF "$ka_no_cluster" $ka_createcluster || true)
		say "$text" >$ka_createcluster
	fi
}

# install_packages NAME...: refreshes apt's lists only when they lack a package or prove to be old
install_packages() {
	local package status=0
	for package in "$@"; do
		has_candidate "$package" || { apt_get update; break; }
	done
	for package in "$@"; do
		has_candidate "$package" || { warn "no package $package: $(distribution) does not carry it"; return 1; }
	done
	trap release_services EXIT # this function runs in a subshell of need_packages
	hold_services
	if [[ ! -f $ka_createcluster && " $* " == *" postgresql-$PG_MAJOR "* ]]; then
		apt_get install --no-install-recommends postgresql-common
		hold_services
	fi
	apt_get install --no-install-recommends "$@" || {
		apt_get update
		apt_get install --no-install-recommends "$@"
	} || status=$?
	for package in "$@"; do
		# the tests want the program only: nothing shall start at the next boot that was not there before
		[[ $package != prometheus* ]] || systemctl disable "$package" || true
	done
	return $status
}

# need_packages LOG PURPOSE...: installs what is missing, or says what to install
need_packages() {
	local log=$1 status=0
	shift
	local -a missing
	mapfile -t missing < <(missing_packages "$@")
	((${#missing[@]})) || return 0
	if ((EUID != 0)); then
		die "packages are missing: run as root, or install them first: apt-get install ${missing[*]}"
	fi
	say "installing ${#missing[@]} packages: ${missing[*]}"
	(
		exec 8>/run/lock/pg_kernel_advisor-packages.lock
		flock 8
		install_packages "${missing[@]}" 8>&-
	) >"$log" 2>&1 || status=$?
	if ((status)); then
		explain_failure "installation of packages" "$status" "$log"
		return "$status"
	fi
}

# The mirror that apt uses here, or the one that KA_MATRIX_MIRROR names.
debian_mirror() {
	# shellcheck disable=SC2016
	say "${KA_MATRIX_MIRROR:-$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
		sed -n 's/^Debian //p' | head -1)}"
}

distribution() { (. /etc/os-release && say "$PRETTY_NAME"); }

# Sets PG_MAJOR: as given, else the newest server installed here, else the distribution's.
choose_server() {
	local directory newest=0 tried
	if [[ -z ${PG_MAJOR:-} ]]; then
		for directory in /usr/lib/postgresql/*/bin/postgres; do
			if [[ $directory =~ /([0-9]+)/bin ]] && ((BASH_REMATCH[1] > newest)); then newest=${BASH_REMATCH[1]}; fi
		done
		for tried in lists update; do
			((newest < ka_minimum_major)) || break
			if [[ $tried == update && $EUID == 0 ]]; then apt_get update; fi
			newest=$(apt-cache show postgresql 2>/dev/null | sed -n 's/^Version: \([0-9]*\).*/\1/p' | sort -n | tail -1)
			newest=${newest:-0}
		done
		PG_MAJOR=$newest
	fi
	((PG_MAJOR >= ka_minimum_major)) ||
		die "PostgreSQL $ka_minimum_major or newer is needed, and $(distribution) offers ${PG_MAJOR/#0/none}"
	export PG_MAJOR
}

# ---------------------------------------------------------------- commands

# For trap 'trace_failure $? "$BASH_COMMAND" "$@"' ERR: the innermost command that failed, its arguments filled in.
trace_failure() {
	local status=$1 command=$2
	shift 2
	printf 'command failed with status %d: %s\n' "$status" "${command//\"\$@\"/$(printf '%q ' "$@")}" >&2
}

# run_logged LOG COMMAND...: the command and all that it prints go to the end of LOG.  A function stops at its
# first failure: it runs as a job, since bash does not stop in what is part of a condition.
run_logged() {
	local log=$1 status=0
	shift
	printf '$ %s\n' "$(printf '%q ' "$@")" >>"$log"
	(
		set -eE
		trap 'trace_failure $? "$BASH_COMMAND" "$@"' ERR
		"$@"
	) >>"$log" 2>&1 </dev/null &
	wait $! || status=$?
	return $status
}

# explain_failure WHAT STATUS LOG: which command, why, and where all of it can be read
explain_failure() {
	local what=$1 status=$2 log=$3 command
	command=$(sed -n 's/^command failed with status [0-9]*: //p' "$log" | head -1)
	say "FAILED: $what (status $status)"
	[[ -z $command ]] || say "  command  $command"
	grep -aE '^not ok|^FAIL|\.\.\. FAILED|(error|fatal|panic): |^E: |Assertion|ERROR: .*Sanitizer|runtime error' "$log" |
		head -8 | cut -c 1-300 | sed 's/^/  why      /' || true
	say "  the last lines of $log:"
	tail -n 12 "$log" | grep -v '^command failed with status' | cut -c 1-300 | sed 's/^/    /' || true
}

# ---------------------------------------------------------------- sources

# copy_tree SOURCE TARGET: the sources as they are, committed or not, without products of a build
copy_tree() {
	local source target=$2
	source=$(cd "$1" && pwd)
	[[ $target/ != "$source"/* ]] || { warn "$target is inside of the sources"; return 1; }
	mkdir -p "$target"
	if git -C "$source" -c safe.directory='*' rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git -C "$source" -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
			(cd "$source" && while IFS= read -r -d '' file; do
				[[ ! -e $file && ! -L $file ]] || printf '%s\0' "$file"
			done) |
			tar -C "$source" --null --no-recursion -T - -cf - | tar -C "$target" --no-same-owner -xf -
	else
		tar -C "$source" --exclude='*.o' --exclude='*.so' --exclude='*.bc' --exclude=./tmp_check \
			--exclude=./results --exclude=./test/bin --exclude=./contrib_tools/kernel_advisord/build \
			--exclude=./contrib_tools/kernel_advisor_probe/build -cf - . | tar -C "$target" --no-same-owner -xf -
	fi
}

# ---------------------------------------------------------------- servers

# private_server DIR: copies the distribution's server of PG_MAJOR below DIR.  PostgreSQL finds its files
# relative to its binary, so the copy is a whole installation of its own.  Sets PG_CONFIG and PGBIN.
private_server() {
	local dir=$1 library=/usr/lib/postgresql/$PG_MAJOR share=/usr/share/postgresql/$PG_MAJOR shared
	PGBIN=$dir$library/bin PG_CONFIG=$dir$library/bin/pg_config
	export PGBIN PG_CONFIG
	[[ ! -x $PGBIN/postgres ]] || return 0
	mkdir -p "$dir/usr/lib/postgresql" "$dir/usr/share/postgresql"
	cp -a $library "$dir/usr/lib/postgresql/"
	cp -a $share "$dir/usr/share/postgresql/"
	for shared in include share/locale "lib/$(gcc -print-multiarch)"; do
		ln -s "/usr/$shared" "$dir/usr/$shared"
	done
	find "$dir" -name 'pg_kernel_advisor*' -delete # a system-wide installation is not what is to be looked at
}

# as_user COMMAND...: as the unprivileged user; the server refuses to run as root
as_user() {
	if ((EUID == 0)); then
		runuser -u postgres -- "$@"
	else
		"$@"
	fi
}

# new_cluster DATA SOCKETDIR PORT [SETTING...]: a cluster that listens on a socket of its own only
new_cluster() {
	local data=$1 sockets=$2 port=$3
	shift 3
	as_user "$PGBIN/initdb" -D "$data" -U postgres -A trust --no-sync --locale=C.UTF-8 --encoding=UTF8
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$sockets'" "port = $port" "$@" |
		as_user tee -a "$data/postgresql.conf" >/dev/null
}
