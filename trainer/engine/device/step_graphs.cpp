// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A shape of batch is run directly once, captured the second time, and launched in series from then on.
#include "trainer/engine/device/step_graphs.hpp"

#include "common/error.hpp"

#include <algorithm>

namespace lockstep {
namespace {

/// Steps in one launch: a launch costs the host some microseconds, whatever is in it.
constexpr int kSeries = 8;

/// What `queue` queues, as a graph. Where it throws, the capture ends too: until then the thread could not
/// even free memory.
template <typename Queue>
std::unique_ptr<Graph> record(Stream& stream, const Queue& queue) {
  stream.begin_capture();
  try {
    queue();
  } catch (...) {
    try {
      stream.end_capture();
    } catch (const Error&) {  // says that the capture is incomplete
    }
    throw;
  }
  return stream.end_capture();
}

}  // namespace

void StepGraphs::queue(const BatchShare& share, std::int64_t count) {
  if (!enabled_) {
    for (; count > 0; --count) queue_directly(share);
    return;
  }
  Captured* captured = find(share);
  if (captured == nullptr) {
    queue_directly(share);
    captured_.push_back(
        {.share = share, .gradients = {}, .cuts = {}, .update = {}, .step = {}, .series = {}});
    captured = &captured_.back();
    --count;
  }
  if (count > 0 && captured->step == nullptr && captured->gradients.empty()) capture(*captured);
  launch(*captured, count);
}

void StepGraphs::queue_directly(const BatchShare& share) {
  step_.queue_gradients(share);
  if (step_.arena().reducer().on_host()) step_.arena().reducer().reduce(step_.stream());
  step_.queue_update();
}

StepGraphs::Captured* StepGraphs::find(const BatchShare& share) {
  const auto found = std::ranges::find(captured_, share, &Captured::share);
  return found == captured_.end() ? nullptr : &*found;
}

void StepGraphs::capture(Captured& captured) {
  if (!step_.arena().reducer().on_host()) {
    captured.step = capture_steps(captured.share, 1);
    captured.series = capture_steps(captured.share, kSeries);
    return;
  }
  for (std::size_t piece = 0; piece < step_.pieces(); ++piece) {
    captured.gradients.push_back(
        record(step_.stream(), [&] { step_.queue_gradients(captured.share, piece); }));
    captured.cuts.push_back(step_.cut());
  }
  captured.update = record(step_.stream(), [&] { step_.queue_update(); });
}

std::unique_ptr<Graph> StepGraphs::capture_steps(const BatchShare& share, int count) {
  return record(step_.stream(), [&] {
    for (; count > 0; --count) {
      step_.queue_gradients(share);
      step_.queue_update();
    }
  });
}

void StepGraphs::launch(Captured& captured, std::int64_t count) {
  Stream& stream = step_.stream();
  if (!captured.gradients.empty()) {
    for (; count > 0; --count) {
      for (std::size_t piece = 0; piece < captured.gradients.size(); ++piece) {
        if (piece > 0) step_.reduce(captured.cuts[piece - 1]);
        stream.launch(*captured.gradients[piece]);
      }
      step_.arena().reducer().reduce(stream);
      stream.launch(*captured.update);
    }
    return;
  }
  for (; count >= kSeries; count -= kSeries) stream.launch(*captured.series);
  for (; count > 0; --count) stream.launch(*captured.step);
}

}  // namespace lockstep
