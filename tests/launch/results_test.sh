#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# tests/results.sh: what tests/run makes of the reports of ctest.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
# shellcheck source-path=SCRIPTDIR source=../results.sh
source "$repo/tests/results.sh"

# report CASE...: writes what ctest writes, for test cases given as NAME:STATUS[:SKIP MESSAGE].
report() {
  local name status message
  mkdir -p Testing/Temporary
  touch Testing/Temporary/LastTest.log
  for case in "$@"; do
    IFS=: read -r name status message <<<"$case"
    printf '\t<testcase name="%s" classname="%s" time="%s" status="%s">\n' "$name" "$name" "${seconds:-0.002}" "$status"
    [ -z "$message" ] || printf '\t\t<skipped message="%s"/>\n' "$message"
    printf '\t\t<system-out>Says status=&quot;fail&quot;</system-out>\n\t</testcase>\n'
  done >report.xml
}

# log TEST TEXT: the output of a test, as in ctest's log.
log() { printf '%s\n' "1/9 Testing: $1" "1/9 Test: $1" "Output:" "-----" "$2" "<end of output>" >>Testing/Temporary/LastTest.log; }

# conclude CODE TEXT: tests/run ends so, and says this of the report.
conclude() {
  begin part "title" >/dev/null
  record_ctest . report.xml
  end
  expect_says "$1" "$2" summary
}

Results_end_with_the_sum_alone_on_a_line() {
  report good:run better:run
  conclude 0 ''
  expect_equal "$(tail -n 1 <<<"$output")" "2 passed, 0 failed, 0 skipped"
}

Results_name_what_failed_and_add_up_over_the_parts() {
  report good:run bad:fail
  conclude 1 "failed:  part: bad"
  expect_contains "$output" "1 passed, 1 failed, 0 skipped"
  report good:run fine:run
  conclude 1 "3 passed, 1 failed, 0 skipped"
}

Results_count_exit_code_77_as_skipped_with_its_reason() {
  report good:run "away:notrun:SKIP_RETURN_CODE=77" "silent:notrun:SKIP_RETURN_CODE=77"
  log away "skipped: curl is not installed"
  conclude 0 "skipped: part: away: curl is not installed"
  expect_contains "$output" "skipped: part: silent: no reason given"
  expect_contains "$output" "1 passed, 0 failed, 2 skipped"
}

Results_count_a_test_whose_program_is_missing_as_failed() {
  report good:run "gone:notrun:Unable to find executable"
  conclude 1 "failed:  part: gone: Unable to find executable"
}

Results_list_each_case_that_googletest_skipped_once() {
  report ranks:run
  log ranks $'a_test.cpp:3: Skipped\nneeds\na GPU\n\n[  SKIPPED ] A.Test (0 ms)\na_test.cpp:3: Skipped\nneeds\na GPU\n\n[  SKIPPED ] A.Test (0 ms)'
  conclude 0 "skipped: part: ranks: A.Test: needs a GPU"
  expect_contains "$output" "1 passed, 0 failed, 1 skipped"
}

Results_without_a_single_pass_are_no_success() {
  report "away:notrun:SKIP_RETURN_CODE=77"
  conclude 1 ''
}

Results_name_the_ten_slowest_tests_of_all_parts() {
  seconds=9.94 report nine:run
  conclude 0 ''
  seconds=11 report eleven:fail
  conclude 1 ''
  expect_equal "$(grep slowest <<<"$output" | head -n 1)" "    slowest:   11.0 s  part: eleven"
  report a:run b:run c:run d:run e:run f:run g:run h:run i:run j:run "away:notrun:SKIP_RETURN_CODE=77"
  conclude 1 "slowest:    9.9 s  part: nine"
  expect_equal "$(grep -c 'slowest' <<<"$output")" 10
  expect_lacks "$(grep slowest <<<"$output")" away
}

Check_shows_the_output_of_a_command_that_fails_and_why_one_tested_nothing() {
  repo=$PWD && mkdir -p build/logs
  begin part "title" >/dev/null
  check "never" sh -c 'echo because; exit 3' >said
  check "always" true >>said
  check "not here" sh -c 'echo text; echo "not here: it is too far"; exit 77' >>said
  end
  expect_contains "$(cat said)" because
  expect_contains "$(cat said)" "ok      always"
  expect_equal "$total_passed $total_failed ${skips[*]}" "1 1 part: not here: it is too far"
}

# expect_of_tests CODE TEXT: the exit code of a file with these tests; what it says in $output.
expect_of_tests() {
  printf 'source %q\n%s\nrun_tests\n' "$repo/tests/launch/harness.sh" "$2" >some_test.sh
  expect_exit "$1" bash some_test.sh
}

# shellcheck disable=SC2016  # the inner shell expands it
Harness_fails_a_test_whose_check_fails_where_no_exit_code_is_looked_at() {
  local place
  for place in '(cd / && expect_equal 1 2)' 'echo | expect_equal 1 2 | cat' 'expect_equal "$(expect_equal 1 2)" ""' 'if (expect_equal 1 2); then :; fi' 'expect_equal 1 2 & wait' 'expect_equal 1 2'; do
    expect_of_tests 1 "Test() { $place; true; }"
    expect_contains "$output" "expected '2', got '1'"
    expect_contains "$output" "FAILED  Test"
  done
  expect_of_tests 0 'Test() { expect_failed_check expect_equal 1 2; expect_equal 1 1; }'
}

Harness_counts_a_test_that_skips_itself_as_skipped() {
  expect_of_tests 0 'Away() { skip_without no-such-tool; }; Here() { true; }'
  expect_contains "$output" "skipped: no-such-tool is not installed"
  expect_contains "$output" "skipped Away"
  expect_contains "$output" "1 of 2 held, 1 were skipped"
  expect_of_tests 77 'Away() { skip "too far"; }'
  expect_of_tests 1 'Away() { skip "too far"; }; Bad() { expect_equal 1 2; }'
  expect_of_tests 1 ''
}

run_tests "$@"
