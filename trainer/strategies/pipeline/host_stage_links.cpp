// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Copies that are sent, and kept for the next ones.
#include "trainer/strategies/pipeline/host_stage_links.hpp"

#include "common/error.hpp"

#include <algorithm>
#include <utility>

namespace lockstep {

std::vector<float> HostStageLinks::take_buffer() {
  if (free_.empty()) return {};
  std::vector<float> buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

void HostStageLinks::send(int from, int to, std::span<const float> values) {
  look_after();
  std::vector<float> copy = take_buffer();
  copy.assign(values.begin(), values.end());
  if (on_one_rank(from, to)) {
    own_[tag_of(from, to)].push_back(std::move(copy));
    return;
  }
  count_sent(values);
  under_way_.push_back({std::move(copy), nullptr});
  Letter& letter = under_way_.back();
  letter.pending = comm_.point_to_point().start_send(std::as_bytes(std::span(letter.values)), world_rank(to),
                                                     tag_of(from, to));
}

void HostStageLinks::receive(int from, int to, std::span<float> values) {
  if (on_one_rank(from, to)) {
    auto& waiting = own_[tag_of(from, to)];
    LOCKSTEP_CHECK(!waiting.empty() && waiting.front().size() == values.size());
    std::ranges::copy(waiting.front(), values.begin());
    free_.push_back(std::move(waiting.front()));
    waiting.pop_front();
    return;
  }
  const auto pending = comm_.point_to_point().start_receive(std::as_writable_bytes(values), world_rank(from),
                                                            tag_of(from, to));
  comm_.wait(*pending, describe_receive(from, to));
}

void HostStageLinks::look_after() {
  while (!under_way_.empty() && under_way_.front().pending->test()) {
    free_.push_back(std::move(under_way_.front().values));
    under_way_.pop_front();
  }
}

void HostStageLinks::flush() {
  for (Letter& letter : under_way_) comm_.wait(*letter.pending, "messages between stages");
  look_after();
}

}  // namespace lockstep
