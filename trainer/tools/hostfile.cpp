// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Hosts of a hostfile. Names become words of ssh's command line: one that could be an option is refused.
#include "common/error.hpp"
#include "common/printable.hpp"
#include "common/yaml.hpp"
#include "trainer/tools/doctor.hpp"

#include <cctype>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace lockstep {
namespace {

constexpr std::string_view kSlots = "slots";
constexpr std::int64_t kMostSlots = 100'000;

bool may_be_in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' || c == ':';
}

int slots_of(const std::string& path, const std::string& word) {
  const auto slots = word.starts_with("slots=")
                         ? parse_int64(std::string_view(word).substr(kSlots.size() + 1))
                         : std::nullopt;
  if (!slots || *slots < 1 || *slots > kMostSlots)
    throw ConfigError(fmt::format("{}: {} gives no whole number from 1 to {}; a line is 'node1 slots=8'",
                                  path, quoted_text(word), kMostSlots));
  return static_cast<int>(*slots);
}

bool is_host_name(std::string_view text) {
  return !text.empty() && text.front() != '-' && text.front() != '.' &&
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
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    ListedHost host;
    if (!(words >> host.name)) continue;
    if (!is_host_name(host.name))
      throw ConfigError(fmt::format(
          "{}: {} is not a host name: letters, digits, '.', '-', '_' and ':', the first neither '-' nor '.'",
          path, quoted_text(host.name)));
    for (std::string word; words >> word;)
      if (word.starts_with(kSlots)) host.slots = slots_of(path, word);
    add(host, hosts);
  }
  if (hosts.empty()) throw ConfigError(path + ": names no host; a line is 'node1 slots=8'");
  return hosts;
}

}  // namespace lockstep
