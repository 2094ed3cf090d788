#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Ranks that do not come to MPI_Init or MPI_Finalize: the others name them and end with 71.
# shellcheck source-path=SCRIPTDIR source=../launch/harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/../launch/harness.sh"

Ranks_that_all_come_end_well() {
  expect_exit 0 timeout 60 mpirun --bind-to none -np 3 "$LATE_RANK" nowhere
}

Rank_that_hangs_before_MPI_Init_is_named() {
  expect_exit 71 timeout 60 mpirun --bind-to none -np 3 "$LATE_RANK" init
  expect_contains "$output" "rank 0 of 3 on $(hostname) waited 3 s for the other ranks in MPI_Init: rank 2 (pid "
  expect_contains "$output" "has not come there (it is in state S)"
  expect_lacks "$output" "rank 1 of 3"
}

Rank_that_is_stopped_before_MPI_Init_is_named() {
  expect_exit 71 timeout 60 mpirun --bind-to none -np 2 "$LATE_RANK" init-stopped
  expect_contains "$output" "is stopped: kill -CONT"
}

Rank_that_does_not_come_to_MPI_Finalize_is_named() {
  expect_exit 71 timeout 60 mpirun --bind-to none -np 2 "$LATE_RANK" finalize
  expect_contains "$output" "in MPI_Finalize: rank 1 (pid "
}

run_tests "$@"
