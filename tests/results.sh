# shellcheck shell=bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Counting what tests/run has seen, over all its parts. To be sourced, after launch/lib.sh, which defines $repo.
# shellcheck disable=SC2154

total_passed=0 total_failed=0 total_skipped=0
table=() failures=() skips=() durations=()

# begin PART TITLE / end: everything recorded in between belongs to PART.
begin() {
  part=$1 part_start=$SECONDS part_passed=0 part_failed=0 part_skipped=0
  printf '\n==> %s: %s\n' "$1" "$2"
}

end() {
  table+=("$(printf '    %-10s %7d %7d %8d %8d s' "$part" "$part_passed" "$part_failed" "$part_skipped" $((SECONDS - part_start)))")
  total_passed=$((total_passed + part_passed)) total_failed=$((total_failed + part_failed)) total_skipped=$((total_skipped + part_skipped))
}

# tell OUTCOME NAME: how a test went. A script may have a way of its own.
tell() { printf '%-7s %s\n' "$@"; }

passed() { part_passed=$((part_passed + 1)); }
failed() { part_failed=$((part_failed + 1)) && failures+=("$part: $1") && tell FAILED "$1"; }
skipped() { part_skipped=$((part_skipped + 1)) && skips+=("$part: $1"); }

# took SECONDS NAME: of the part.
took() { durations+=("$1 $part: $2"); }

# check NAME COMMAND...: one test that is a command. The end of its output is shown when it fails. Exit code 77: it tested nothing, and its
# last line says why.
check() {
  local name=$1 log="$repo/build/logs/check-${1// /-}.log" status=0 reason start=$SECONDS
  shift
  "$@" >"$log" 2>&1 || status=$?
  took $((SECONDS - start)) "$name"
  case $status in
    0) passed && echo "ok      $name" ;;
    77) reason=$(tail -n 1 "$log") && skipped "$name: ${reason#"$name: "}" && echo "skipped $name" ;;
    *) failed "$name" && echo "    the end of $log:" && tail -n 60 "$log" | sed 's/^/    /' ;;
  esac
}

# cases REPORT: "OUTCOME NAME" of each test case in ctest's JUnit report. Only exit code 77 is a skip: a test that could
# not be started, because its program is missing or a fixture failed, has failed.
cases() {
  awk -F '"' '
    /<testcase / { name = $2; match($0, /status="[a-z]*"/); status = substr($0, RSTART + 8, RLENGTH - 9)
                   if (status == "run") print "passed", name; else if (status == "fail") print "failed", name }
    /<skipped / && status == "notrun" { print (/SKIP_RETURN_CODE/ ? "skipped" : "failed"), name (/SKIP_RETURN_CODE/ ? "" : ": " $2) }
    /<testcase / && status == "disabled" { print "skipped", name }
  ' "$1"
}

# times REPORT: "SECONDS NAME" of each test case that was run.
times() { awk -F '"' '/<testcase / && /status="(run|fail)"/ { match($0, / time="[0-9.]*"/); print substr($0, RSTART + 7, RLENGTH - 8), $2 }' "$1"; }

# reasons LOG: every GoogleTest case that skipped itself and every script that said why, one a line, from ctest's log.
reasons() {
  awk '
    /^[0-9]+\/[0-9]+ Testing: / { test = $3 }
    /: Skipped$/ { text = ""; reading = 1; next }
    reading && /^\[  SKIPPED \]/ { name = $4; if (!seen[test name]++) print test ": " name ": " (text == "" ? "no reason given" : text); reading = 0 }
    reading && NF { text = text (text == "" ? "" : " ") $0 }
    /^skipped: / { sub(/^skipped: /, ""); if (!seen[test]++) print test ": " $0 }
  ' "$1"
}

# record_ctest FOLDER REPORT: adds up a run of ctest in a build folder. Cases that GoogleTest skipped count as skipped.
record_ctest() {
  local outcome name line explained seconds
  while read -r seconds name; do took "$seconds" "$name"; done < <(times "$2")
  explained=$(reasons "$1/Testing/Temporary/LastTest.log")
  while read -r line; do [ -z "$line" ] || skipped "$line"; done <<<"$explained"
  while read -r outcome name; do
    case $outcome in
      passed) passed ;;
      failed) failed "$name" >/dev/null ;;
      skipped) grep -q "^$name: " <<<"$explained" || skipped "$name: no reason given" ;;
    esac
  done < <(cases "$2")
}

# slowest: the ten tests that took longest, of all parts.
slowest() {
  [ ${#durations[@]} -gt 0 ] || return 0
  printf '%s\n' "${durations[@]}" | LC_ALL=C sort -rn | head -n 10 | awk '{ seconds = $1; sub(/^[^ ]* /, ""); printf "    slowest: %6.1f s  %s\n", seconds, $0 }'
}

# summary: the table, the ten slowest tests, what failed, what was skipped and why, and the one line that sums it all up. Fails if a test did.
summary() {
  printf '\n    %-10s %7s %7s %8s %10s\n' part passed failed skipped time
  printf '%s\n' "${table[@]}"
  slowest
  [ ${#failures[@]} -eq 0 ] || printf '    failed:  %s\n' "${failures[@]}"
  [ ${#skips[@]} -eq 0 ] || printf '    skipped: %s\n' "${skips[@]}"
  printf '\n%d passed, %d failed, %d skipped\n' "$total_passed" "$total_failed" "$total_skipped"
  [ "$total_failed" -eq 0 ] && [ "$total_passed" -gt 0 ]
}
