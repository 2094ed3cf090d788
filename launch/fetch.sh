# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Fetching one data file from one mirror: resume, verify, rename into place. To be sourced by launch/get-data.
# Expects: $set, $table (of data sets), $files (of the set), $archive that has them, if any, and $dest (folder). Where a function fails
# it leaves the cause, for people, in $reason.
# shellcheck disable=SC2154

reason=
refuse() { reason=$1 && false; }

# entry KIND COLUMN [NAME]: of the set's lines of that kind in the table of data sets, or of those of that name alone (3: name, 4: bytes,
# 5: checksum).
entry() { awk -v kind="$1" -v column="$2" -v name="${3:-}" -v set="$set" '$1 == kind && $2 == set && (name == "" || $3 == name) { print $column }' <"$table"; }

# cannot_write [UNFINISHED]: the end, for no other mirror helps then; without this file.
cannot_write() {
  rm -f -- "$@" || true
  die 74 "cannot write to $dest: make room on its disk, or choose another folder with --root DIR"
}

# digest TOOL PATH: bare hexadecimal digits.
digest() { "$1" <"$2" | cut -d ' ' -f 1; }

# is_genuine FILE PATH: PATH holds the uncompressed bytes that FILE must have, or those of the archive.
is_genuine() {
  local kind=file bytes check size
  [ "$1" != "$archive" ] || kind=archive
  bytes=$(entry "$kind" 4 "$1") check=$(entry "$kind" 5 "$1")
  size=$(stat -L -c %s "$2")
  [ "$size" -eq "$bytes" ] || { refuse "$1 has $size bytes instead of $bytes" || return; }
  [[ $check != md5:* ]] || [ "${check#md5:}" = "$(digest md5sum "$2")" ] || refuse "$1 has the wrong MD5 checksum"
}

# is_genuine_gz FILE PATH: the same of PATH compressed.
is_genuine_gz() {
  local check
  check=$(entry file 5 "$1")
  case $check in
    gz-sha256:*) [ "${check#gz-sha256:}" = "$(digest sha256sum "$2")" ] || refuse "$1.gz has the wrong SHA-256 checksum" ;;
    md5:*) [ "${check#md5:}" = "$(gzip -dc "$2" 2>/dev/null | md5sum | cut -d ' ' -f 1)" ] || refuse "$1.gz is damaged or of another set (MD5 checksum)" ;;
    *) refuse "no checksum is known for $1.gz: unpack it" ;;
  esac
}

# unpack FILE PART TARGET: the uncompressed bytes of a download, never more than one byte too many.
unpack() {
  local bytes check codes
  bytes=$(entry file 4 "$1") check=$(entry file 5 "$1")
  if [[ $2 == *.gz ]]; then
    [[ $check != gz-sha256:* ]] || is_genuine_gz "$1" "$2" || return
    gzip -dc "$2" 2>/dev/null | head -c $((bytes + 1)) 2>/dev/null >"$3" && return 0 || codes=("${PIPESTATUS[@]}")
    [ "${codes[1]}" -eq 0 ] || cannot_write "$3"
    if [ "$(stat -c %s "$3")" -gt "$bytes" ]; then refuse "$1.gz holds more than $bytes bytes"; else refuse "$1.gz is no whole gzip file"; fi
  else
    [[ $check == md5:* ]] || { refuse "no checksum is known for $1 uncompressed" || return; }
    mv -fT -- "$2" "$3"
  fi
}

# member FILE PART: a file of the archive PART into .partial as FILE.unpacked.
member() {
  local unpacked=$dest/.partial/$1.unpacked
  rm -f -- "$unpacked"
  { tar -xzOf "$2" -- "$(entry folder 3)/$1" 2>/dev/null || true; } | cat 2>/dev/null >"$unpacked" || cannot_write "$unpacked"
}

# accept_archive PART: verifies the set's archive and takes its files out of it, those of the table and no others.
accept_archive() {
  local name file
  is_genuine "$archive" "$1" || return
  name=$(entry names 3)
  for file in ${name:+"$name"} "${files[@]}"; do # the names first: nothing asks for them once all files are there
    member "$file" "$1"
    [ "$file" = "$name" ] || is_genuine "$file" "$dest/.partial/$file.unpacked" || return
    mv -fT -- "$dest/.partial/$file.unpacked" "$dest/$file" 2>/dev/null || cannot_write "$dest/.partial/$file.unpacked"
  done
}

# accept FILE PART: verifies the download and moves it to $dest/FILE under its final name in one step.
accept() {
  [ "$1" != "$archive" ] || { accept_archive "$2"; return; }
  local unpacked=$dest/.partial/$1.unpacked
  rm -f -- "$unpacked"
  unpack "$1" "$2" "$unpacked" && is_genuine "$1" "$unpacked" || return
  mv -fT -- "$unpacked" "$dest/$1" 2>/dev/null || cannot_write "$unpacked"
  rm -f -- "$2"
}

# is_private PATH: a regular file that has this one name; no link to a file of another owner.
is_private() { [ -f "$1" ] && [ ! -L "$1" ] && [ "$(stat -c %h -- "$1")" -eq 1 ]; }

# transfer URL PART: continues PART where it ends. Gives up early on a host that does not answer or has stalled.
transfer() {
  local message code=0
  message=$(curl -qfsSL -C - --connect-timeout 5 --speed-limit 1000 --speed-time 15 -o "$2" "$1" 2>&1) || code=$?
  reason=$(sed -n '1s/^curl: ([0-9]*) //p' <<<"$message")
  return "$code"
}

# obtain URL FILE PART: downloads and verifies. What an earlier, broken download left is continued; where that
# does not give the right bytes, it is thrown away and the download starts afresh.
# Returns 1: this mirror has no good copy of the file. 2: the mirror cannot be reached (PART stays, to be resumed).
# Leaves yes in $refused where it sent something last that was not accepted.
obtain() {
  local resumed code
  # Only what an earlier call of ours may have left is gone on with: a file, and one that has no other name.
  is_private "$3" || rm -f -- "$3"
  while true; do
    resumed='' code=0 refused=''
    [ ! -s "$3" ] || resumed=yes
    transfer "$1" "$3" || code=$?
    case $code in
      0) accept "$2" "$3" && return 0 || refused=yes ;;
      5 | 6 | 7 | 16 | 18 | 28 | 35 | 52 | 55 | 56 | 92 | 95 | 96) return 2 ;; # 16 and from 92 on: of HTTP/2 and HTTP/3
      23) cannot_write ;; # PART is gone on with
    esac
    rm -f -- "$3" "$dest/.partial/$2.unpacked"
    [ -n "$resumed" ] || return 1
  done
}

# fetch_file MIRROR FILE: compressed if the mirror has it so, plain otherwise; the archive as it is. Returns as obtain does.
fetch_file() {
  local status=0 first refused first_refused
  [ "$2" != "$archive" ] || { obtain "$1/$2" "$2" "$dest/.partial/$2"; return; }
  obtain "$1/$2.gz" "$2" "$dest/.partial/$2.gz" || status=$?
  [ "$status" -eq 1 ] || return "$status"
  first=$reason first_refused=$refused
  obtain "$1/$2" "$2" "$dest/.partial/$2" && return 0 || status=$?
  # The second cause counts where the mirror has no compressed file, and has, or may have, a plain one.
  if [ -z "$first_refused" ] && { [ -n "$refused" ] || [ "$status" -eq 2 ]; }; then return "$status"; fi
  [[ $first == *"$2"* ]] || first="$2.gz: $first"
  reason=$first
  return "$status"
}
