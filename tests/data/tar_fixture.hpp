// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Archives of tar, made by hand.
#pragma once

#include "tests/support/prelude.hpp"

namespace lockstep::test {

inline std::string octal(std::uint64_t number, int digits) {
  return fmt::format("{:0{}o}", number, digits);
}

struct TarFields {
  char type = '0';
  std::string size{};                       ///< as it stands in the header; empty: the body's
  std::string prefix{};                     ///< field of the header that goes before its name
  std::string magic{"ustar\0\x30\x30", 8};  ///< GNU tar's own has no prefix there
};

inline std::string tar_entry(const std::string& name, const std::string& body, const TarFields& fields = {}) {
  std::string header(512, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, fields.size.empty() ? octal(body.size(), 11) : fields.size);
  put(148, "        ");
  header[156] = fields.type;
  put(257, fields.magic);
  put(345, fields.prefix);
  unsigned sum = 0;
  for (const unsigned char byte : header) sum += byte;
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return header + body + std::string((512 - body.size() % 512) % 512, '\0');
}

inline const std::string kTarEnd(1024, '\0');

/// Without its end.
inline std::string tar_sample(const std::string& key, int label) {
  return tar_entry(key + ".cls", std::to_string(label)) + tar_entry(key + ".png", "p");
}

}  // namespace lockstep::test
