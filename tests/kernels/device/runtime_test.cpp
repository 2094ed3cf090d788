// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Devices, memory, streams, events and graphs.
#include "common/error.hpp"
#include "kernels/numerics/sums.hpp"
#include "tests/kernels/device/rig.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"

#include <regex>

namespace lockstep::test {
namespace {

class RuntimeTest : public testing::Test {
 protected:
  Device& device() { return rig_.device(); }
  Stream& stream() { return rig_.stream(); }

  /// first, first + 1, ... in pinned memory.
  PinnedBuffer<int> counting(std::size_t size, int first) {
    PinnedBuffer<int> buffer(device(), size);
    std::iota(buffer.span().begin(), buffer.span().end(), first);
    return buffer;
  }
  /// Queues a copy of all of it.
  static void send(Stream& stream, const DeviceBuffer<int>& to, const PinnedBuffer<int>& from) {
    stream.copy_to_device(to.data(), from.data(), from.bytes());
  }
  static void fetch(Stream& stream, const PinnedBuffer<int>& to, const DeviceBuffer<int>& from) {
    stream.copy_to_host(to.data(), from.data(), from.bytes());
  }

  DeviceRig rig_;
};

template <typename T>
std::vector<T> contents(const PinnedBuffer<T>& buffer) {
  return {buffer.span().begin(), buffer.span().end()};
}

/// Text with every hexadecimal digit replaced by x.
std::string outline(std::string text) {
  for (char& c : text) c = std::isxdigit(static_cast<unsigned char>(c)) != 0 ? 'x' : c;
  return text;
}

TEST_F(RuntimeTest, MemoryInUseIsCounted) {
  constexpr std::size_t kMebibyte = std::size_t{1} << 20;
  EXPECT_EQ(platform_under_test().make_device(0)->memory_use().most_allocated, 0U) << "of a new one";
  const DeviceMemoryUse before = device().memory_use();
  {
    const DeviceBuffer<char> buffer(device(), 4 * kMebibyte);
    const DeviceMemoryUse with = device().memory_use();
    EXPECT_EQ(with.allocated, before.allocated + 4 * kMebibyte);
    EXPECT_GE(with.reserved, before.reserved);
    EXPECT_GE(with.reserved, 4 * kMebibyte);
    if (device().kind() == "emulated") {
      EXPECT_EQ(with.reserved, before.reserved + 4 * kMebibyte);
    }
  }
  const DeviceMemoryUse after = device().memory_use();
  EXPECT_EQ(after.allocated, before.allocated);
  EXPECT_EQ(after.most_allocated, std::max(before.most_allocated, before.allocated + 4 * kMebibyte));
}

TEST_F(RuntimeTest, FactsDescribeADevice) {
  const DeviceProperties& properties = device().properties();
  EXPECT_EQ(properties.index, 0);
  EXPECT_FALSE(properties.name.empty());
  EXPECT_EQ(outline(properties.uuid.substr(3)), "-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") << properties.uuid;
  EXPECT_EQ(outline(properties.pci_bus), "xxxx:xx:xx.x") << properties.pci_bus;
  EXPECT_GT(properties.free_bytes, 0U);
  EXPECT_LE(properties.free_bytes, properties.total_bytes);
  EXPECT_GE(properties.compute_major, 8);
  EXPECT_GT(properties.multiprocessors, 0);
  EXPECT_GT(properties.clock_mhz, 0);
  EXPECT_GT(properties.memory_clock_mhz, 0);
  EXPECT_GT(properties.memory_bus_bits, 0);
  EXPECT_GT(properties.l2_bytes, 0U);
  EXPECT_GE(properties.shared_bytes_per_block, std::size_t{48} << 10);
  EXPECT_GE(properties.max_shared_bytes_per_block, properties.shared_bytes_per_block);
  const std::string versions = platform_under_test().versions();
  EXPECT_TRUE(std::regex_search(versions, std::regex("^driver \\d+\\.\\d+, runtime (1[2-9]|[2-9]\\d)\\.\\d")))
      << versions;
}

TEST_F(RuntimeTest, FactsOfTheEmulatorAreKnown) {
  if (device().kind() != "emulated") GTEST_SKIP() << "this is a GPU";
  const DeviceProperties& properties = device().properties();
  EXPECT_EQ(properties.name, "Emulated GPU");
  EXPECT_EQ(properties.uuid, "GPU-656d756c-6174-6564-2064-657669636530");
  EXPECT_EQ(properties.pci_bus, "0000:00:00.0");
  EXPECT_EQ(properties.total_bytes, std::size_t{4} << 30);
  EXPECT_EQ(std::pair(properties.compute_major, properties.compute_minor), std::pair(8, 0));
  EXPECT_EQ(properties.multiprocessors, 4);
  EXPECT_EQ(std::pair(properties.clock_mhz, properties.memory_clock_mhz), std::pair(1000, 1000));
  EXPECT_EQ(properties.memory_bus_bits, 64);
  EXPECT_EQ(properties.l2_bytes, std::size_t{4} << 20);
  EXPECT_EQ(properties.shared_bytes_per_block, std::size_t{48} << 10);
  EXPECT_EQ(properties.max_shared_bytes_per_block, std::size_t{163} << 10);
  EXPECT_EQ(platform_under_test().versions(), "driver 13.0, runtime 13.0");
}

TEST_F(RuntimeTest, DevicesAreNumberedAndHaveUuidsOfTheirOwn) {
  const auto devices = platform_under_test().devices();
  ASSERT_FALSE(devices.empty());
  std::set<std::string> uuids;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    EXPECT_EQ(devices[i].index, static_cast<int>(i));
    uuids.insert(devices[i].uuid);
  }
  EXPECT_EQ(uuids.size(), devices.size());
  EXPECT_EQ(devices[0].uuid, device().properties().uuid);
}

TEST_F(RuntimeTest, EveryPairOfDevicesHasALink) {
  const auto links = platform_under_test().links();
  const std::size_t count = platform_under_test().devices().size();
  ASSERT_EQ(links.size(), count);
  for (const auto& row : links) EXPECT_EQ(row.size(), count);
}

TEST_F(RuntimeTest, ADeviceThatIsNotThereIsRefusedWithThoseThatAre) {
  const int count = static_cast<int>(platform_under_test().devices().size());
  for (const int index : {count, count + 2, -1}) {
    expect_error<DeviceError>(
        [&] { platform_under_test().make_device(index); },
        {"there is no GPU " + std::to_string(index), "sees " + std::to_string(count) + " GPU",
         "index 0: " + device().properties().name});
  }
}

TEST_F(RuntimeTest, MemoryIsAlignedAndKeepsWhatIsCopiedThere) {
  for (const std::size_t size : {1, 3, 64, 1'000, 1'000'003}) {
    const auto sent = counting(size, 7);
    const DeviceBuffer<int> first(device(), size), second(device(), size);
    const PinnedBuffer<int> received(device(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) % 256, 0U);
    send(stream(), first, sent);
    stream().copy_on_device(second.data(), first.data(), first.bytes());
    fetch(stream(), received, second);
    stream().synchronize();
    EXPECT_EQ(contents(received), contents(sent)) << size << " numbers";
  }
}

TEST_F(RuntimeTest, NothingIsCopiedFromAnEmptyBuffer) {
  const DeviceBuffer<int> empty(device(), 0);
  EXPECT_EQ(empty.data(), nullptr);
  stream().copy_to_device(empty.data(), nullptr, 0);
  stream().fill_zero(empty.data(), 0);
  stream().copy_to_host(nullptr, empty.data(), 0);
  stream().synchronize();
}

TEST_F(RuntimeTest, OrdinaryHostMemoryMayChangeAsSoonAsTheCopyReturns) {
  std::vector<int> sent(1'000, 5);
  const DeviceBuffer<int> buffer(device(), sent.size());
  stream().copy_to_device(buffer.data(), sent.data(), buffer.bytes());
  std::fill(sent.begin(), sent.end(), -1);
  EXPECT_EQ(rig_.download(buffer), std::vector<int>(sent.size(), 5));
}

TEST_F(RuntimeTest, FillZeroZeroesExactlyItsBytes) {
  const auto buffer = rig_.poisoned<std::uint8_t>(100);
  stream().fill_zero(buffer.data() + 10, 77);
  const auto values = rig_.download(buffer);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], i < 10 || i >= 87 ? 0xFF : 0) << i;
}

TEST_F(RuntimeTest, PinnedMemoryStartsAsZeros) {
  for (int round = 0; round < 3; ++round) {
    const PinnedBuffer<int> buffer(device(), 1'000);
    EXPECT_EQ(contents(buffer), std::vector<int>(1'000, 0));
    std::fill(buffer.span().begin(), buffer.span().end(), -1);
  }
}

TEST_F(RuntimeTest, TooMuchMemoryIsRefusedWithNumbersAndNothingElseSuffers) {
  const std::size_t too_many = 2 * device().properties().total_bytes;
  expect_error<DeviceError>(
      [&] { device().allocate(too_many); },
      {"GPU 0 (" + device().properties().name + ")", "GiB wanted", "GiB free", "a smaller global batch"});
  const auto sum = rig_.zeroed<std::int64_t>(1);
  const auto refused = rig_.zeroed<std::int64_t>(1);
  const auto one = rig_.upload(std::vector<float>{1.0F});
  rig_.ops().accumulate_exact(stream(), 1, one.data(), {sum.data(), {.limit = 2}, {refused.data()}});
  EXPECT_EQ(rig_.download(sum)[0], std::int64_t{1} << 40);
}

TEST_F(RuntimeTest, AnEventOrdersTheWorkOfTwoStreams) {
  const std::size_t size = 4'000'000;
  const auto other = device().make_stream(Device::Priority::kHigh);
  const auto sent_event = device().make_event();
  const DeviceBuffer<int> first(device(), size), second(device(), size);
  const PinnedBuffer<int> received(device(), size);
  for (int round = 0; round < 3; ++round) {
    const auto sent = counting(size, round);
    send(stream(), first, sent);
    stream().copy_on_device(second.data(), first.data(), first.bytes());
    stream().record(*sent_event);
    other->wait(*sent_event);
    fetch(*other, received, second);
    other->synchronize();
    ASSERT_EQ(contents(received), contents(sent)) << "round " << round;
    stream().synchronize();
  }
}

TEST_F(RuntimeTest, AnEventIsDoneAfterItsWork) {
  const auto event = device().make_event();
  const auto sent = counting(1'000'000, 0);
  const DeviceBuffer<int> buffer(device(), sent.size());
  send(stream(), buffer, sent);
  stream().record(*event);
  while (!event->done()) std::this_thread::yield();
  stream().synchronize();
  EXPECT_TRUE(event->done());
}

TEST_F(RuntimeTest, EventsMeasureTimeIfTheyWereMadeForIt) {
  const auto start = device().make_event(Device::Timing::kOn);
  const auto end = device().make_event(Device::Timing::kOn);
  const auto untimed = device().make_event();
  const DeviceBuffer<int> buffer(device(), 1'000'000);
  stream().record(*start);
  stream().fill_zero(buffer.data(), buffer.bytes());
  stream().record(*end);
  stream().record(*untimed);
  stream().synchronize();
  EXPECT_GT(end->seconds_since(*start), 0);
  EXPECT_LT(end->seconds_since(*start), 10);
  EXPECT_THROW(untimed->seconds_since(*start), InternalError);
  EXPECT_GT(end->seconds_since(*start), 0) << "the error before stays";
}

TEST_F(RuntimeTest, AGraphRunsWhenItIsLaunchedAndReadsMemoryAnew) {
  const PinnedBuffer<int> in(device(), 1'000), out(device(), 1'000);
  const DeviceBuffer<int> first(device(), 1'000), second(device(), 1'000);
  stream().begin_capture();
  send(stream(), first, in);
  stream().copy_on_device(second.data(), first.data(), first.bytes());
  fetch(stream(), out, second);
  const auto graph = stream().end_capture();
  EXPECT_EQ(graph->nodes(), 3U);
  std::fill(out.span().begin(), out.span().end(), -1);
  stream().synchronize();
  EXPECT_EQ(out[999], -1) << "ran while it was captured";
  for (const int value : {3, 4, 5}) {
    std::fill(in.span().begin(), in.span().end(), value);
    stream().launch(*graph);
    stream().synchronize();
    EXPECT_EQ(contents(out), std::vector<int>(1'000, value));
  }
}

TEST_F(RuntimeTest, AGraphHoldsKernels) {
  const auto refused = rig_.zeroed<std::int64_t>(1);
  const auto terms = rig_.upload(std::vector<float>(100, 0.5F));
  const auto sum = rig_.zeroed<std::int64_t>(100);
  stream().begin_capture();
  for (int i = 0; i < 2; ++i)
    rig_.ops().accumulate_exact(stream(), 100, terms.data(), {sum.data(), {.limit = 1}, {refused.data()}});
  const auto graph = stream().end_capture();
  EXPECT_GE(graph->nodes(), 2U);
  for (int i = 0; i < 3; ++i) stream().launch(*graph);
  EXPECT_EQ(rig_.download(sum), std::vector<std::int64_t>(100, 3 * (std::int64_t{1} << 40)));
}

TEST_F(RuntimeTest, ASecondStreamJoinsACapture) {
  const std::size_t size = 1'000'000;
  const auto side = device().make_stream(Device::Priority::kHigh);
  const auto fork = device().make_event(), join = device().make_event();
  const PinnedBuffer<int> in(device(), size), out(device(), size);
  const DeviceBuffer<int> first(device(), size), second(device(), size);
  stream().begin_capture();
  send(stream(), first, in);
  stream().record(*fork);
  side->wait(*fork);
  side->copy_on_device(second.data(), first.data(), first.bytes());
  side->record(*join);
  stream().wait(*join);
  fetch(stream(), out, second);
  const auto graph = stream().end_capture();
  EXPECT_EQ(graph->nodes(), 3U);
  for (const int value : {1, 2, 3}) {
    std::fill(in.span().begin(), in.span().end(), value);
    stream().launch(*graph);
    stream().synchronize();
    ASSERT_EQ(contents(out), std::vector<int>(size, value));
  }
  side->synchronize();
}

TEST_F(RuntimeTest, AStreamThatDoesNotComeBackFailsTheCapture) {
  const auto side = device().make_stream();
  const auto fork = device().make_event();
  const DeviceBuffer<int> buffer(device(), 100);
  const auto capture = [&] {
    stream().begin_capture();
    stream().fill_zero(buffer.data(), buffer.bytes());
    stream().record(*fork);
    side->wait(*fork);
    side->fill_zero(buffer.data(), buffer.bytes());
    stream().end_capture();
  };
  expect_error<InternalError>(capture, {"cudaStreamEndCapture", "cudaErrorStreamCaptureUnjoined"});
  if (device().kind() == "emulated") side->synchronize();
  stream().fill_zero(buffer.data(), buffer.bytes());
  EXPECT_EQ(rig_.download(buffer), std::vector<int>(100, 0));
}

TEST_F(RuntimeTest, AnErrorInTheMiddleOfACaptureLeavesTheDeviceUsable) {
  const DeviceBuffer<int> buffer(device(), 100);
  const auto synchronize = [&] {
    const auto capturing = device().make_stream();
    capturing->begin_capture();
    capturing->fill_zero(buffer.data(), buffer.bytes());
    capturing->synchronize();
  };
  expect_error<InternalError>(synchronize,
                              {"internal error: cudaStreamSynchronize", "stream.cu:", "please report"});
  const auto allocate = [&] {
    const auto capturing = device().make_stream();
    capturing->begin_capture();
    device().allocate(4);
  };
  expect_error<InternalError>(allocate, {"device.cu:", "cudaErrorStreamCaptureUnsupported"});
  stream().fill_zero(buffer.data(), buffer.bytes());
  EXPECT_EQ(rig_.download(buffer), std::vector<int>(100, 0));
}

TEST_F(RuntimeTest, ACaptureThatHasNotBegunDoesNotEnd) {
  expect_error<InternalError>([&] { stream().end_capture(); }, {"capturing_"});
}

TEST_F(RuntimeTest, OtherThreadsWorkOnDuringACapture) {
  const DeviceBuffer<int> buffer(device(), 100);
  stream().begin_capture();
  stream().fill_zero(buffer.data(), buffer.bytes());
  std::thread other_rank([] {
    DeviceRig rig;
    EXPECT_EQ(rig.download(rig.upload(std::vector<int>{1, 2, 3})), (std::vector<int>{1, 2, 3}));
  });
  other_rank.join();
  const auto graph = stream().end_capture();
  EXPECT_EQ(graph->nodes(), 1U);
}

}  // namespace
}  // namespace lockstep::test
