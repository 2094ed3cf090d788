// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A rank's end of a group that hands on all calls, for tests to change one of them.
#pragma once

#include "comm/communicator.hpp"

namespace lockstep::test {

class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(Communicator& comm) : comm_(comm) {}

  int rank() const override { return comm_.rank(); }
  int size() const override { return comm_.size(); }
  int local_rank() const override { return comm_.local_rank(); }
  int local_size() const override { return comm_.local_size(); }
  const std::string& host() const override { return comm_.host(); }
  std::string_view backend() const override { return comm_.backend(); }
  std::chrono::duration<double> timeout() const override { return comm_.timeout(); }
  int local_cores() const override { return comm_.local_cores(); }
  AllReduce& host_all_reduce() override { return comm_.host_all_reduce(); }
  PointToPoint& point_to_point() override { return comm_.point_to_point(); }
  std::unique_ptr<Communicator> make_part(int colour) override { return comm_.split(colour); }
  void broadcast(std::span<std::byte> data, int root) override { comm_.broadcast(data, root); }
  std::vector<std::byte> all_gather(std::span<const std::byte> mine) override {
    return comm_.all_gather(mine);
  }
  void barrier() override { comm_.barrier(); }
  void abort(int exit_code) noexcept override { comm_.abort(exit_code); }

 protected:
  Communicator& comm_;
};

}  // namespace lockstep::test
