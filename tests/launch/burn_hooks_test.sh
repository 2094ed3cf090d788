#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/hooks: what cluster managers make of `lockstep burn`. The program is the real one, failing on
# purpose; scontrol and NHC are stand-ins, and where Slurm is installed a real slurmd drains its node. Needs $LOCKSTEP_PROGRAM.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
# shellcheck source-path=SCRIPTDIR source=slurm_here.sh
source "$(dirname "${BASH_SOURCE[0]}")/slurm_here.sh"
hooks=$repo/launch/hooks

quick="--time 0s --threads 1"
make_world() {
  # shellcheck disable=SC2016  # the stand-in's own
  stand_in scontrol 'printf "%s\n" "$@" >>calls'
  export SLURMD_NODENAME=node7 LOCKSTEP=$LOCKSTEP_PROGRAM LOCKSTEP_BURN=$quick LOCKSTEP_ALLOW_INJECT=1
}

Slurm_keeps_a_good_node() {
  make_world
  expect_exit 0 "$hooks/slurm-burn"
  expect_equal "$output" "node7: burn: PASS 1 rank on 1 host"
  expect_no_file calls
}

Slurm_drains_a_node_whose_trainings_are_wrong_with_the_reason() {
  make_world
  LOCKSTEP_BURN="$quick --inject job@0" expect_exit 1 "$hooks/slurm-burn"
  expect_contains "$(cat calls)" $'update\nnodename=node7\nstate=drain\nreason=lockstep burn: WRONG rank 0 on '
  expect_contains "$(cat calls)" ": job: 8 of 8 trainings alone ended in other weights"
}

Slurm_burn_takes_only_names_and_exit_codes_from_its_environment() {
  make_world
  # shellcheck disable=SC2016  # it must not be carried out
  LOCKSTEP_BURN_DRAIN='1 x[$(touch executed)0]' expect_says 2 "LOCKSTEP_BURN_DRAIN holds no exit code" "$hooks/slurm-burn"
  LOCKSTEP_BURN="--memory 25%" expect_says 2 "node7: lockstep: not expected: --memory 25%" "$hooks/slurm-burn"
  LOCKSTEP_BURN_DRAIN='*' expect_exit 2 "$hooks/slurm-burn"
  LOCKSTEP_BURN_DRAIN=1000 expect_says 2 "LOCKSTEP_BURN_DRAIN holds no exit code" "$hooks/slurm-burn"
  SLURMD_NODENAME='node7 state=down' expect_says 2 "SLURMD_NODENAME is not a name of a node" "$hooks/slurm-burn"
  expect_equal "$(SLURMD_NODENAME=- "$hooks/slurm-burn" 2>/dev/null)" ""
  SLURMD_NODENAME=9a.b-c_0 expect_says 0 "9a.b-c_0: burn: PASS" "$hooks/slurm-burn"
  expect_no_file executed
  expect_no_file calls
}

# A burn that cannot start says nothing good of the node.
Slurm_drains_a_node_that_cannot_be_tested() {
  make_world
  LOCKSTEP_BURN="--device cuda:99" expect_exit 1 "$hooks/slurm-burn"
  expect_contains "$(cat calls)" "state=drain"
}

# expect_of_signals COMMAND...: it says the signal of each exit code $CODE that is one's, and the verdict "burn: none" of others.
# shellcheck disable=SC2016  # the stand-in's own
expect_of_signals() {
  local code
  stand_in lockstep 'echo "burn: none"; exit "$CODE"'
  for code in 129 130 189 190 192; do
    CODE=$code expect_says 1 "burn: NOT TESTED: it was ended by signal $((code - 128))" "$@"
  done
  for code in 128 193; do CODE=$code expect_says 1 "burn: none" "$@"; done
  for code in 126 127; do CODE=$code expect_says 1 "burn: NOT TESTED: lockstep cannot be started" "$@"; done
}

# The program is a stand-in, which ends with $CODE.
# shellcheck disable=SC2016  # it expands its own variables
Slurm_burn_hands_on_its_options_and_drains_with_the_last_verdict() {
  local code
  make_world
  stand_in lockstep 'echo "burn: first"; echo "burn: $* ${SLURM_PROCID:-none} $COLUMNS ${LAUNCHED:-}"; echo after; exit "${CODE:-0}"'
  stand_in timeout 'echo "$1 $2 $3" >limits; exec "${@:4}"'
  export LOCKSTEP=lockstep
  unset LOCKSTEP_BURN
  SLURM_PROCID=3 LOCKSTEP_BURN_LAUNCH="env LAUNCHED=yes" expect_exit 0 "$hooks/slurm-burn"
  expect_equal "$output" "node7: burn: burn --time 20s none 1000 yes"
  expect_equal "$(cat limits)" "-k 5 55"
  for code in 3 75 100; do CODE=$code expect_exit 0 "$hooks/slurm-burn"; done
  CODE=2 expect_exit 2 "$hooks/slurm-burn"
  expect_no_file calls
  for code in 1 69 70 71 72 124 137; do
    CODE=$code expect_exit 1 "$hooks/slurm-burn"
    expect_contains "$(cat calls)" $'update\nnodename=node7\nstate=drain\nreason=lockstep burn: '
    rm calls
    [ "$code" -lt 124 ] || expect_equal "$output" "node7: burn: NOT TESTED: it was killed, or did not end within 55 seconds"
  done
  CODE=139 LOCKSTEP_BURN_DRAIN=1 expect_exit 0 "$hooks/slurm-burn"
  expect_no_file calls
  for code in 139 255; do CODE=$code expect_exit 1 "$hooks/slurm-burn"; done
  expect_contains "$(cat calls)" $'state=drain\nreason=lockstep burn: NOT TESTED: it was ended by signal 11\n'
  rm calls && CODE=1 LOCKSTEP_BURN_DRAIN=69 expect_exit 0 "$hooks/slurm-burn"
  expect_no_file calls
  CODE=3 LOCKSTEP_BURN_DRAIN="1 3" expect_exit 1 "$hooks/slurm-burn"
  expect_contains "$(cat calls)" state=drain
  CODE=127 LOCKSTEP_BURN_DRAIN=69 expect_exit 1 "$hooks/slurm-burn"
  expect_of_signals "$hooks/slurm-burn"
  stand_in lockstep 'echo before; printf "%0300d\n" 7; exit 1'
  rm calls && expect_exit 1 "$hooks/slurm-burn"
  expect_equal "$(tail -n 1 calls)" "reason=lockstep $(printf %0200d 0)"
  expect_says 0 "LOCKSTEP_BURN_DRAIN  exit codes that drain" "$hooks/slurm-burn" --help
}

# A training of all ranks that names a wrong rank ends the burn without a verdict, and mpirun speaks last.
Slurm_drains_a_node_with_a_rank_that_sent_wrong_sums() {
  make_world
  stand_in lockstep 'echo "lockstep: before"; echo "lockstep: step 3: rank 1 on node7 sent other sums" >&2; echo "-----"; exit 72'
  LOCKSTEP=lockstep expect_exit 1 "$hooks/slurm-burn"
  expect_equal "$(tail -n 1 calls)" "reason=lockstep lockstep: step 3: rank 1 on node7 sent other sums"
}

# shellcheck disable=SC2016  # the stand-in expands its own variables
Nhc_lets_a_slow_node_pass_where_that_is_told() {
  make_world
  # shellcheck disable=SC2317  # called by the check
  die() { echo "die $*"; }
  # shellcheck source=/dev/null
  source "$hooks/lockstep.nhc"
  stand_in lockstep 'echo "burn: first"; echo "burn: SLOW $* $COLUMNS"; echo after; exit "$CODE"'
  export LOCKSTEP=lockstep
  CODE=3 expect_exit 1 check_lockstep_burn
  expect_equal "$output" "die 1 check_lockstep_burn: burn: SLOW burn --time 20s 1000"
  CODE=3 LOCKSTEP_BURN_SLOW=ok expect_exit 0 check_lockstep_burn --time 5s
  CODE=0 expect_exit 0 check_lockstep_burn
  CODE=4 LOCKSTEP_BURN_SLOW=ok expect_exit 1 check_lockstep_burn --time 5s
  expect_equal "$output" "die 1 check_lockstep_burn: burn: SLOW burn --time 5s 1000"
  CODE=1 expect_says 1 "SLOW burn --share 1000" check_lockstep_burn --share
  expect_of_signals check_lockstep_burn
  stand_in lockstep 'echo before; echo "no verdict" >&2; exit 1'
  expect_exit 1 check_lockstep_burn
  expect_equal "$output" "die 1 check_lockstep_burn: no verdict"
}

# With a stand-in for ReFrame, which notes what the check declares: its patterns fit what the program prints.
Reframe_check_reads_the_verdict() {
  skip_without python3
  mkdir -p reframe/utility
  cat >reframe/__init__.py <<'PY'
import builtins
noted = []
def note(*words): return lambda thing: noted.append((*words, thing.__name__)) or thing
builtins.variable = lambda kind, value: kind(value)
builtins.run_before = lambda stage: note("before", stage)
builtins.sanity_function = note("sanity")
simple_test = note("test")
class RunOnlyRegressionTest: stdout = "said"
PY
  touch reframe/utility/__init__.py
  cat >reframe/utility/sanity.py <<'PY'
import re
def assert_found(pattern, file): return re.search(pattern, open(file).read(), re.M) is not None
PY
  cat >check.py <<'PY'
import sys
sys.path[:0] = [".", sys.argv[1]]
import reframe_burn
test = reframe_burn.LockstepBurn()
test.set_command()
print(*reframe_burn.rfm.noted, test.valid_systems, test.valid_prog_environs, test.time_limit)
print(test.num_tasks, test.num_tasks_per_node, test.env_vars, test.executable, test.executable_opts, test.every_rank_passes())
PY
  # shellcheck disable=SC2086  # options are words
  COLUMNS=1000 "$LOCKSTEP_PROGRAM" burn $quick --level 2 --share >said
  expect_exit 0 env PYTHONDONTWRITEBYTECODE=1 python3 check.py "$hooks"
  expect_equal "$output" "('before', 'run', 'set_command') ('sanity', 'every_rank_passes') ('test', 'LockstepBurn') ['*'] ['*'] 30m
0 1 {'COLUMNS': '1000'} lockstep ['burn', '--level 1'] True"
  expect_contains "$(cat said)" $'\nlevel 2, 1 round in '
  expect_contains "$(cat said)" $'\nbuilt with  '"$("$LOCKSTEP_PROGRAM" --version --verbose | sed -n 's/^compiler *//p')"$'\n'
}

# catches_term PID
catches_term() { [ $((16#$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status") & 0x4000)) -ne 0 ]; }

A_burn_that_is_told_to_stop_reports_what_it_has_done() {
  "$LOCKSTEP_PROGRAM" burn --time 60s --threads 1 --backend thread --ranks 2 --without jobs,speed >said 2>&1 &
  wait_for 20 catches_term $!
  kill -TERM $!
  wait $!
  expect_equal $? 75
  expect_contains "$(cat said)" $'\nlevel 1, '
}

Kubernetes_job_is_a_job_whose_pods_stay_apart() {
  python3 -c 'import yaml' 2>/dev/null || skip "python3-yaml is not installed"
  expect_exit 0 python3 -c '
import sys, yaml
job = yaml.safe_load(open(sys.argv[1]))
pod = job["spec"]["template"]["spec"]
rule = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
labels = job["spec"]["template"]["metadata"]["labels"]
print(job["kind"], job["spec"]["backoffLimit"], pod["restartPolicy"], rule["labelSelector"]["matchLabels"] == labels)
print(" ".join(pod["containers"][0]["command"] + pod["containers"][0]["args"] + ["--help"]))' "$hooks/burn-job.yaml"
  expect_equal "$(head -n 1 <<<"$output")" "Job 0 Never True"
  # shellcheck disable=SC2046  # words
  expect_exit 0 "$LOCKSTEP_PROGRAM" $(tail -n 1 <<<"$output" | cut -d ' ' -f 2-)
}

Json_has_the_verdict_of_each_check() {
  skip_without python3
  expect_exit 0 "$LOCKSTEP_PROGRAM" burn --time 0s --threads 2 --level 3 --backend thread --ranks 2 --without links,speed --json
  expect_equal "$(head -n 2 <<<"$output")" $'{\n  "format": 2,'
  expect_exit 0 python3 -c '
import json, sys
report = json.loads(sys.argv[1])
print(report["exit_code"], report["level"], [rank["threads"] for rank in report["ranks"]],
      {name: check["verdict"] for name, check in report["ranks"][1]["checks"].items()})' "$output"
  expect_equal "$output" "0 3 [2, 2] {'jobs': 'PASS', 'links': 'NOT TESTED', 'speed': 'NOT TESTED'}"
}

node_is_drained() { [[ $(sinfo -h -o '%t %E' 2>/dev/null) == dr* ]]; }

# The real thing: slurmd runs the hook, and the node leaves the partition with the reason.
Slurmd_drains_its_node() {
  local reason
  reason=$(why_no_slurm)
  [ -z "$reason" ] || skip "$reason"
  mkdir slurm
  # slurmd hands on no SLURM_CONF; a cluster's is where scontrol looks for it.
  printf '#!/bin/sh\nSLURM_CONF=%s LOCKSTEP_ALLOW_INJECT=1 LOCKSTEP=%s LOCKSTEP_BURN="%s --inject job@0" exec %s\n' \
    "$PWD/slurm/slurm.conf" "$LOCKSTEP_PROGRAM" "$quick" "$hooks/slurm-burn" >hook
  chmod +x hook
  trap stop_slurm EXIT
  slurm_settings="HealthCheckProgram=$PWD/hook
HealthCheckInterval=1" start_slurm slurm || fail "Slurm does not start"
  wait_for 60 node_is_drained
  expect_contains "$(sinfo -h -o %E)" "lockstep burn: WRONG rank 0 on"
  stop_slurm
}

: "${LOCKSTEP_PROGRAM:?set it to the path of lockstep}"
run_tests "$@"
