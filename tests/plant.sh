# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Faults of a table, planted into a copy of the sources. To be sourced: tests/arithmetic/cuts plants one after the other,
# tests/mutants all of them at once. A table is a list of
#
#   cut NAME          or "fault NAME", as $kind says
#   in FILE
#   -lines, or a part of one line, as they are there
#   +in their place
#
# Expects $kind, $table and $folder, into which the copy goes.
# shellcheck disable=SC2154

source=$folder/source

# plant HOW [NAME]: HOW is "check" (nothing is written), "one" (the row NAME) or "all" (all rows that change C++, each behind the
# choice lockstep_planted(ROW), which the environment variable LOCKSTEP_PLANTED makes; if that is a folder, a link there
# notes each row that a program comes by). "list": row, room, what it changes, name and tests of each.
plant() {
  awk -v how="$1" -v only="${2:-}" -v kind="$kind" -v table="$table" -v repo="$repo" -v folder="$folder" '
    function fail(text) { printf "%s, %s: %s\n", table, name, text >"/dev/stderr"; failed = 1; exit 65 }
    function is_source(file) { return file ~ /[.]([ch]pp|cuh?)$/ }
    function load(file,   line, got) {
      if (file in texts) return
      while ((got = (getline line <(repo "/" file))) > 0) texts[file] = texts[file] line "\n"
      close(repo "/" file)
      if (got < 0) fail(file " is not there any more: bring the row up to date")
    }
    # True if the text is neither an expression nor statements that may have a block of their own.
    function is_torn(text,   i, c, depth) {
      if (text ~ /^ *([{}]|if |for |while |else |return |throw |case |[.][a-z_]+ = )/ && text !~ /[;}] *([/][/].*)?$/) return 1
      if (text ~ /^ *(const |constexpr |auto )/) return 1
      for (i = 1; i <= length(text); ++i) {
        c = substr(text, i, 1)
        if (c ~ /[([{]/) ++depth
        if (c ~ /[])}]/ && --depth < 0) return 1
        if (c == "," && depth == 0) return 1
      }
      return depth != 0
    }
    # The smallest argument, condition or value in which the two texts differ, chosen; the rest as it is.
    function with_choice_inside(old, new,   first, last, n, m, i, c, depth, low) {
      n = length(old); m = length(new)
      while (first < n && first < m && substr(old, first + 1, 1) == substr(new, first + 1, 1)) ++first
      while (last < n - first && last < m - first && substr(old, n - last, 1) == substr(new, m - last, 1)) ++last
      for (; 1; --first) {
        for (depth = 0; first > 0; --first) {
          c = substr(old, first, 1)
          if (c ~ /[])}]/) ++depth
          if (c ~ /[([{]/ && depth-- == 0) break
          if (depth == 0 && (c ~ /[,;]/ || substr(old, 1, first) ~ /( = |return )$/)) break
        }
        depth = low = 0
        for (i = first + 1; i <= n; ++i) {
          c = substr(old, i, 1)
          if (i > n - last && depth == 0 && c ~ /[]),;}]/) break
          if (c ~ /[([{]/) ++depth
          if (c ~ /[])}]/ && --depth < low) low = depth
        }
        if ((low == 0 && depth == 0) || first <= 0) break
      }
      last = n - i + 1
      return substr(old, 1, first) " (lockstep_planted(" row ") ? (" substr(new, first + 1, m - last - first) ") : (" \
        substr(old, first + 1, n - last - first) "))" substr(old, n - last + 1)
    }
    # Both ways in one text. A row whose new text has the word PLANTED makes the choice itself; PLANTED_AT_RUN_TIME is never one that
    # the compiler could make, as it may for a constant.
    function with_choice(old, new) {
      gsub(/PLANTED_AT_RUN_TIME/, "lockstep_chosen(" row ")", new)
      if (new ~ /PLANTED|lockstep_chosen/) { gsub(/PLANTED/, "lockstep_planted(" row ")", new); return new }
      if (new != "" && is_torn(old)) return with_choice_inside(old, new)
      if (old ~ /[;}] *([/][/].*)?$/) return "{\nif (lockstep_planted(" row ")) {\n" new "\n} else {\n" old "\n}\n}"
      if (new == "") fail("nothing stands in place of a part of an expression")
      return "(lockstep_planted(" row ") ? (" new ") : (" old "))"
    }
    function flush_change(   at, rest) {
      if (old == "") return
      sub(/\n$/, "", old); sub(/\n$/, "", new)
      load(file)
      at = index(texts[file], old)
      if (!at) fail("\x27" old "\x27 is not in " file " any more: bring the row up to date")
      rest = substr(texts[file], at + length(old))
      if (index(rest, old)) fail("\x27" old "\x27 is in " file " more than once: take more of its line")
      changed[file] = 1
      texts[file] = substr(texts[file], 1, at - 1) (kind == "fault" && is_source(file) ? with_choice(old, new) : new) rest
      old = new = ""
    }
    # A row that stands alone leaves nothing to the next one.
    function end_row(   f) {
      flush_change()
      if (how == "list" && name != "") print row "\t" room "\t" (is_source(file) ? "source" : "script") "\t" name tests
      for (f in texts) if (how == "check" && (kind != "fault" || !is_source(f))) delete texts[f]
      name = file = ""
    }
    function put(file,   path) {
      path = folder "/" (how == "all" ? "planted" : "source") "/" file
      print file >>(folder "/in-work")
      close(folder "/in-work")
      if (is_source(file) && how == "all") printf "%s", choice >path
      printf "%s", texts[file] >path
      close(path)
    }
    BEGIN {
      # A link needs neither a free descriptor nor room for a file, which tests take away. Code around it may be about to read errno.
      choice = "#ifndef LOCKSTEP_PLANTED\n#define LOCKSTEP_PLANTED\n#include <unistd.h>\n\n#include <atomic>\n#include <cerrno>\n#include <cstdlib>\n#include <cstring>\n" \
        "#include <type_traits>\ninline void lockstep_reached(int row) {\n  static std::atomic<bool> known[8192];\n" \
        "  if (known[row % 8192].exchange(true)) return;\n  const char* folder = std::getenv(\"LOCKSTEP_PLANTED\");\n" \
        "  char path[1024];\n  char* at = path + sizeof path;\n  *--at = 0;\n  for (; row > 0; row /= 10) *--at = static_cast<char>(48 + row % 10);\n" \
        "  *--at = 47;\n  const std::size_t size = std::strlen(folder);\n  if (size >= 1000) std::abort();\n  at -= size;\n" \
        "  std::memcpy(at, folder, size);\n  const int before = errno;\n  if (::symlink(\"row\", at) != 0) errno = before;\n}\n" \
        "inline bool lockstep_chosen(int row) {\n  static const int chosen = [] {\n    const char* text = std::getenv(\"LOCKSTEP_PLANTED\");\n" \
        "    return text == nullptr ? 0 : *text == 47 ? -1 : std::atoi(text);\n  }();\n  if (chosen < 0) lockstep_reached(row);\n  return row == chosen;\n}\n" \
        "constexpr bool lockstep_planted(int row) { return !std::is_constant_evaluated() && lockstep_chosen(row); }\n#endif\n#line 1\n"
    }
    $1 == kind { end_row(); ++row; name = substr($0, length(kind) + 2); tests = of_room; wanted = only == "" || name == only; own = 0; next }
    $1 == "room" { end_row(); room = $2; of_room = ""; next }
    $1 == "tests" && name == "" { of_room = of_room "\t" substr($0, 7); next }
    $1 == "tests" { if (!own) tests = ""; own = 1; tests = tests "\t" substr($0, 7); next }
    $1 == "in" && name != "" { flush_change(); file = $2; if (how == "list" || !wanted || (how == "all" && !is_source(file))) skip = 1; else skip = 0; next }
    /^-/ && name != "" && !skip { old = old substr($0, 2) "\n" }
    /^[+]/ && name != "" && !skip { new = new substr($0, 2) "\n" }
    END {
      if (failed) exit 65
      end_row()
      if (how == "one" || how == "all") for (f in changed) put(f)
    }' "$table"
}

# names: of the rows that $only, a regular expression, chooses.
names() { sed -n "s/^$kind //p" "$table" | grep -E -- "$only" || die 2 "nothing in ${table##*/} matches '$only' (try --list)"; }

# check_all: whether all that the rows change is still there.
check_all() {
  plant check || exit 65
  note "$(grep -c "^$kind " "$table") changes can be made"
}

# copy_sources: those that git knows of, where they are newer than the copy; what it knows no longer goes.
copy_sources() {
  mkdir -p "$source"
  (cd "$source" && find . -path ./build -prune -o -type f -printf '%P\0' | LC_ALL=C sort -z) |
    LC_ALL=C comm -z -23 - <(git -C "$repo" ls-files -z | LC_ALL=C sort -z) | (cd "$source" && xargs -0 rm -f)
  git -C "$repo" ls-files -z | tar --create --directory "$repo" --null --files-from - --ignore-failed-read |
    tar --extract --directory "$source" --keep-newer-files
}

# restore: what was planted, also by a run that was cut short; now newer than what was built of it.
restore() {
  local files file
  [ -s "$folder/in-work" ] || return 0
  mapfile -t files <"$folder/in-work"
  for file in "${files[@]}"; do cp "$repo/$file" "$source/$file"; done
  rm "$folder/in-work"
}

# forget_if_changed FILE...: what was noticed of other sources, or what --resume did not ask for.
forget_if_changed() {
  local state
  state=$(git -C "$repo" ls-files -z -- "$@" | (cd "$repo" && xargs -0 sha256sum) | sha256sum)
  if [ "$resume" = 0 ] || [ "$state" != "$(cat "$folder/state" 2>/dev/null)" ]; then : >"$folder/noticed"; fi
  printf '%s\n' "$state" >"$folder/state"
}
