// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "common/error.hpp"
#include "common/json_text.hpp"
#include "kernels/cpu/int16/ops.hpp"
#include "kernels/cpu/simd_choice.hpp"
#include "kernels/device_ops.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "trainer/commands/machine_report.hpp"

#include <dlfcn.h>
#include <sched.h>

namespace lockstep {
namespace {

/// Three GPUs with the UUIDs of tests/kernels/device/fake_nvml.cpp, none of which can be used. GPUs 0 and 1
/// read each other's memory.
class FakePlatform final : public Platform {
 public:
  std::vector<DeviceProperties> devices() const override { return {device(0), device(1), device(2)}; }
  std::vector<std::vector<PeerLink>> links() const override {
    const PeerLink none, near{true, 1, false};
    return {{none, near, none}, {near, none, none}, {none, none, none}};
  }
  std::string versions() const override { return "driver 13.0, runtime 13.0"; }
  std::unique_ptr<Device> make_device(int /*index*/) const override { throw DeviceError("in use"); }
  std::unique_ptr<DeviceOps> make_ops(Device& /*device*/) const override { throw DeviceError("in use"); }

 private:
  static DeviceProperties device(int index) {
    DeviceProperties properties;
    properties.index = index;
    properties.name = index == 1 ? "NVIDIA H100 80GB HBM3" : "A";
    properties.uuid = std::string("GPU-") + static_cast<char>('a' + index);
    properties.pci_bus = "0000:65:00.0";
    properties.total_bytes = std::size_t{80} << 30;
    properties.compute_major = 9;
    properties.multiprocessors = 132;
    properties.clock_mhz = 1980;
    properties.memory_clock_mhz = 2619;
    properties.memory_bus_bits = 5120;
    properties.l2_bytes = std::size_t{50} << 20;
    properties.shared_bytes_per_block = std::size_t{48} << 10;
    properties.max_shared_bytes_per_block = std::size_t{227} << 10;
    return properties;
  }
};

TEST(DeviceReportTest, TablesAreAligned) {
  const auto text = to_text(report_devices(FakePlatform(), nullptr));
  EXPECT_EQ(text, R"(3 GPUs; driver 13.0, runtime 13.0

GPU  name                   compute  SMs  MHz   GiB   free  GB/s  L2 MiB  shared KiB
0    A                      9.0      132  1980  80.0  ?     3352  50      227
1    NVIDIA H100 80GB HBM3  9.0      132  1980  80.0  ?     3352  50      227
2    A                      9.0      132  1980  80.0  ?     3352  50      227

GPU  PCI bus       UUID
0    0000:65:00.0  GPU-a
1    0000:65:00.0  GPU-b
2    0000:65:00.0  GPU-c

GPU  0    1    2
0    .    P2P  -
1    P2P  .    -
2    -    -    .
NVL: NVLink; P2P: reads the other's memory directly; -: through the host
)");
}

TEST(DeviceReportTest, NvmlKnowsMoreThanCuda) {
  const auto nvml = Nvml::open(LOCKSTEP_FAKE_NVML);
  ASSERT_NE(nvml, nullptr);
  const auto report = report_devices(FakePlatform(), nvml.get());
  EXPECT_EQ(report.versions, "driver 13.0, runtime 13.0, kernel module 580.65.06");
  EXPECT_EQ(report.devices[2].free_bytes, std::size_t{100 + 'c'});
  EXPECT_TRUE(report.links[1][0].nvlink);
  EXPECT_FALSE(report.links[1][2].nvlink);
  EXPECT_NE(to_text(report).find("0    .    NVL  -"), std::string::npos) << to_text(report);
  EXPECT_NE(to_text(report).find("  80.0  0.0   3352  "), std::string::npos) << to_text(report);
}

TEST(DeviceReportTest, JsonHoldsEveryFact) {
  const auto json = to_json(report_devices(FakePlatform(), nullptr));
  EXPECT_EQ(json["versions"], "driver 13.0, runtime 13.0");
  ASSERT_EQ(json["devices"].size(), 3U);
  const auto expected = parse_json(R"({"index": 1, "name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-b",
    "pci_bus": "0000:65:00.0", "memory_total_bytes": 85899345920, "memory_free_bytes": null,
    "compute_capability": "9.0", "multiprocessors": 132, "clock_mhz": 1980, "memory_clock_mhz": 2619,
    "memory_bus_bits": 5120, "l2_bytes": 52428800, "shared_bytes_per_block": 49152,
    "max_shared_bytes_per_block": 232448})");
  EXPECT_EQ(json["devices"][1], expected);
  EXPECT_EQ(json["links"][1][0], parse_json(R"({"p2p": true, "nvlink": false, "performance_rank": 1})"));
  EXPECT_TRUE(json["links"][1][1].is_null());
}

TEST(DeviceReportTest, ProcessorsAreNamedWhereThereIsNoGpu) {
  const testing::TemporaryDirectory root;
  std::filesystem::create_directories(root.path("proc"));
  std::ofstream(root.path("proc/cpuinfo")) << "processor\t: 0\nmodel name\t: Made Up 9000\nflags: fma\n";
  const nlohmann::json processors = processors_json(root.path());
  EXPECT_EQ(processors["model"], "Made Up 9000");
  EXPECT_EQ(processors["simd"], cpu::simd_name());
  EXPECT_EQ(processors["int16"], cpu::int16::engine_name());
  cpu_set_t cores;
  ASSERT_EQ(::sched_getaffinity(0, sizeof cores, &cores), 0);
  EXPECT_EQ(processors["cores"], CPU_COUNT(&cores));
  std::filesystem::create_directories(root.path("proc/self"));
  std::filesystem::create_directories(root.path("sys/fs/cgroup"));
  std::ofstream(root.path("proc/self/cgroup")) << "0::/\n";
  std::ofstream(root.path("sys/fs/cgroup/cpu.max")) << "50000 100000\n";
  EXPECT_EQ(processors_json(root.path())["cores"], 1) << "half of one is one";
  EXPECT_EQ(processors_text({{"model", "Made Up 9000"},
                             {"cores", 2},
                             {"simd", "AVX-512"},
                             {"int16", "vnni"},
                             {"memory_free_bytes", std::uint64_t{3} << 30}}),
            "no GPU: ranks compute on processors\n\n"
            "cores  name          instructions  int16 by  memory free\n"
            "2      Made Up 9000  AVX-512       vnni      3.0 GiB\n");
  std::filesystem::remove(root.path("proc/cpuinfo"));
  EXPECT_NE(processors_json(root.path())["model"], "") << "the architecture stands in";
}

TEST(DeviceReportTest, TheEmulatedDeviceSaysHowMuchMemoryIsFree) {
  const auto report = report_devices(emulated::platform(), nullptr);
  ASSERT_EQ(report.devices.size(), 1U);
  EXPECT_GT(report.devices[0].free_bytes, 0U);
  EXPECT_EQ(to_text(report).find("NVL"), std::string::npos) << "a table of links for one device";
}

TEST(VersionReportTest, LibrariesOfGpusAreToldWithTheirVersions) {
  const testing::TemporaryDirectory directory;
  std::vector<void*> libraries;
  for (const auto& [name, fake] :
       {std::pair("libcudnn.so.9", LOCKSTEP_FAKE_NVML), {"libnccl.so.2", LOCKSTEP_FAKE_NCCL}}) {
    const std::string file = directory.path(name);
    std::filesystem::copy_file(fake, file);
    libraries.push_back(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
    ASSERT_NE(libraries.back(), nullptr) << ::dlerror();
  }
  test::expect_words(version_report(), {"/libcudnn.so.9 (91234)\n", "/libnccl.so.2 (22809)\n"});
  for (void* const library : libraries) ::dlclose(library);
}

}  // namespace
}  // namespace lockstep
