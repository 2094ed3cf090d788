// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Every size and type is checked, timed and checked again, on the host or a device.
#include "trainer/tools/allreduce_bench.hpp"

#include "comm/agreement.hpp"
#include "comm/device/device_all_reduce.hpp"
#include "common/error.hpp"
#include "common/machine.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "kernels/device.hpp"
#include "kernels/device_buffer.hpp"
#include "kernels/platform.hpp"
#include "trainer/ranks/rank_runner.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <new>
#include <span>
#include <utility>

namespace lockstep::bench {
namespace {

// The buffers that `bench allreduce` sums: the same operations on host memory and on device memory.

/// Out of place, the sums of `source` end up in `result`; in place, those of `result`.
enum class InPlace { kNo, kYes };

/// The median of what `timed` returns, after the warm-up. All ranks start each repetition together.
double median_seconds(Communicator& comm, const AllreduceOptions& options,
                      const std::function<double()>& timed) {
  std::vector<double> times;
  for (int i = -options.warmup; i < options.iterations; ++i) {
    comm.barrier();
    const double seconds = timed();
    if (i >= 0) times.push_back(seconds);
  }
  return median(std::move(times));
}

/// By this host's clock.
template <typename Buffer>
double host_seconds(Communicator& comm, const AllreduceOptions& options, Buffer& buffer, InPlace in_place) {
  return median_seconds(comm, options, [&] {
    const auto start = Clock::now();
    buffer.all_reduce(in_place);
    return seconds_since(start);
  });
}

/// On the host, over the communicator itself, which sums in place: out of place is a copy before that.
template <typename T>
class HostBuffer {
 public:
  HostBuffer(Communicator& comm, std::size_t count) : comm_(comm), source_(count), result_(count) {}

  void load(const std::vector<T>& values, InPlace in_place) {
    (in_place == InPlace::kNo ? source_ : result_) = values;
  }
  const std::vector<T>& values() const { return result_; }
  void all_reduce(InPlace in_place) {
    if (in_place == InPlace::kNo) std::ranges::copy(source_, result_.begin());
    comm_.all_reduce(std::span<T>(result_));
  }
  double seconds(InPlace in_place, const AllreduceOptions& options) {
    return host_seconds(comm_, options, *this, in_place);
  }

 private:
  Communicator& comm_;
  std::vector<T> source_, result_;
};

/// On a device.
template <typename T>
class BufferOnDevice {
 public:
  BufferOnDevice(Communicator& comm, Device& device, DeviceAllReduce& all_reduce, std::size_t count)
      : comm_(comm),
        all_reduce_(all_reduce),
        stream_(device.make_stream()),
        start_(device.make_event(Device::Timing::kOn)),
        end_(device.make_event(Device::Timing::kOn)),
        source_(device, count),
        result_(device, count) {}

  void load(const std::vector<T>& values, InPlace in_place) {
    const auto& buffer = in_place == InPlace::kNo ? source_ : result_;
    stream_->copy_to_device(buffer.data(), values.data(), buffer.bytes());
    stream_->synchronize();
  }
  std::vector<T> values() {
    std::vector<T> values(result_.size());
    stream_->copy_to_host(values.data(), result_.data(), result_.bytes());
    stream_->synchronize();
    return values;
  }
  void all_reduce(InPlace in_place) {
    queue(in_place);
    wait_until_here();
  }
  /// Time of one all-reduce.
  double seconds(InPlace in_place, const AllreduceOptions& options) {
    if (!all_reduce_.on_stream()) return host_seconds(comm_, options, *this, in_place);
    capture(in_place);
    return median_seconds(comm_, options, [&] { return graph_seconds() / kPerGraph; });
  }

 private:
  static constexpr int kPerGraph = 20;

  void queue(InPlace in_place) {
    const T* source = in_place == InPlace::kNo ? source_.data() : result_.data();
    all_reduce_.all_reduce_into(*stream_, source, result_.data(), result_.size());
  }
  void wait_until_here() {
    stream_->record(*end_);
    wait_for(*end_, comm_, "an all-reduce on the GPU", &all_reduce_);
  }

  /// Many in a row, since the first one waits for the other ranks to start theirs.
  void capture(InPlace in_place) {
    graph_.reset();
    stream_->begin_capture();
    for (int i = 0; i < kPerGraph; ++i) queue(in_place);
    graph_ = stream_->end_capture();
  }
  /// By the GPU's clock.
  double graph_seconds() {
    stream_->record(*start_);
    stream_->launch(*graph_);
    wait_until_here();
    return end_->seconds_since(*start_);
  }

  Communicator& comm_;
  DeviceAllReduce& all_reduce_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> start_, end_;
  DeviceBuffer<T> source_, result_;
  std::unique_ptr<Graph> graph_;
};

/// Small integers, so that fp32 sums are exact and every element can be checked.
template <typename T>
std::vector<T> terms(std::size_t count, int rank) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(static_cast<int>(i % 251) + rank);
  return values;
}

template <typename T>
std::int64_t count_wrong(std::span<const T> sums, int ranks) {
  const int rank_sum = ranks * (ranks - 1) / 2;
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] != static_cast<T>(static_cast<int>(i % 251) * ranks + rank_sum)) ++wrong;
  return wrong;
}

/// Once, from the start; over all ranks.
template <typename T, typename Buffer>
std::int64_t wrong_elements(Communicator& comm, Buffer& buffer, const std::vector<T>& mine,
                            InPlace in_place) {
  buffer.load(mine, in_place);
  comm.barrier();
  buffer.all_reduce(in_place);
  std::int64_t wrong = count_wrong<T>(buffer.values(), comm.size());
  comm.all_reduce(std::span(&wrong, 1));
  return wrong;
}

/// Checked before and after it is timed.
template <typename T, typename Buffer>
AllreduceResult measure(Communicator& comm, const AllreduceOptions& options, Buffer& buffer,
                        const std::vector<T>& mine, InPlace in_place) {
  AllreduceResult result;
  result.wrong = wrong_elements(comm, buffer, mine, in_place);
  result.seconds = buffer.seconds(in_place, options);
  result.wrong += wrong_elements(comm, buffer, mine, in_place);
  return result;
}

/// Prints the ranks, as nccl-tests does. Collective.
/// @param place  where this rank's buffers are: "device 0 [0000:65:00.0] NVIDIA H100"
void print_title(Communicator& comm, const AllreduceOptions& options, const std::string& path,
                 const std::string& place) {
  const auto ranks = gather_text(comm, fmt::format("pid {} on {}, {}", getpid(), comm.host(), place));
  if (comm.rank() != 0 || options.json) return;
  print("# all-reduce (sum) over {}, {}\n", path, counted(comm.size(), "rank"));
  print("# {} to {} bytes, times {} each; median of {} after {} to warm up\n", options.min_bytes,
        options.max_bytes, options.factor, options.iterations, options.warmup);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) print("# rank {:>3} {}\n", rank, ranks[rank]);
  print("#\n");
}

/// Rows of one type at a time; collective, prints on rank 0 as results come.
class Rows {
 public:
  /// @param path  what carries the sums
  Rows(Communicator& comm, const AllreduceOptions& options, std::string path)
      : comm_(comm), options_(options), path_(std::move(path)), table_(comm.size()) {}

  /// @param make  make<T>(count): a buffer of T, in a unique_ptr
  /// @returns the exit code
  template <typename Make>
  int run(const Make& make) {
    say(AllreduceTable::head());
    std::int64_t wrong = 0;
    for (std::size_t bytes = options_.min_bytes; bytes <= options_.max_bytes; bytes *= options_.factor) {
      wrong += run_row<std::int64_t>(bytes, "int64", make);
      wrong += run_row<float>(bytes, "float", make);
    }
    say(table_.foot());
    if (comm_.rank() == 0 && options_.json) print("{}\n", table_.json(path_));
    return wrong == 0 ? 0 : static_cast<int>(ExitCode::kInternal);
  }

 private:
  template <typename T, typename Make>
  std::int64_t run_row(std::size_t bytes, std::string_view type, const Make& make) {
    std::vector<T> mine;
    decltype(make.template operator()<T>(std::size_t{})) buffer;
    agree(comm_, [&] {
      try {
        mine = terms<T>(bytes / sizeof(T), comm_.rank());
        buffer = make.template operator()<T>(mine.size());
      } catch (const std::bad_alloc&) {
        throw DeviceError(fmt::format(
            "there is too little memory for buffers of {} bytes on every rank; use a smaller --max-bytes",
            bytes));
      }
    });
    return run_leaking_on_peer_loss(std::move(buffer), [&](auto& made) {
      AllreduceRow row{mine.size() * sizeof(T), mine.size(), type, {}, {}};
      row.out_of_place = measure(comm_, options_, made, mine, InPlace::kNo);
      row.in_place = measure(comm_, options_, made, mine, InPlace::kYes);
      say({table_.row(row)});
      return row.out_of_place.wrong + row.in_place.wrong;
    });
  }
  void say(const std::vector<std::string>& lines) const {
    if (comm_.rank() != 0 || options_.json) return;
    for (const std::string& line : lines) print("{}\n", line);
    std::fflush(stdout);
  }

  Communicator& comm_;
  const AllreduceOptions& options_;
  std::string path_;
  AllreduceTable table_;
};

int bench_host(Communicator& comm, const AllreduceOptions& options) {
  require_host_backend(comm, options);
  print_title(comm, options, std::string(comm.backend()), "host memory");
  return Rows(comm, options, std::string(comm.backend())).run([&]<typename T>(std::size_t count) {
    return std::make_unique<HostBuffer<T>>(comm, count);
  });
}

int bench_on(DeviceSide& side, Communicator& comm, const AllreduceOptions& options) {
  const DeviceProperties& properties = side.device->properties();
  print_title(comm, options, side.setup.description,
              fmt::format("device {} [{}] {}", properties.index, properties.pci_bus, properties.name));
  return Rows(comm, options, side.setup.description).run([&]<typename T>(std::size_t count) {
    return std::make_unique<BufferOnDevice<T>>(comm, *side.device, *side.setup.all_reduce, count);
  });
}

}  // namespace

int bench_allreduce(Communicator& comm, const AllreduceOptions& options, const Platform& gpus) {
  const Platform* platform = platform_of(options, gpus);
  if (platform == nullptr) return bench_host(comm, options);
  return run_leaking_on_peer_loss(take_device(comm, options, *platform),
                                  [&](DeviceSide& taken) { return bench_on(taken, comm, options); });
}

}  // namespace lockstep::bench
