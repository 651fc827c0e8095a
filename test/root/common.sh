# shellcheck shell=bash
# common.sh: what the tests that need root share: a private server of the unprivileged user postgres, and a
# clean-up that runs however the test ends.  PG_CONFIG names the server that has the extension.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
# shellcheck source=contrib_tools/lib.sh
. contrib_tools/lib.sh
# shellcheck source=test/tap.sh
. test/tap.sh

((EUID == 0)) || { say "1..0 # SKIP needs root"; exit 0; }
PG_CONFIG=${PG_CONFIG:-pg_config}
PGBIN=$("$PG_CONFIG" --bindir)
cli=${KA_CLI:-$PWD/contrib_tools/kernel_advisor/kernel_advisor}
unset PGSERVICE PGOPTIONS

scratch=$(mktemp -d /var/tmp/pg_kernel_advisor-root.XXXXXX)
chmod 755 "$scratch"
chown postgres: "$scratch"
install -d -o postgres -m 700 "$scratch/socket"
export PGHOST=$scratch/socket PGPORT=54322 PGUSER=postgres PGDATABASE=postgres
data=$scratch/data

undo=() # commands, the last one first
at_exit() { undo=("$1" "${undo[@]}"); }
clean_up() {
	local status=$? command
	for command in "${undo[@]}"; do eval "$command" >/dev/null 2>&1 || note "clean-up failed: $command"; done
	rm -rf --one-file-system "$scratch"
	exit $status
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

query() { "$PGBIN/psql" -XAtq -v ON_ERROR_STOP=1 "$@"; }
fact() { query -c "SELECT kernel_advisor.facts() #>> '{${1//./,}}'"; }
server() { as_user "$PGBIN/pg_ctl" -D "$data" -l "$scratch/server.log" -w "$@"; }
setting() { as_user "$PGBIN/postgres" -D "$data" -C "$1" 2>/dev/null; }

# make_server [initdb's options]
make_server() {
	as_user "$PGBIN/initdb" -D "$data" -U postgres -A trust --no-sync --locale=C.UTF-8 "$@" >"$scratch/initdb.log" 2>&1 ||
		bail "initdb: $(<"$scratch/initdb.log")"
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$PGHOST'" "port = $PGPORT" \
		"shared_preload_libraries = 'pg_kernel_advisor'" "shared_buffers = ${shared_buffers:-128MB}" >>"$data/postgresql.conf"
	at_exit '[[ ! -f $data/postmaster.pid ]] || server -m immediate stop'
}

meminfo() { awk -v key="$1:" '$1 == key { print $2 }' /proc/meminfo; }

# The postmaster's view, from the kernel: is its shared memory made of huge pages?
kernel_says() {
	awk -v page="$(meminfo Hugepagesize)" '
		/^[0-9a-f]+-[0-9a-f]+ / { shared = $2 ~ /s/ }
		shared && $1 == "KernelPageSize:" && $2 == page { huge = 1 }
		END { print huge ? "on" : "off" }' "/proc/$(head -1 "$data/postmaster.pid")/smaps"
}

# keep_kernel_file FILE: what it says now is put back at the end; of a list of words the one in brackets
keep_kernel_file() {
	local value
	value=$(<"$1")
	if [[ $value =~ \[([^]]*)\] ]]; then value=${BASH_REMATCH[1]}; fi
	at_exit "echo '$value' >$1"
}

# In a mount namespace of its own: /etc, /run and /var/lib are copies, so that nothing of the system is changed.
private_system() {
	cp -a /etc "$scratch/etc"
	mkdir "$scratch/lib"
	mount --bind "$scratch/lib" /var/lib
	mount --bind "$scratch/etc" /etc
	mount -t tmpfs tmpfs /run
	at_exit 'umount /var/lib /etc /run'
	rm -rf /etc/kernel_advisor /etc/sysctl.d/60-kernel-advisor.conf /etc/tmpfiles.d/kernel-advisor.conf
	mkdir -p /etc/sysctl.d /etc/tmpfiles.d
}

# The real helper, at the place where the server looks for it.
advisord=${KA_ADVISORD:-$PWD/contrib_tools/kernel_advisord/kernel_advisord}
helper_pid=
start_helper() {
	: >"$scratch/advisord.log"
	"$advisord" --socket /run/kernel_advisord/socket 2>"$scratch/advisord.log" &
	helper_pid=$!
	at_exit stop_helper
	wait_until 20 grep -q 'ready: ' "$scratch/advisord.log" || bail "no helper: $(<"$scratch/advisord.log")"
}
stop_helper() {
	[[ -n $helper_pid ]] || return 0
	kill -"${1:-TERM}" $helper_pid
	wait $helper_pid 2>/dev/null || true
	helper_pid=
}

# Fragments of memory, held until release_memory or the end.
build_fragment() { gcc -std=gnu11 -O2 -o "$scratch/fragment" test/root/fragment.c; }
hold_memory() {
	mkfifo "$scratch/hold.${#held[@]}" 2>/dev/null || true
	"$scratch/fragment" "$@" <"$scratch/hold.${#held[@]}" >"$scratch/held" &
	held+=($!)
	at_exit release_memory
	exec {fd}>"$scratch/hold.$((${#held[@]} - 1))"
	held_fds+=("$fd")
	wait_until 120 grep -q ready "$scratch/held" || bail "memory cannot be fragmented: $*"
}
held=() held_fds=()
release_memory() {
	local fd pid
	for fd in "${held_fds[@]}"; do exec {fd}>&-; done
	for pid in "${held[@]}"; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
	held=() held_fds=()
}
