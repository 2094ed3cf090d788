// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Digests of the program and its plugins, versions of libraries, keys of the job, arithmetic of the device.
#include "common/digest.hpp"
#include "common/installed.hpp"
#include "common/machine.hpp"
#include "data/sets/set_loading.hpp"
#include "trainer/config/job_schema.hpp"
#include "trainer/ranks/equal_ranks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <fstream>
#include <span>

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSelf = "/proc/self/exe";

/// Digest of a file, or "unreadable".
std::string file_digest(const fs::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (size < 0) return "unreadable";
  std::vector<char> bytes(static_cast<std::size_t>(size));
  file.seekg(0).read(bytes.data(), size);
  return file ? quick_digest(std::as_bytes(std::span(bytes))) : "unreadable";
}

const std::string& program_digest() {
  static const std::string digest = file_digest(kSelf);
  return digest;
}

}  // namespace

std::string program_path() {
  std::error_code unreadable;
  return fs::read_symlink(kSelf, unreadable).string();
}

std::vector<fs::path> loaded_libraries(std::initializer_list<std::string_view> beginnings) {
  std::vector<fs::path> files;
  const auto add = [](dl_phdr_info* info, std::size_t /*size*/, void* found) {
    static_cast<std::vector<fs::path>*>(found)->emplace_back(info->dlpi_name);
    return 0;
  };
  dl_iterate_phdr(add, &files);
  std::erase_if(files, [&](const fs::path& file) {
    return std::ranges::none_of(
        beginnings, [&](std::string_view name) { return file.filename().string().starts_with(name); });
  });
  return files;
}

void hash_program_in_advance() {
  // Initialise libcrypto first: objects made later are destroyed earlier at exit, and the thread still uses
  // it.
  const Sha256 wakes_libcrypto;
  static const auto hashing = start_async([] { program_digest(); });
}

RankFacts program_facts(const std::string& command, const Communicator& comm) {
  return {{FactKind::kProgram, "the program", program_digest(), program_path()},
          {FactKind::kProgram, "its version", LOCKSTEP_VERSION},
          {FactKind::kLibrary, "the message-passing library", comm.library()},
          {FactKind::kJob, "the command", command}};
}

RankFacts job_facts(const Job& job) {
  RankFacts facts;
  for (const JobKey& key : job_schema()) {
    if (key.path == "data.root" && !is_made_in_memory(job.data.set)) continue;
    facts.push_back({FactKind::kJob, key.path, key.write(job)});
  }
  return facts;
}

RankFacts network_facts(const Network& network) {
  return {{FactKind::kNetwork, "the network's text", network.yaml()}};
}

RankFacts data_facts(const TrainTestData& data) {
  RankFacts facts;
  const auto add = [&](const std::string& what, const std::string& value) {
    facts.push_back({FactKind::kData, what, value, data.origin});
  };
  for (const Dataset* half : {&data.train, &data.test, &data.validation}) {
    if (half == &data.validation && half->size() == 0) continue;
    const auto [channels, height, width] = half->shape;
    add(fmt::format("the number of {} samples", half->name), std::to_string(half->size()));
    add(fmt::format("the shape of {} samples", half->name),
        fmt::format("{} x {} x {}", channels, height, width));
    add(fmt::format("the digest of {} samples", half->name), half->quick.samples);
    add(fmt::format("the digest of {} labels", half->name), half->quick.labels);
  }
  add("the names of the classes", fmt::format("{}", fmt::join(data.class_names, ", ")));
  return facts;
}

RankFacts device_facts(const DeviceChoice& device) {
  RankFacts facts = {{FactKind::kMachine, "the kind of device", device.kind}};
  if (device.gpu == nullptr) return facts;
  for (const fs::path& plugin : loaded_plugins())
    facts.push_back({FactKind::kProgram, plugin.filename().string(), file_digest(plugin), plugin.string()});
  for (const fs::path& name : loaded_libraries({"libnccl", "libcudnn", "libcublas", "libcudart"})) {
    std::error_code ignored;
    const fs::path file = fs::canonical(name, ignored);
    facts.push_back({.kind = FactKind::kLibrary,
                     .key = name.filename().string(),
                     .value = file.filename().string(),
                     .note = file.parent_path().string()});
  }
  return facts;
}

RankFacts setup_facts(const Job& job, const Network& network, const TrainTestData& data,
                      const DeviceChoice& device) {
  const RankFacts facts = network_facts(network) + data_facts(data);
  // Without exact sums the bits are not promised, only the same steps.
  const bool same_bits = job.parallel.determinism == Determinism::kWorld || device.gpu != nullptr;
  return same_bits ? facts + device_facts(device) : facts;
}

RankFacts operator+(RankFacts left, const RankFacts& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

}  // namespace lockstep
