// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a rank reads of /proc, /sys and /etc, from a made-up root; and what of the environment it shows.
#include "trainer/ranks/surroundings.hpp"

#include "common/error.hpp"
#include "common/machine.hpp"
#include "trainer/tools/doctor_report.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class SurroundingsTest : public ::testing::Test {
 protected:
  SurroundingsTest() {
    root_ = fs::path(::testing::TempDir()) / ("surroundings-" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
    world_ = Surroundings::real();
    world_.root = root_;
    world_.environment = [this](const char* name) {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    };
  }
  ~SurroundingsTest() override { fs::remove_all(root_); }

  void put(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
  std::map<std::string, std::string> environment_;
  Surroundings world_;
};

TEST_F(SurroundingsTest, KillsForMemoryAreReadFromBothKindsOfCgroups) {
  EXPECT_EQ(look_around(world_).oom_kills, 0);
  put("proc/self/cgroup", "0::/job\n");
  put("sys/fs/cgroup/job/memory.events", "low 0\noom 3\noom_kill 2\n");
  put("sys/fs/cgroup/job/memory.max", "max\n");
  EXPECT_EQ(look_around(world_).oom_kills, 0) << "a machine's old stories";
  put("sys/fs/cgroup/job/memory.max", "1073741824\n");
  EXPECT_EQ(look_around(world_).oom_kills, 2);
  put("proc/self/cgroup", "9:cpu:/\n4:memory:/outside/the/container\n");
  put("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(look_around(world_).oom_kills, 1);
}

TEST_F(SurroundingsTest, OwnNameInHosts) {
  EXPECT_EQ(look_around(world_).own_address, "");
  put("etc/hosts", "127.0.0.1 localhost\n::1 " + host_name() + "\n# 10.0.0.1 " + host_name() +
                       "\n127.0.1.1\tother " + host_name() + "\n");
  EXPECT_EQ(look_around(world_).own_address, "127.0.1.1");
}

TEST_F(SurroundingsTest, AnIommuCountsWhereItTranslatesForAGpu) {
  put("sys/kernel/iommu_groups/1/type", "DMA-FQ\n");
  put("sys/kernel/iommu_groups/1/devices/0000:01:00.0/vendor", "0x8086\n");
  put("sys/kernel/iommu_groups/1/devices/0000:01:00.0/class", "0x030000\n");
  EXPECT_FALSE(look_around(world_).translated);
  put("sys/kernel/iommu_groups/2/type", "DMA-FQ\n");
  put("sys/kernel/iommu_groups/2/devices/0000:02:00.0/vendor", "0x10de\n");
  put("sys/kernel/iommu_groups/2/devices/0000:02:00.0/class", "0x030200\n");
  EXPECT_TRUE(look_around(world_).translated);
  put("sys/kernel/iommu_groups/2/type", "identity\n");
  EXPECT_FALSE(look_around(world_).translated);
}

TEST_F(SurroundingsTest, WhoStartedIt) {
  environment_ = {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "1"}};
  EXPECT_EQ(look_around(world_).launcher, "mpirun");
  EXPECT_EQ(look_around(world_).launched, 4);
  environment_ = {
      {"PMIX_RANK", "0"}, {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_CPUS_PER_TASK", "6"}};
  EXPECT_EQ(look_around(world_).launcher, "srun");
  EXPECT_EQ(look_around(world_).cpus_per_task, 6);
}

TEST(SettingsTest, SecretsAreMaskedAndWhatNobodySetIsLeftOut) {
  const char* environment[] = {"NCCL_DEBUG=INFO",
                               "LOCKSTEP_API_TOKEN=abc",
                               "LOCKSTEP_MIRRORS=https://me:pw@host/x",
                               "OMPI_MCA_orte_precondition_transports=1-2",
                               "HOME=/root",
                               "OMPI_MCA_btl=tcp,self",
                               nullptr};
  const std::map<std::string, std::string> expected = {{"NCCL_DEBUG", "INFO"},
                                                       {"LOCKSTEP_API_TOKEN", "***"},
                                                       {"LOCKSTEP_MIRRORS", "https://***@host/x"},
                                                       {"OMPI_MCA_btl", "tcp,self"}};
  EXPECT_EQ(visible_settings(environment), expected);
}

TEST_F(SurroundingsTest, AHostfileGivesSlotsInWholeNumbers) {
  put("hosts", "# two\nnode1 slots=12 max_slots=20\n\nnode2 # one\n");
  const auto hosts = read_hostfile(root_ / "hosts");
  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_EQ(hosts[0].name, "node1");
  EXPECT_EQ(hosts[0].slots, 12);
  EXPECT_EQ(hosts[1].slots, 1);
  for (const std::string slots : {"slots=", "slots=two", "slots=2x", "slots=-1", "slots=99999999999"}) {
    put("hosts", "node1 " + slots + "\n");
    try {
      read_hostfile(root_ / "hosts");
      ADD_FAILURE() << slots;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("'" + slots + "'"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace lockstep
