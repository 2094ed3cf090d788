// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// `bench allreduce` where all-reduces go wrong. False sums are counted, and when another rank is lost all
/// that lies on a GPU stays, since freeing would wait for an all-reduce that never ends.
#include "comm/thread/thread_ranks.hpp"
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "common/machine.hpp"
#include "kernels/device_ops.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/leak_check.hpp"
#include "tests/support/prelude.hpp"
#include "trainer/tools/allreduce_bench.hpp"

#include <unistd.h>

namespace lockstep::bench {

namespace {

/// The fourth element of every sum that has one comes out too large by 1, on this rank alone.
class FalseSums final : public AllReduce {
 public:
  explicit FalseSums(AllReduce& sums) : sums_(sums) {}
  std::unique_ptr<PendingCollective> start(std::span<const std::int64_t> mine,
                                           std::span<std::int64_t> sum) override {
    return spoilt(sums_.start(mine, sum), sum);
  }
  std::unique_ptr<PendingCollective> start(std::span<float> data) override {
    return spoilt(sums_.start(data), data);
  }

  int false_sums = 0;

 private:
  template <typename T>
  std::unique_ptr<PendingCollective> spoilt(std::shared_ptr<PendingCollective> sum, std::span<T> data) {
    if (data.size() > 3) ++false_sums;
    return std::make_unique<PendingWork>([sum, data, is_done = false]() mutable {
      if (is_done || !sum->test()) return is_done;
      if (data.size() > 3) data[3] += 1;
      return is_done = true;
    });
  }

  AllReduce& sums_;
};

/// A rank's end of a group: it loses another rank at its n-th barrier, or its sums are false.
class LosingCommunicator final : public test::ForwardingCommunicator {
 public:
  LosingCommunicator(Communicator& comm, int barriers)
      : ForwardingCommunicator(comm), barriers_left_(barriers) {}
  LosingCommunicator(Communicator& comm, AllReduce& sums)
      : ForwardingCommunicator(comm), barriers_left_(-1), sums_(&sums) {}

  AllReduce& host_all_reduce() override { return sums_ != nullptr ? *sums_ : comm_.host_all_reduce(); }
  void barrier() override {
    if (--barriers_left_ == 0) throw PeerLostError("a rank died");
    comm_.barrier();
  }

 private:
  int barriers_left_;
  AllReduce* sums_ = nullptr;
};

struct Memory {
  int allocated = 0, freed = 0;
};

/// The emulated device, under the name of a GPU, that counts.
class CountingDevice final : public Device {
 public:
  explicit CountingDevice(Memory& memory) : memory_(memory) {}

  const DeviceProperties& properties() const override { return device_->properties(); }
  std::string_view kind() const override { return "cuda"; }
  void* allocate(std::size_t bytes) override {
    ++memory_.allocated;
    return device_->allocate(bytes);
  }
  void free(void* memory) noexcept override {
    ++memory_.freed;
    device_->free(memory);
  }
  void* allocate_pinned(std::size_t bytes) override {
    ++memory_.allocated;
    return device_->allocate_pinned(bytes);
  }
  void free_pinned(void* memory) noexcept override {
    ++memory_.freed;
    device_->free_pinned(memory);
  }
  std::unique_ptr<Stream> make_stream(Priority priority) override { return device_->make_stream(priority); }
  std::unique_ptr<Event> make_event(Timing timing) override { return device_->make_event(timing); }

 private:
  Memory& memory_;
  std::unique_ptr<Device> device_ = emulated::platform().make_device(0);
};

class CountingPlatform final : public Platform {
 public:
  explicit CountingPlatform(Memory& memory) : memory_(memory) {}

  std::vector<DeviceProperties> devices() const override { return emulated::platform().devices(); }
  std::vector<std::vector<PeerLink>> links() const override { return {}; }
  std::string versions() const override { return ""; }
  std::unique_ptr<Device> make_device(int /*index*/) const override {
    return std::make_unique<CountingDevice>(memory_);
  }
  std::unique_ptr<DeviceOps> make_ops(Device& device) const override {
    return emulated::platform().make_ops(device);
  }

 private:
  Memory& memory_;
};

constexpr int kNever = -1;

/// Memory allocated and freed by then: at the loss, or at the end.
Memory memory_after(int lost_at_barrier) {
  Memory memory;
  const CountingPlatform gpus(memory);
  AllreduceOptions options;
  options.max_bytes = options.min_bytes, options.iterations = 2, options.warmup = 1, options.device = "cuda";
  run_thread_ranks(1, [&](Communicator& comm) {
    const lockstep::testing::LeaksAllowed leaks_allowed;
    LosingCommunicator losing(comm, lost_at_barrier);
    try {
      bench_allreduce(losing, options, gpus);
      EXPECT_EQ(lost_at_barrier, kNever);
    } catch (const PeerLostError& error) {
      EXPECT_STREQ(error.what(), "a rank died");
    }
  });
  return memory;
}

/// One element of one rank: int64 and fp32, out of place and in place, before it is timed and after.
TEST(AllreduceBenchTest, EveryWrongElementOfAnyRankIsCountedOnAllRanks) {
  AllreduceOptions options;
  options.max_bytes = options.min_bytes = 1024, options.iterations = 2, options.warmup = 0;
  ::testing::internal::CaptureStdout();
  std::array<int, 2> exit_codes{};
  run_thread_ranks(2, [&](Communicator& comm) {
    FalseSums false_sums(comm.host_all_reduce());
    LosingCommunicator falsely(comm, false_sums);
    exit_codes[static_cast<std::size_t>(comm.rank())] =
        bench_allreduce(comm.rank() == 1 ? falsely : comm, options);
    EXPECT_EQ(false_sums.false_sums, comm.rank() == 1 ? 16 : 0) << "two that are timed, too";
  });
  const std::string out = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(exit_codes, (std::array<int, 2>{70, 70}));
  EXPECT_NE(out.find("# Out of bounds values : 8 FAILED\n"), std::string::npos) << out;
}

TEST(AllreduceBenchTest, EachSizeHasARowOfEachType) {
  AllreduceOptions options;
  options.min_bytes = 1024, options.max_bytes = 16384, options.factor = 4;
  options.iterations = 1, options.warmup = 0, options.backend = "thread";
  const auto printed = [&](const char* device) {
    options.device = device;
    ::testing::internal::CaptureStdout();
    run_thread_ranks(2, [&](Communicator& comm) { EXPECT_EQ(bench_allreduce(comm, options), 0); });
    return ::testing::internal::GetCapturedStdout();
  };
  for (const auto& [device, path] :
       {std::pair("cpu", "thread"), {"emulated", "thread through pinned memory"}}) {
    options.json = false;
    const std::string out = printed(device);
    EXPECT_TRUE(
        out.starts_with(fmt::format("# all-reduce (sum) over {}, 2 ranks\n# 1024 to 16384 bytes, times 4 "
                                    "each; median of 1 after 0 to warm up\n# rank   0 pid {} on {}, ",
                                    path, getpid(), host_name())))
        << out;
    EXPECT_NE(out.find("\n# rank   1 pid "), std::string::npos) << out;
    EXPECT_NE(out.find("\n#\n" + AllreduceTable::head().front() + "\n"), std::string::npos) << out;
    std::size_t at = 0;
    for (const char* row :
         {"\n     1024       128 int64 ", "\n     1024       256 float ", "\n     4096       512 int64 ",
          "\n     4096      1024 float ", "\n    16384      2048 int64 ", "\n    16384      4096 float ",
          "\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : "}) {
      at = out.find(row, at);
      ASSERT_NE(at, std::string::npos) << row << out;
    }
    options.json = true;
    const auto report = parse_json(printed(device));
    EXPECT_EQ(report["path"], path);
    EXPECT_EQ(report["ranks"], 2);
    EXPECT_EQ(report["rows"].size(), 6U);
  }
}

TEST(AllreduceBenchTest, SizesAndRepetitionsAreThoseOfTheHelp) {
  const AllreduceOptions usual;
  EXPECT_EQ(std::tuple(usual.min_bytes, usual.max_bytes, usual.factor, usual.iterations, usual.warmup),
            std::tuple(1024U, 16U << 20, 2U, 30, 5));
}

TEST(AllreduceBenchTest, BuffersAreOnADeviceWhereTheOptionsSayIt) {
  const Platform& gpus = cuda::platform();
  const auto platform_for = [&](const char* device, const char* backend) {
    AllreduceOptions options;
    options.device = device, options.backend = backend;
    return platform_of(options, gpus);
  };
  EXPECT_EQ(platform_for("auto", "auto"), nullptr);
  EXPECT_EQ(platform_for("auto", "nccl"), &gpus);
  EXPECT_EQ(platform_for("cuda", "mpi"), &gpus);
  EXPECT_EQ(platform_for("emulated", "mpi"), &emulated::platform());
  EXPECT_EQ(platform_for("cpu", "nccl"), nullptr);
}

/// Three ranks, of which the last gets no row of four.
TEST(AllreduceDemoTest, EveryRanksNumbersAreShownBeforeAndAfter) {
  ::testing::internal::CaptureStdout();
  run_thread_ranks(3, [](Communicator& comm) { show_allreduce(comm, {}); });
  const std::string half = "  rank 0: [[0.5, 0.5, 0.5, 0.5]]\n";
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "get_params: rank 0 has made b1, the others have only room for it\n" + half +
                "  rank 1: [[0, 0, 0, 0]]\n  rank 2: [[0, 0, 0, 0]]\n"
                "after replicate:\n" +
                half + "  rank 1: [[0.5, 0.5, 0.5, 0.5]]\n  rank 2: [[0.5, 0.5, 0.5, 0.5]]\n" +
                "\nbefore allreduce:\n  rank 0: [[1, 1]]\n  rank 1: [[2, 2]]\n  rank 2: [[3, 3]]\n"
                "after allreduce:\n  rank 0: [[6, 6]]\n  rank 1: [[6, 6]]\n  rank 2: [[6, 6]]\n"
                "\ninput: [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]\n"
                "scattered over 3 ranks on " +
                host_name() +
                ":\n  rank 0: [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]\n"
                "  rank 1: [[10, 11, 12, 13, 14], [15, 16, 17, 18, 19]]\n  rank 2: []\n"
                "after parallel_apply, in which each rank squares what it has:\n"
                "  rank 0: [[0, 1, 4, 9, 16], [25, 36, 49, 64, 81]]\n"
                "  rank 1: [[100, 121, 144, 169, 196], [225, 256, 289, 324, 361]]\n  rank 2: []\n"
                "gathered on rank 0: [[0, 1, 4, 9, 16], [25, 36, 49, 64, 81], [100, 121, 144, 169, 196], "
                "[225, 256, "
                "289, 324, 361]]\n");
}

TEST(AllreduceLossTest, AllMemoryIsFreedInGoodOrderAndNoneAfterALoss) {
  const Memory in_good_order = memory_after(kNever), first_row = memory_after(2);
  EXPECT_GT(in_good_order.allocated, 0);
  EXPECT_EQ(in_good_order.freed, in_good_order.allocated);
  EXPECT_GT(first_row.allocated, 0);
  EXPECT_EQ(first_row.freed, 0);
}

constexpr AllreduceRow kRow{1 << 20, 131072, "int64", {100e-6, 0}, {50e-6, 0}};

TEST(AllreduceTableTest, ARowHasFourDigitsOrSoAndWhatEachLinkCarries) {
  const auto line = [](int ranks, const AllreduceRow& row) { return AllreduceTable(ranks).row(row); };
  EXPECT_EQ(line(4, kRow),  // 1 MiB / 100 us, times 2 * 3 / 4
            "  1048576    131072 int64   100.0  10.49  15.73    0   50.00  20.97  31.46    0");
  EXPECT_EQ(line(2, {8, 1, "int64", {9999e-6, 0}, {10000e-6, 0}}),
            "        8         1 int64  9999.0   0.00   0.00    0   10000   0.00   0.00    0");
  EXPECT_EQ(line(2, {8, 2, "float", {99e-6, 1}, {0, 2}}),
            "        8         2 float   99.00   0.00   0.00    1    0.00      -      -    2");
  EXPECT_EQ(line(1, {16 << 20, 2 << 20, "int64", {0.04e-6, 0}, {0.04e-6, 0}}),
            " 16777216   2097152 int64    0.04      -      -    0    0.04      -      -    0");
}

TEST(AllreduceTableTest, JsonHasAllRows) {
  AllreduceTable table(2);
  table.row({1024, 128, "int64", {0x1p-20, 1}, {0x1p-21, 2}});
  EXPECT_EQ(parse_json(table.json("mpi")),
            parse_json(R"({"format": 1, "bench": "allreduce", "ranks": 2, "path": "mpi", "wrong": 3, "rows": [
              {"bytes": 1024, "count": 128, "type": "int64",
               "out_of_place": {"seconds": 9.5367431640625e-07, "bus_bytes_per_second": 1073741824.0, "wrong": 1},
               "in_place": {"seconds": 4.76837158203125e-07, "bus_bytes_per_second": 2147483648.0, "wrong": 2}}]})"));
}

TEST(AllreduceTableTest, TheFootHasAllWrongElementsAndTheAverageOfBothHalvesOfAllRows) {
  AllreduceTable table(2), alone(1);
  EXPECT_EQ(table.foot().front(), "# Out of bounds values : 0 OK");
  table.row({1000, 125, "int64", {1e-6, 1}, {0.5e-6, 2}});   // 1 and 2 GB/s
  table.row({1000, 250, "float", {0.25e-6, 0}, {1e-6, 0}});  // 4 and 1 GB/s
  EXPECT_EQ(table.foot().front(), "# Out of bounds values : 3 FAILED");
  EXPECT_EQ(table.foot().back(), "# Avg bus bandwidth    : 2 GB/s");
  alone.row(kRow);
  EXPECT_EQ(alone.foot().back(), "# Avg bus bandwidth    : none, with one rank nothing travels");
}

TEST(MedianTest, IsInTheMiddle) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 30}), 3);
}

TEST(AllreduceTableTest, FitsEightyColumns) {
  AllreduceTable table(8);
  for (const std::string& line : AllreduceTable::head()) EXPECT_LE(line.size(), 80U) << line;
  const AllreduceRow slow{std::size_t{1} << 29, 1 << 27, "float", {9.876543, 0}, {12e-3, 0}};
  for (const AllreduceRow& row : {kRow, slow})
    EXPECT_EQ(table.row(row).size(), AllreduceTable::head().back().size());
}

}  // namespace

}  // namespace lockstep::bench
