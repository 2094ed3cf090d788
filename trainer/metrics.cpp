// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/metrics.hpp"

#include "kernels/runtime/error.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace lockstep {

MetricsWriter::MetricsWriter(const std::string& path) : path_(path), file_(std::fopen(path.c_str(), "ae")) {
  if (!file_) throw IoError(fmt::format("{}: cannot be opened for writing: {}", path, std::strerror(errno)));
}

void MetricsWriter::write(const nlohmann::ordered_json& event) {
  if (!file_) return;
  const std::string line = event.dump() + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0) {
    throw IoError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  }
}

void MetricsWriter::sync() {
  if (!file_) return;
  if (fdatasync(fileno(file_.get())) != 0) {
    throw IoError(fmt::format("{}: cannot be synced: {}", path_, std::strerror(errno)));
  }
}

}  // namespace lockstep
