// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Copies that are sent, and kept for the next ones.
#include "trainer/strategies/pipeline/stage_links.hpp"

#include "common/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

/// Between two neighbours there is one link in each direction.
int tag_of(int from, int to) {
  return 2 * std::min(from, to) + (from < to ? 0 : 1);
}

}  // namespace

StageLinks::StageLinks(const StagePlan& plan, Communicator& comm)
    : plan_(plan), comm_(comm), first_rank_(comm.rank() / plan.width * plan.width) {}

std::vector<float> StageLinks::take_buffer() {
  if (free_.empty()) return {};
  std::vector<float> buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

void StageLinks::send(int from, int to, std::span<const float> values) {
  look_after();
  std::vector<float> copy = take_buffer();
  copy.assign(values.begin(), values.end());
  if (plan_.rank_of(from) == plan_.rank_of(to)) {
    own_[tag_of(from, to)].push_back(std::move(copy));
    return;
  }
  bytes_sent_ += static_cast<std::int64_t>(values.size_bytes());
  under_way_.push_back({std::move(copy), nullptr});
  Letter& letter = under_way_.back();
  letter.pending = comm_.point_to_point().start_send(std::as_bytes(std::span(letter.values)), world_rank(to),
                                                     tag_of(from, to));
}

void StageLinks::receive(int from, int to, std::span<float> values) {
  if (plan_.rank_of(from) == plan_.rank_of(to)) {
    auto& waiting = own_[tag_of(from, to)];
    LOCKSTEP_CHECK(!waiting.empty() && waiting.front().size() == values.size());
    std::ranges::copy(waiting.front(), values.begin());
    free_.push_back(std::move(waiting.front()));
    waiting.pop_front();
    return;
  }
  const auto pending = comm_.point_to_point().start_receive(std::as_writable_bytes(values), world_rank(from),
                                                            tag_of(from, to));
  comm_.wait(*pending,
             fmt::format("{}, which takes {} from {} on rank {}", plan_.describe(to),
                         from < to ? "activations" : "gradients", plan_.describe(from), world_rank(from)));
}

void StageLinks::look_after() {
  while (!under_way_.empty() && under_way_.front().pending->test()) {
    free_.push_back(std::move(under_way_.front().values));
    under_way_.pop_front();
  }
}

void StageLinks::flush() {
  for (Letter& letter : under_way_) comm_.wait(*letter.pending, "messages between stages");
  look_after();
}

}  // namespace lockstep
