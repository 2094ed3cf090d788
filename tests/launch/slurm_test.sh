#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Training under a real Slurm, which this script starts and ends: srun, sbatch with launch/slurm/train.sbatch, scancel, requeue.
# Skipped, with the reason, where Slurm is not installed. Needs $LOCKSTEP_PROGRAM.
# shellcheck source-path=SCRIPTDIR source=harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
# shellcheck source-path=SCRIPTDIR source=slurm_here.sh
source "$(dirname "${BASH_SOURCE[0]}")/slurm_here.sh"

# submit LAUNCHER: the job, in the background; its number in $job.
submit() {
  job=$(LAUNCHER=$1 PROGRAM=$LOCKSTEP_PROGRAM sbatch --parsable --output=said --ntasks-per-node=2 --time=10 "$repo/launch/slurm/train.sbatch" job.yaml)
  wait_for 30 grep -qs '"step":20,' run/metrics.jsonl
}

job_is() { [ "$(squeue -h -j "$job" -o %T 2>/dev/null)" = "$1" ]; }
saved_step() { basename "$(find run/checkpoints -name 'step-*' | sort | tail -n 1)" | sed 's/step-0*//'; }

# expect_saved: the stop left a checkpoint, and five steps more end as in an undisturbed run.
expect_saved() {
  local last undisturbed resumed
  expect_contains "$(cat run/log/rank-0.log)" "stopped on request at step"  # mpirun, told to end, no longer hands on what ranks say
  last=$(($(saved_step) + 5))
  resumed=$("$LOCKSTEP_PROGRAM" train job.yaml train.max_steps=$last | tail -n 1)
  undisturbed=$("$LOCKSTEP_PROGRAM" train job.yaml run.dir=calm train.max_steps=$last | tail -n 1)
  expect_contains "$undisturbed" "weights sha256"
  expect_equal "$resumed" "$undisturbed"
}

Slurm_starts_ranks_with_srun_that_train_to_the_same_weights() {
  write_job 0
  expect_says 0 "3 ranks" srun --mpi=pmix -n 3 "$LOCKSTEP_PROGRAM" train job.yaml train.max_steps=25
  expect_equal "$(tail -n 1 <<<"$output")" "$("$LOCKSTEP_PROGRAM" train job.yaml run.dir=calm train.max_steps=25 | tail -n 1)"
}

Slurm_scancel_saves_under_srun_and_mpirun() {
  local launcher
  for launcher in mpirun srun; do
    rm -rf run calm said
    write_job 0 && submit "$launcher"
    scancel "$job"
    wait_for 40 job_is ''
    expect_saved
  done
  expect_equal "$(grep -c 'SIGTERM received' said)" 1
}

Slurm_warning_saves_requeues_and_goes_on() {
  write_job 0 && submit srun
  scancel --batch --signal=USR1 "$job"
  wait_for 40 grep -q "queueing job $job again" said
  wait_for 40 job_is PENDING
  scontrol update JobId="$job" StartTime=now
  wait_for 40 grep -q 'going on from step' said
  scancel "$job"
  wait_for 40 job_is ''
  expect_saved
}

# Three runs that differ in their seed, side by side.
Slurm_array_trains_a_run_a_task() {
  local task
  write_job 0
  job=$(PROGRAM=$LOCKSTEP_PROGRAM LAUNCHER=srun sbatch --parsable --array=1-3 --output=said-%a --ntasks-per-node=2 --time=10 "$repo/launch/slurm/train.sbatch" job.yaml train.max_steps=15 train.seed=%a run.dir=run-%a)
  wait_for 60 job_is ''
  for task in 1 2 3; do
    expect_equal "$(tail -n 1 "said-$task")" "$("$LOCKSTEP_PROGRAM" train job.yaml run.dir="calm-$task" train.max_steps=15 train.seed="$task" | tail -n 1)"
  done
}

Slurm_starts_mpirun_in_a_job_that_trains_to_the_same_weights() {
  write_job 0
  job=$(PROGRAM=$LOCKSTEP_PROGRAM LAUNCHER=mpirun sbatch --parsable --output=said --ntasks-per-node=3 --time=10 "$repo/launch/slurm/train.sbatch" job.yaml train.max_steps=15)
  wait_for 60 job_is ''
  expect_contains "$(cat said)" "3 ranks"
  expect_equal "$(tail -n 1 said)" "$("$LOCKSTEP_PROGRAM" train job.yaml run.dir=calm train.max_steps=15 | tail -n 1)"
}

Slurm_ranks_without_pmix_are_told_how_to_start() {
  write_job 0
  expect_says 69 "srun --mpi=pmix" srun --mpi=none -n 2 "$LOCKSTEP_PROGRAM" train job.yaml
  expect_lacks "$output" "PMI support"  # Open MPI's page about it
}

Slurm_hands_on_exit_codes() {
  write_job 0
  expect_exit 2 srun --mpi=pmix -n 2 "$LOCKSTEP_PROGRAM" train job.yaml data.global_batch=0
  expect_exit 75 srun --mpi=pmix -n 2 "$LOCKSTEP_PROGRAM" train job.yaml run.max_seconds=0.1
  expect_exit 2 srun -n 2 "$LOCKSTEP_PROGRAM" train job.yaml parallel.backend=thread
}

# A rank that stays away is named, as under mpirun. srun returns the highest code: here 143 of the one that it ended.
Slurm_rank_that_is_another_program_is_named() {
  write_job 0
  printf '0 %s train job.yaml parallel.timeout_seconds=1\n1 sleep 60\n' "$LOCKSTEP_PROGRAM" >programs
  expect_says 143 "rank 1 (pid" timeout 50 srun --mpi=pmix --kill-on-bad-exit=1 -n 2 --multi-prog programs
  expect_contains "$output" "is another program: "
}

reason=$(why_no_slurm)
[ -z "$reason" ] || skip "$reason"
: "${LOCKSTEP_PROGRAM:?set it to the path of lockstep}"
mpi_settings
slurm_files=$(mktemp -d)
trap 'stop_slurm; rm -rf "$slurm_files"' EXIT
start_slurm "$slurm_files" || exit 1
run_tests "$@"
