# shellcheck shell=bash
# tap.sh: tests written in bash.  Each check is one line of TAP; finish prints the plan.

tap_count=0 tap_failed=0

# ok NAME COMMAND...: the command succeeds
ok() {
	local name=$1 output
	shift
	tap_count=$((tap_count + 1))
	if output=$("$@" 2>&1); then
		printf 'ok %d - %s\n' $tap_count "$name"
	else
		tap_failed=$((tap_failed + 1))
		printf 'not ok %d - %s\n#   %s\n' $tap_count "$name" "$(printf '%q ' "$@")"
		[[ -z $output ]] || sed 's/^/#   /' <<<"$output"
	fi
}

equal() { [[ $1 == "$2" ]] || { printf 'got      %s\nexpected %s\n' "$1" "$2"; return 1; }; }

# is NAME GOT EXPECTED
is() { ok "$1" equal "$2" "$3"; }

# skip NAME WHY: what this machine cannot show
skip() {
	tap_count=$((tap_count + 1))
	printf 'ok %d # SKIP %s: %s\n' $tap_count "$1" "$2"
}

note() { sed 's/^/# /' <<<"$*"; }

# The plan, printed last; the caller's exit status.
finish() {
	printf '1..%d\n' $tap_count
	((tap_failed == 0))
}

# A test that stops on its way has no plan, so that prove calls it failed.
bail() {
	note "$*"
	exit 255
}

# wait_until SECONDS COMMAND...: polls; false when the time is over
wait_until() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		((SECONDS < end)) || return 1
		sleep 0.2
	done
}
