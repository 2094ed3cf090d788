// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Hosts of a hostfile. Names become words of ssh's command line: one that could be an option is refused.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/yaml.hpp"
#include "trainer/tools/doctor.hpp"

#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <sstream>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 4> kKeys{"slots", "count", "cpu", "max_slots"};
constexpr std::int64_t kMostSlots = 100'000;

bool may_be_in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
}

int slots_of(const std::string& place, const std::string& word) {
  const std::string_view text = word;
  if (std::ranges::find(kKeys, text.substr(0, text.find('='))) == kKeys.end())
    throw ConfigError(fmt::format("{}: {} is none of {}=N; a line is 'node1 slots=8'", place,
                                  quoted_text(word), fmt::join(kKeys, "=N, ")));
  const auto slots = parse_int64(text.substr(text.find('=') + 1));
  if (!slots || *slots < 1 || *slots > kMostSlots)
    throw ConfigError(fmt::format("{}: {} gives no whole number from 1 to {}; a line is 'node1 slots=8'",
                                  place, quoted_text(word), kMostSlots));
  return static_cast<int>(*slots);
}

/// An IPv6 address has two colons or more; one alone is MPICH's "node1:8".
bool is_host_name(std::string_view text) {
  return !text.empty() && text.front() != '-' && text.front() != '.' && std::ranges::count(text, ':') != 1 &&
         std::ranges::all_of(text, may_be_in_name);
}

/// A host may be on a line for each of its slots, as batch systems list them.
void add(const ListedHost& host, std::vector<ListedHost>& hosts) {
  const auto known = std::ranges::find(hosts, host.name, &ListedHost::name);
  if (known == hosts.end()) return hosts.push_back(host);
  known->slots = static_cast<int>(std::min(kMostSlots, std::int64_t{known->slots} + host.slots));
}

}  // namespace

std::vector<ListedHost> read_hostfile(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw MissingDataError(path + ": there is no such hostfile, or it may not be read");
  std::vector<ListedHost> hosts;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string place = fmt::format("{}: line {}", path, ++number);
    std::istringstream words(line.substr(0, line.find('#')));
    ListedHost host;
    if (!(words >> host.name)) continue;
    if (!is_host_name(host.name))
      throw ConfigError(
          fmt::format("{}: {} is not a host name: letters, digits, '.', '-' and '_', or an IPv6 address, the "
                      "first neither '-' nor '.'; a line is 'node1 slots=8'",
                      place, quoted_text(host.name)));
    std::optional<int> slots, most;
    for (std::string word; words >> word;) (word.starts_with("max") ? most : slots) = slots_of(place, word);
    host.slots = slots.value_or(most.value_or(1));
    add(host, hosts);
  }
  if (in.bad()) throw IoError(path + ": cannot be read, or not to its end; check the file and its disk");
  if (hosts.empty()) throw ConfigError(path + ": names no host; a line is 'node1 slots=8'");
  return hosts;
}

}  // namespace lockstep
