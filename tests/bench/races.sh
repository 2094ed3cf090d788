# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Functions that races against PyTorch share. To be sourced, after launch/lib.sh.

# data_of SET [OPTION]: the folder of a data set, as launch/get-data, users or Debian's packages leave it. OPTION names another.
data_of() {
  local place
  for place in "${LOCKSTEP_DATA:-/nonexistent}/$1" "${XDG_CACHE_HOME:-$HOME/.cache}/lockstep/$1" "/usr/share/datasets/$1"; do
    if [ -d "$place" ]; then echo "$place" && return; fi
  done
  die 66 "no $1 at hand: launch/get-data $1${2:+, or $2}"
}

# require_torch PYTHON: it has what the peers need.
require_torch() { "$1" -c 'import torch, numpy' 2>/dev/null || die 69 "$1 has no torch and numpy: install them, or name another with --python"; }

# median: the number in the middle of those on standard input, one a line; nothing of none.
median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
