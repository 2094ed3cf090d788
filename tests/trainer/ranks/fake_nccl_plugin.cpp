// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A lockstep_nccl.so without NCCL: it is chosen and loaded, and sums nothing. A copy named libnccl.so.2 tells its
/// version.
#include "comm/nccl/nccl.hpp"
#include "common/error.hpp"

#include <pthread.h>

#include <array>
#include <memory>
#include <string_view>

namespace lockstep {
namespace {

class FakeAllReduce final : public DeviceAllReduce {
 public:
  std::string_view name() const override { return "NCCL of a test"; }
  bool on_stream() const override { return true; }
  void all_reduce_into(Stream&, const std::int64_t*, std::int64_t*, std::size_t) override {}
  void all_reduce_into(Stream&, const float*, float*, std::size_t) override {}
  void check() override {}
};

class FakeLink final : public DeviceLink {
 public:
  explicit FakeLink(LinkEnd end) : end_(end) {}
  std::string_view name() const override { return end_ == LinkEnd::kSender ? "sender" : "receiver"; }
  std::unique_ptr<PendingCollective> start_send(const Event&, std::span<const std::byte>) override {
    return nullptr;
  }
  std::unique_ptr<PendingCollective> start_receive(const Event&, std::span<std::byte>) override {
    return nullptr;
  }

 private:
  LinkEnd end_;
};

}  // namespace
}  // namespace lockstep

LOCKSTEP_PLUGIN_TAKES_SPELLING

/// Not on a thread of the name "refuses".
extern "C" bool lockstep_nccl_shares_gpus() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return std::string_view(name.data()) != "refuses";
}

extern "C" lockstep::DeviceAllReduce* lockstep_make_nccl_all_reduce(lockstep::Communicator&,
                                                                    lockstep::Device&) {
  return std::make_unique<lockstep::FakeAllReduce>().release();
}

extern "C" lockstep::DeviceLink* lockstep_make_nccl_link(lockstep::Communicator&, lockstep::Device&,
                                                         lockstep::LinkEnd end) {
  return std::make_unique<lockstep::FakeLink>(end).release();
}

/// NCCL's function, for version 2.28.9.
extern "C" int ncclGetVersion(int* version) {
  *version = 22809;
  return 0;
}
