// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Burns whose ranks are threads of the test, and ends of their group that it looks into.
#pragma once

#include "comm/thread/thread_ranks.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/burn/burn.hpp"

namespace lockstep::burn {

/// One round of these checks alone.
inline BurnOptions options_for(const char* device, const BurnFault& fault,
                               const std::vector<std::string>& wanted, int threads = 1) {
  BurnOptions options;
  options.level = 3;
  options.seconds = 0;
  options.threads = threads;
  options.parallel.device = device;
  options.shows_progress = false;
  options.fault = fault;
  for (const std::string_view check : kChecks)
    if (std::ranges::find(wanted, check) == wanted.end()) options.without.emplace_back(check);
  return options;
}

inline BurnReport burn_with(int ranks, const BurnOptions& options) {
  BurnReport report;
  run_thread_ranks(ranks, [&](Communicator& comm) {
    BurnReport mine = run_burn(comm, options);
    if (comm.rank() == 0) report = std::move(mine);
  });
  return report;
}

inline BurnReport burn_on(int ranks, const char* device, const BurnFault& fault,
                          const std::vector<std::string>& wanted, int threads = 1) {
  return burn_with(ranks, options_for(device, fault, wanted, threads));
}

/// A rank's end of a group, on a host of its own that has more ranks than cores. It hands on all calls and shows them.
class OpenEnd final : public test::ForwardingCommunicator, private AllReduce, private PointToPoint {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  explicit OpenEnd(std::unique_ptr<Communicator> part)
      : ForwardingCommunicator(*part), part_(std::move(part)) {}
  const std::string& host() const override { return host_; }
  std::string library() const override { return "a library"; }
  int local_cores() const override { return local_size() - 1; }
  AllReduce& host_all_reduce() override { return *this; }
  PointToPoint& point_to_point() override { return *this; }
  void broadcast(std::span<std::byte> data, int root) override {
    comm_.broadcast(data, root);
    after_broadcast(data);
  }

  std::function<void(std::span<std::byte>)> after_broadcast = [](auto) {};
  std::function<void(std::span<const std::int64_t>)> before_sum = [](auto) {};
  std::function<void(std::span<std::int64_t>)> after_sum = [](auto) {};
  std::function<void(std::span<const std::byte>)> before_send = [](auto) {};

 private:
  std::unique_ptr<PendingCollective> start(std::span<const std::int64_t> mine,
                                           std::span<std::int64_t> sum) override {
    before_sum(mine);
    std::shared_ptr<PendingCollective> pending = comm_.host_all_reduce().start(mine, sum);
    return std::make_unique<PendingWork>([this, pending, sum] {
      if (!pending->test()) return false;
      after_sum(sum);
      return true;
    });
  }
  std::unique_ptr<PendingCollective> start(std::span<float> data) override {
    return comm_.host_all_reduce().start(data);
  }
  std::unique_ptr<PendingCollective> start_send(std::span<const std::byte> data, int to, int tag) override {
    before_send(data);
    return comm_.point_to_point().start_send(data, to, tag);
  }
  std::unique_ptr<PendingCollective> start_receive(std::span<std::byte> data, int from, int tag) override {
    return comm_.point_to_point().start_receive(data, from, tag);
  }

  std::unique_ptr<Communicator> part_;  ///< may be null: it is another's
  std::string host_ = fmt::format("node{}", rank());
};

}  // namespace lockstep::burn
