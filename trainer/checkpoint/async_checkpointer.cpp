// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One future is all there is to it: it holds the thread, and its error.
#include "trainer/checkpoint/async_checkpointer.hpp"

#include "trainer/checkpoint/checkpoint.hpp"

#include <chrono>
#include <utility>

namespace lockstep {

AsyncCheckpointer::AsyncCheckpointer(Env& env, std::string run_dir, const KeepPolicy& keep,
                                     std::function<void()> before_each)
    : env_(env), run_dir_(std::move(run_dir)), keep_(keep), before_each_(std::move(before_each)) {}

AsyncCheckpointer::~AsyncCheckpointer() {
  if (in_flight_.valid()) in_flight_.wait();
}

void AsyncCheckpointer::save(CheckpointState state) {
  finish();
  start(std::move(state));
}

void AsyncCheckpointer::finish() {
  if (in_flight_.valid()) in_flight_.get();
}

bool AsyncCheckpointer::finished_within(std::chrono::milliseconds limit) const {
  return !in_flight_.valid() || in_flight_.wait_for(limit) == std::future_status::ready;
}

bool AsyncCheckpointer::busy() const {
  return !finished_within(std::chrono::milliseconds(0));
}

void AsyncCheckpointer::start(CheckpointState state) {
  in_flight_ = std::async(std::launch::async, [this, snapshot = std::move(state)] {
    if (before_each_) before_each_();
    known_.good = save_checkpoint(env_, run_dir_, snapshot);
    known_.accuracy[known_.good] = snapshot.facts.test_accuracy;
    prune_checkpoints(env_, run_dir_, keep_, known_);
  });
}

}  // namespace lockstep
