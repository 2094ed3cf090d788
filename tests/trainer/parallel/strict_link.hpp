// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A link between emulated devices of two ranks, which are threads.
#pragma once

#include "comm/device/device_all_reduce.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep::test {

/// Links and messages of this thread's rank.
struct SeenLinks {
  int links = 0, started = 0, ended = 0, records = 0;
};
inline thread_local SeenLinks seen;
inline std::atomic<bool> holds_messages = false;  ///< on all ranks; none is over

/// Takes one message at a time, as NCCL does. None is over when it is tested for the first time.
class StrictLink final : public DeviceLink {
 public:
  explicit StrictLink(Communicator& ranks) : ranks_(ranks) {
    ++seen.links;
    EXPECT_EQ(ranks.size(), 2);
  }
  std::string_view name() const override { return "strict"; }
  std::unique_ptr<PendingCollective> start_send(const Event& /*behind*/,
                                                std::span<const std::byte> data) override {
    return begin(ranks_.point_to_point().start_send(data, 1 - ranks_.rank(), 0));
  }
  std::unique_ptr<PendingCollective> start_receive(const Event& /*behind*/,
                                                   std::span<std::byte> data) override {
    return begin(ranks_.point_to_point().start_receive(data, 1 - ranks_.rank(), 0));
  }

 private:
  static std::unique_ptr<PendingCollective> begin(const std::shared_ptr<PendingCollective>& message) {
    EXPECT_EQ(seen.started++, seen.ended) << "the GPU takes part in another message";
    return std::make_unique<PendingWork>([message, tests = 0, is_over = false]() mutable {
      if (is_over) return true;
      if (tests++ == 0 || holds_messages || !message->test()) return false;
      ++seen.ended;
      return is_over = true;
    });
  }

  Communicator& ranks_;
};

inline std::unique_ptr<DeviceLink> make_strict_link(Communicator& ranks, Device& /*device*/,
                                                    LinkEnd /*end*/) {
  return std::make_unique<StrictLink>(ranks);
}

}  // namespace lockstep::test
