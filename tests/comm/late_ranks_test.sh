#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Ranks that do not come to MPI_Init or MPI_Finalize: the others name them and end with 71.
# shellcheck source-path=SCRIPTDIR source=../launch/harness.sh
source "$(dirname "${BASH_SOURCE[0]}")/../launch/harness.sh"

Ranks_that_hang_or_are_stopped_before_MPI_Init_are_named() {
  expect_exit 71 timeout 60 mpirun --bind-to none -np 4 "$LATE_RANK" init
  expect_contains "$output" "rank 0 of 4 on $(hostname) waited 3 s for the other ranks in MPI_Init: rank 2 (pid "
  expect_contains "$output" "is stopped: kill -CONT"
  expect_contains "$output" "; rank 3 (pid "
  expect_contains "$output" "has not come there (it is in state S)"
  expect_lacks "$output" "rank 1 of 4"
}

Rank_that_does_not_come_to_MPI_Finalize_is_named() {
  expect_exit 71 timeout 60 mpirun --bind-to none -np 2 "$LATE_RANK" finalize
  expect_contains "$output" "in MPI_Finalize: rank 1 (pid "
  expect_lacks "$output" "in MPI_Init"
}

run_tests "$@"
