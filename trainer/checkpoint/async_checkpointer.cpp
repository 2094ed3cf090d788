// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// One future is all there is to it: it holds the thread, and its error.
#include "trainer/checkpoint/async_checkpointer.hpp"

#include "common/error.hpp"
#include "common/threads.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

#include <chrono>
#include <memory>
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
  const auto snapshot = std::make_shared<const CheckpointState>(std::move(state));
  try {
    in_flight_ = start_async([this, snapshot] { write(*snapshot); });
  } catch (const DeviceError&) {  // no thread is to be had: then training waits for it
    std::packaged_task<void()> here([&] { write(*snapshot); });
    in_flight_ = here.get_future();
    here();
  }
}

void AsyncCheckpointer::write(const CheckpointState& state) {
  if (before_each_) before_each_();
  known_.good = save_checkpoint(env_, run_dir_, state);
  known_.accuracy[known_.good] = state.facts.test_accuracy;
  prune_checkpoints(env_, run_dir_, keep_, known_);
}

}  // namespace lockstep
