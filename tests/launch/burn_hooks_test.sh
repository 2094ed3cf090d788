#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# launch/hooks: what cluster managers make of `lockstep burn`, and of its files. The program is the real one, failing on
# purpose; scontrol and NHC are stand-ins, and where Slurm is installed a real slurmd drains its node. Needs $LOCKSTEP_PROGRAM.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
# shellcheck source-path=SCRIPTDIR source=slurm_here.sh
source "$(dirname "${BASH_SOURCE[0]}")/slurm_here.sh"
hooks=$repo/launch/hooks

# burn_with OPTIONS: of a short burn of memory alone.
quick="--time 0s --memory 8MiB --without products,jobs"
make_world() {
  mkdir -p bin
  printf '#!/bin/sh\nprintf "%%s\\n" "$@" >>calls\n' >bin/scontrol
  chmod +x bin/scontrol
  export PATH=$PWD/bin:$PATH SLURMD_NODENAME=node7 LOCKSTEP=$LOCKSTEP_PROGRAM LOCKSTEP_BURN=$quick LOCKSTEP_ALLOW_INJECT=1
}

Slurm_keeps_a_good_node() {
  make_world
  expect_exit 0 "$hooks/slurm-burn"
  expect_equal "$output" "node7: burn: PASS 1 rank on 1 host"
  expect_no_file calls
}

Slurm_drains_a_node_whose_memory_is_wrong_with_the_reason() {
  make_world
  LOCKSTEP_BURN="$quick --inject memory-bit@0" expect_exit 1 "$hooks/slurm-burn"
  expect_contains "$(cat calls)" $'update\nnodename=node7\nstate=drain\nreason=lockstep burn: WRONG rank 0 on '
  expect_contains "$(cat calls)" ": memory: 1 word read back wrong"
}

Slurm_burn_takes_only_names_and_exit_codes_from_its_environment() {
  make_world
  # shellcheck disable=SC2016  # it must not be carried out
  LOCKSTEP_BURN_DRAIN='1 x[$(touch executed)0]' expect_exit 2 "$hooks/slurm-burn"
  expect_contains "$output" "LOCKSTEP_BURN_DRAIN holds no exit code"
  LOCKSTEP_BURN_DRAIN='*' expect_exit 2 "$hooks/slurm-burn"
  SLURMD_NODENAME='node7 state=down' expect_exit 2 "$hooks/slurm-burn"
  expect_contains "$output" "SLURMD_NODENAME is no name of a node"
  expect_no_file executed
  expect_no_file calls
}

# A burn that cannot start says nothing good of the node.
Slurm_drains_a_node_that_cannot_be_tested() {
  make_world
  LOCKSTEP=$PWD/nosuch expect_exit 1 "$hooks/slurm-burn"
  expect_contains "$(cat calls)" "NOT TESTED"
  rm calls
  LOCKSTEP_BURN="--device cuda:99" expect_exit 1 "$hooks/slurm-burn"
  expect_contains "$(cat calls)" "state=drain"
}

Slurm_drains_by_the_exit_codes_that_it_is_told() {
  make_world
  LOCKSTEP_BURN_DRAIN="69" LOCKSTEP_BURN="$quick --inject memory-bit@0" expect_exit 0 "$hooks/slurm-burn"
  expect_no_file calls
}

Nhc_offlines_a_bad_node_and_no_other() {
  make_world
  # shellcheck disable=SC2317  # called by the check
  die() { echo "die $*"; }
  # shellcheck source=/dev/null
  source "$hooks/lockstep.nhc"
  # shellcheck disable=SC2086  # options are words
  expect_exit 0 check_lockstep_burn $quick
  # shellcheck disable=SC2086
  expect_exit 1 check_lockstep_burn $quick --inject stuck-bit@0
  expect_contains "$output" "die 1 check_lockstep_burn: burn: WRONG rank 0"
  LOCKSTEP=$PWD/nosuch expect_exit 1 check_lockstep_burn
  expect_contains "$output" "NOT TESTED"
}

# With a stand-in for ReFrame: its patterns fit what the program prints.
Reframe_check_reads_the_verdict() {
  skip_without python3
  mkdir -p reframe/utility
  cat >reframe/__init__.py <<'PY'
import builtins
def keep(*_, **__): return lambda thing: thing
builtins.variable = lambda kind, value: value
builtins.run_before = builtins.performance_function = keep
builtins.sanity_function = lambda thing: thing
simple_test = lambda thing: thing
class RunOnlyRegressionTest: stdout = "said"
PY
  touch reframe/utility/__init__.py
  cat >reframe/utility/sanity.py <<'PY'
import re
def assert_found(pattern, file): return re.search(pattern, open(file).read(), re.M) is not None
def extractsingle(pattern, file, group, kind): return kind(re.search(pattern, open(file).read(), re.M).group(group))
PY
  cat >check.py <<'PY'
import sys
sys.path[:0] = [".", sys.argv[1]]
import reframe_burn
test = reframe_burn.LockstepBurn()
test.set_command()
print(test.executable_opts, test.every_rank_passes(), 0 < test.share_of_peak() <= 110)
PY
  COLUMNS=1000 "$LOCKSTEP_PROGRAM" burn --time 0s --memory 8MiB --without jobs >said
  expect_exit 0 env PYTHONDONTWRITEBYTECODE=1 python3 check.py "$hooks"
  expect_equal "$output" "['burn', '--level 1'] True True"
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

# shellcheck disable=SC2086  # options are words
Files_are_what_their_readers_expect() {
  skip_without python3
  expect_exit 0 "$LOCKSTEP_PROGRAM" burn $quick --json --prometheus burn.prom --junit burn.xml
  expect_exit 0 python3 -c '
import json, sys, re, xml.etree.ElementTree as tree
suite = tree.parse("burn.xml").getroot()
print(suite.get("tests"), suite.get("failures"), sorted(c.get("name") for c in suite if not len(c)))
print(all(re.fullmatch(r"#.*|[a-z_]+({.*})? [0-9.]+", line) for line in open("burn.prom").read().splitlines()))
report = json.loads(sys.argv[1])
print(report["exit_code"], report["ranks"][0]["checks"]["jobs"]["verdict"])' "$output"
  expect_equal "$output" $'6 0 [\'memory\']\nTrue\n0 NOT TESTED'
}

# shellcheck disable=SC2086
What_cannot_be_written_is_said_behind_the_report() {
  expect_exit 74 "$LOCKSTEP_PROGRAM" burn $quick --junit nowhere/burn.xml
  expect_contains "$output" "burn: PASS 1 rank on 1 host"
  expect_contains "$output" nowhere/burn.xml
}

node_is_drained() { [[ $(sinfo -h -o '%t %E' 2>/dev/null) == dr* ]]; }

# The real thing: slurmd runs the hook, and the node leaves the partition with the reason.
Slurmd_drains_its_node() {
  local reason
  reason=$(why_no_slurm)
  [ -z "$reason" ] || skip "$reason"
  mkdir slurm
  # slurmd hands on no SLURM_CONF; a cluster's is where scontrol looks for it.
  printf '#!/bin/sh\nSLURM_CONF=%s LOCKSTEP_ALLOW_INJECT=1 LOCKSTEP=%s LOCKSTEP_BURN="%s --inject memory-bit@0" exec %s\n' \
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
