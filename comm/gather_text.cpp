// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "comm/gather_text.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace lockstep {

std::vector<std::string> gather_text(Communicator& comm, std::string_view mine) {
  const std::array<std::uint64_t, 1> my_size{mine.size()};
  const auto size_bytes = comm.all_gather(std::as_bytes(std::span(my_size)));
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(comm.size()));
  std::memcpy(sizes.data(), size_bytes.data(), size_bytes.size());

  std::string padded(mine);
  padded.resize(*std::max_element(sizes.begin(), sizes.end()));
  const auto all = comm.all_gather(std::as_bytes(std::span(padded)));
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    texts.emplace_back(reinterpret_cast<const char*>(all.data()) + rank * padded.size(), sizes[rank]);
  }
  return texts;
}

}  // namespace lockstep
