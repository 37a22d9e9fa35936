# Sourced by the other scripts: stages with elapsed time, builds by preset. Expects the root of the
# repository as working directory.
# shellcheck shell=bash
export CLICOLOR=0 NINJA_STATUS='[%f/%t %es] '
jobs=$(nproc)

# One line per stage on stderr, so that what follows can be told apart and timed.
stage() {
  printf '\n[%4d s] %s\n' "$SECONDS" "$*" >&2
}

# Runs a command; its output is shown only when it fails.
quietly() {
  "$@" >"$log" 2>&1 || {
    local status=$?
    cat "$log"
    return $status
  }
}

# build PRESET [arguments of cmake --build]. Configures every time, which takes a moment: a package installed since is then found.
build() {
  stage "$1: configure"
  cmake --preset "$1"
  stage "$1: build"
  cmake --build --preset "$1" -j "$jobs" "${@:2}"
}

# However a script ends, it leaves nothing behind. On Ctrl-C the children, which are in our process
# group, get the signal too; wait for them.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'trap - INT TERM; wait; exit 130' INT TERM
