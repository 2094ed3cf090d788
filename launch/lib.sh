# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Functions that the scripts share: one-line messages, logs, becoming root. To be sourced.
# Exit codes are the program's own: 2 usage, 66 missing data, 69 something not available, 74 input/output.

repo=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# shown TEXT...: without control characters; names of files and what the environment says may hold any.
shown() { printf %s "${*//[[:cntrl:]]/?}"; }
say() { printf '==> %s\n' "$(shown "$*")"; }
note() { printf '    %s\n' "$(shown "$*")"; }

# die CODE MESSAGE: the script's name, the cause and the fix on one line, then out.
die() {
  local code=$1
  shift
  printf '%s: %s\n' "${0##*/}" "$(shown "$*")" >&2
  exit "$code"
}

# is_whole TEXT LEAST [MOST]: a whole number in that range. A word from a file, an argument or the environment is no part of
# $((...)), [[ ... -eq ... ]] or a subscript before this has held: the shell carries out a $(...) that stands in it.
is_whole() { [[ $1 =~ ^(0|[1-9][0-9]{0,8})$ ]] && [ "$1" -ge "$2" ] && [ "$1" -le "${3:-$1}" ]; }

# require_whole NAME TEXT LEAST [MOST]: or this is a wrong command line.
require_whole() { is_whole "${@:2}" || die 2 "$1 '$2' is not a whole number from $3 to ${4:-999999999}"; }

# print_help FILE: the script's own opening comment, from its third comment line on. help_if_asked FILE ARGUMENT...: that, and out.
print_help() { awk 'NR > 3 && !/^#/ { exit } NR > 3 { sub(/^# ?/, ""); print }' <"$1"; }
help_if_asked() { [[ ${2:-} != -h && ${2:-} != --help ]] || { print_help "$1" && exit; }; }

# latest_line LOG: its last line, short: "[12/300] kernels/cpu/activation.cpp" for "[12/300] Building CXX object kernels/...".
latest_line() {
  tail -c 4096 "$1" | tr '\r' '\n' | LC_ALL=C tr -cd '[:print:]\n' | grep . | tail -n 1 |
    sed -E 's/Building [A-Z]+ object //; s/CMakeFiles\/[^ ]*\.dir\///; s/\.o$//'
}

# line_width: how many characters a line of this terminal takes without reaching its last column.
line_width() {
  local columns
  columns=$(stty -F /dev/tty size 2>/dev/null | cut -d ' ' -f 2)
  echo $((columns > 20 ? columns - 1 : 79))
}

# watch_log LOG: until it is killed, or the script is gone: where a command is, on one line of a terminal; elsewhere on
# a new line every few seconds, LOCKSTEP_PROGRESS_SECONDS or 20.
watch_log() {
  local seconds=1 shown='' line width
  [ -t 1 ] || seconds=${LOCKSTEP_PROGRESS_SECONDS:-}
  is_whole "$seconds" 1 9999 || seconds=20
  while sleep "$seconds" &>/dev/null && kill -0 $$ 2>/dev/null; do
    { line=$(latest_line "$1") && [ "$line" != "$shown" ]; } || continue  # nothing yet, or nothing new
    shown=$line
    if [ -t 1 ]; then
      width=$(($(line_width) - 4))
      printf '\r    %-*s\r' "$width" "${line:0:width}"
    else
      note "$line"
    fi
  done
}

# logged NAME COMMAND...: all output goes to build/logs/NAME.log, and how far it is to the terminal; a failure shows its
# end and returns the exit code.
logged() {
  local name=$1 status=0 watcher
  shift
  local log=$repo/build/logs/$name.log
  { mkdir -p "${log%/*}" && : >"$log"; } || die 74 "cannot write to $repo/build: make it writable"
  watch_log "$log" &
  watcher=$!
  "$@" >"$log" 2>&1 </dev/null || status=$?
  kill "$watcher" && ! wait "$watcher"  # 143
  [ ! -t 1 ] || printf '\r%*s\r' "$(line_width)" ''
  if [ "$status" -ne 0 ]; then
    printf '%s: failed with exit code %s; the end of %s:\n' "$name" "$status" "$log" >&2
    tail -n 40 "$log" | sed 's/^/    /' >&2
  fi
  return "$status"
}

# cached NAME BUILD: the value in a build folder's CMake cache; nothing where it has none.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$2/CMakeCache.txt" | sed '/-NOTFOUND$/d'; }

# plugins BUILD: the files of the plugins that a build folder was configured with, one a line; exit code 66 where one is not built.
# tell_contents BUILD: says what its program has for GPUs, and what not.
plugins() {
  local plugin
  for plugin in $(cached LOCKSTEP_PLUGINS "$1" | tr ';' ' '); do
    [ -e "$1/$plugin.so" ] || die 66 "$1/$plugin.so is not built: cmake --build $1 --target lockstep_product"
    echo "$1/$plugin.so"
  done
}
tell_contents() {
  local list
  list=$(plugins "$1") || exit $?
  note "a program $(cached LOCKSTEP_CUDA_SUMMARY "$1")${list:+: $(awk -F / '{ print $NF }' <<<"$list" | xargs)}"
}

# as_root COMMAND...: runs it as root, through sudo where we are an ordinary user. Returns 69 where that cannot be.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 2 ]; }; then
    sudo "$@"
  else
    return 69
  fi
}

# allow_mpi_as_root: Open MPI refuses to start as root unless told twice; in a container root is who we are.
allow_mpi_as_root() {
  [ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

# allow_mpi_without_network: Open MPI's processes talk over TCP at their start even within one machine, and Open MPI 4 leaves
# lo out as soon as there is another interface, be it down. Where no route leads anywhere, lo is what is left.
# shellcheck disable=SC2119  # has_route looks at the kernel's own
allow_mpi_without_network() {
  if [ -n "${OMPI_MCA_oob_tcp_if_include:-}${OMPI_MCA_oob_tcp_if_exclude:-}" ] || has_route; then return; fi
  export OMPI_MCA_oob_tcp_if_include=lo
}

# has_route [ROUTES [INTERFACES]]: over an interface that is not down. The kernel's own tables, or copies of them.
# shellcheck disable=SC2120  # tests pass copies
has_route() {
  local interface state
  [ -r "${1:-/proc/net/route}" ] || return 0
  while read -r interface _; do
    state=$(cat "${2:-/sys/class/net}/$interface/operstate" 2>/dev/null)
    [ "${state:-unknown}" = down ] || return 0
  done < <(tail -n +2 "${1:-/proc/net/route}")
  return 1
}

# list_gpus SECONDS: what nvidia-smi -L says, "GPU 0: ..." of each. Returns 124 when the time is over: with a broken driver it may hang, and
# a process that the driver holds ends by no signal: it is not waited for.
list_gpus() {
  local list=''
  read -t "$1" -rd '' list < <(exec nvidia-smi -L 2>/dev/null) || [ $? -le 128 ] || {
    kill -KILL "$!" 2>/dev/null
    return 124
  }
  printf '%s\n' "$list"
}

# count_cores: that this process may use. Of a core with two threads mpirun makes one slot, and nproc counts two, or as many as
# OMP_NUM_THREADS says.
count_cores() {
  local cpus
  cpus=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
  lscpu -p=CORE 2>/dev/null | awk -v cpus="$cpus" '
    /^[0-9]/ { threads++; if (!seen[$1]++) cores++ }
    END { n = threads ? int(cpus * cores / threads) : cpus; print (n > 1 ? n : 1) }' || true
}

# build_jobs: compilers to run at once: one a core, fewer where memory is short (1.5 GiB each).
build_jobs() {
  local cores by_memory
  cores=$(nproc)
  by_memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo 2>/dev/null)
  by_memory=${by_memory:-$cores}
  [ "$by_memory" != 0 ] || by_memory=1
  echo $((by_memory < cores ? by_memory : cores))
}
