// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What is printed has travelled: every rank sends what it holds to rank 0.
#include "comm/agreement.hpp"
#include "comm/collectives.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/tools/bench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

using Numbers = std::vector<float>;

/// Where the numbers are when they travel.
class DemoCollectives {
 public:
  virtual ~DemoCollectives() = default;
  virtual void replicate(Numbers& data) = 0;
  virtual void all_reduce(Numbers& data) = 0;
  /// From rank 0.
  virtual Numbers scatter(const Numbers& whole, const std::vector<std::size_t>& counts) = 0;
  /// To rank 0; nothing on the others.
  virtual Numbers gather(const Numbers& mine, const std::vector<std::size_t>& counts) = 0;
};

class OnHost final : public DemoCollectives {
 public:
  explicit OnHost(Communicator& comm) : comm_(comm) {}

  void replicate(Numbers& data) override { lockstep::replicate(comm_, std::span(data), 0); }
  void all_reduce(Numbers& data) override { comm_.all_reduce(std::span(data)); }
  Numbers scatter(const Numbers& whole, const std::vector<std::size_t>& counts) override {
    return lockstep::scatter(comm_, std::span<const float>(whole), counts, 0);
  }
  Numbers gather(const Numbers& mine, const std::vector<std::size_t>& counts) override {
    return gather_to(comm_, std::span<const float>(mine), counts, 0);
  }

 private:
  Communicator& comm_;
};

class OnDevice final : public DemoCollectives {
 public:
  OnDevice(Communicator& comm, DeviceSide& side)
      : comm_(comm),
        side_(side),
        collectives_(make_collectives(comm, side)),
        stream_(side.device->make_stream()),
        done_(side.device->make_event()) {}

  void replicate(Numbers& data) override {
    const auto there = put(data);
    collectives_->replicate(*stream_, bytes_of(there), there.bytes(), 0);
    data = fetch(there);
  }
  void all_reduce(Numbers& data) override {
    const auto there = put(data);
    side_.setup.all_reduce->all_reduce(*stream_, there.data(), there.size());
    data = fetch(there);
  }
  Numbers scatter(const Numbers& whole, const std::vector<std::size_t>& counts) override {
    const auto there = put(whole);
    const DeviceBuffer<float> mine(*side_.device, counts[static_cast<std::size_t>(comm_.rank())]);
    collectives_->scatter(*stream_, bytes_of(there), lockstep::bytes_of<float>(counts), bytes_of(mine), 0);
    return fetch(mine);
  }
  Numbers gather(const Numbers& mine, const std::vector<std::size_t>& counts) override {
    const auto there = put(mine);
    const std::size_t all = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    const DeviceBuffer<float> whole(*side_.device, comm_.rank() == 0 ? all : 0);
    collectives_->gather_to(*stream_, bytes_of(there), lockstep::bytes_of<float>(counts), bytes_of(whole), 0);
    return fetch(whole);
  }

 private:
  static std::byte* bytes_of(const DeviceBuffer<float>& buffer) {
    return reinterpret_cast<std::byte*>(buffer.data());
  }
  DeviceBuffer<float> put(const Numbers& data) {
    DeviceBuffer<float> there(*side_.device, data.size());
    if (!data.empty()) stream_->copy_to_device(there.data(), data.data(), there.bytes());
    wait();
    return there;
  }
  Numbers fetch(const DeviceBuffer<float>& there) {
    wait();
    Numbers data(there.size());
    if (!data.empty()) stream_->copy_to_host(data.data(), there.data(), there.bytes());
    wait();
    return data;
  }
  void wait() {
    stream_->record(*done_);
    wait_for(*done_, comm_, "the numbers on the GPU", side_.setup.all_reduce.get());
  }

  Communicator& comm_;
  DeviceSide& side_;
  std::unique_ptr<DeviceCollectives> collectives_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> done_;
};

/// "[[0, 1], [2, 3]]": rows of so many numbers.
std::string matrix_text(const Numbers& numbers, std::size_t columns) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < numbers.size(); i += columns) {
    const auto row = std::span(numbers).subspan(i, std::min(columns, numbers.size() - i));
    rows.push_back(fmt::format("[{}]", fmt::join(row, ", ")));
  }
  return fmt::format("[{}]", fmt::join(rows, ", "));
}

/// Rank 0 prints a line for each rank.
void print_of_ranks(Communicator& comm, const Numbers& mine, std::size_t columns) {
  const auto texts = gather_text(comm, matrix_text(mine, columns));
  for (int rank = 0; comm.rank() == 0 && rank < comm.size(); ++rank)
    print("  rank {}: {}\n", rank, texts[static_cast<std::size_t>(rank)]);
}

void title(const Communicator& comm, const std::string& text) {
  if (comm.rank() == 0) print("{}\n", text);
}

void show_get_params(Communicator& comm, DemoCollectives& place) {
  Numbers bias(4, comm.rank() == 0 ? 0.5F : 0.0F);
  title(comm, "get_params: rank 0 has made b1, the others have only room for it");
  print_of_ranks(comm, bias, 4);
  place.replicate(bias);
  title(comm, "after replicate:");
  print_of_ranks(comm, bias, 4);
}

void show_sum(Communicator& comm, DemoCollectives& place) {
  Numbers data(2, static_cast<float>(comm.rank() + 1));
  title(comm, "\nbefore allreduce:");
  print_of_ranks(comm, data, 2);
  place.all_reduce(data);
  title(comm, "after allreduce:");
  print_of_ranks(comm, data, 2);
}

/// Whole rows, cut as torch.chunk cuts them: the last ranks may get none.
std::vector<std::size_t> rows_of_ranks(std::size_t rows, int ranks, std::size_t columns) {
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t piece = (rows + n - 1) / n;
  std::vector<std::size_t> counts(n);
  for (std::size_t rank = 0; rank < n; ++rank)
    counts[rank] = (std::min(rows, (rank + 1) * piece) - std::min(rows, rank * piece)) * columns;
  return counts;
}

void show_split(Communicator& comm, DemoCollectives& place) {
  constexpr std::size_t kRows = 4, kColumns = 5;
  Numbers data(comm.rank() == 0 ? kRows * kColumns : 0);
  std::iota(data.begin(), data.end(), 0.0F);
  title(comm, fmt::format("\ninput: {}", matrix_text(data, kColumns)));
  const auto counts = rows_of_ranks(kRows, comm.size(), kColumns);
  Numbers mine = place.scatter(data, counts);
  title(comm, fmt::format("scattered over {} on {}:", counted(comm.size(), "rank"), comm.host()));
  print_of_ranks(comm, mine, kColumns);
  parallel_apply(comm, [&] {
    for (float& number : mine) number *= number;
  });
  title(comm, "after parallel_apply, in which each rank squares what it has:");
  print_of_ranks(comm, mine, kColumns);
  const Numbers whole = place.gather(mine, counts);
  title(comm, fmt::format("gathered on rank 0: {}", matrix_text(whole, kColumns)));
}

void show(Communicator& comm, DemoCollectives& place) {
  show_get_params(comm, place);
  show_sum(comm, place);
  show_split(comm, place);
}

}  // namespace

void show_allreduce(Communicator& comm, const AllreduceOptions& options, const Platform& gpus) {
  const Platform* platform = platform_of(options, gpus);
  if (platform == nullptr) {
    require_host_backend(comm, options);
    OnHost place(comm);
    return show(comm, place);
  }
  run_leaking_on_peer_loss(take_device(comm, options, *platform), [&](DeviceSide& side) {
    title(comm, fmt::format("in the memory of {}, over {}", side.device->properties().name,
                            side.setup.description));
    OnDevice place(comm, side);
    show(comm, place);
  });
}

}  // namespace lockstep::bench
