// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Arbitrary text as a manifest, as it is and with a correct seal put on: refused with DataError, or read
/// such that writing it gives a manifest that reads the same.
#include "kernels/runtime/error.hpp"
#include "trainer/checkpoint/manifest.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

void use(std::string_view text) {
  try {
    const lockstep::Manifest manifest = lockstep::read_manifest(text, "fuzz");
    if (lockstep::read_manifest(lockstep::write_manifest(manifest), "copy") != manifest) std::abort();
    const std::string bytes(manifest.files[0].bytes < 4096 ? manifest.files[0].bytes : 0, 'x');
    lockstep::check_against(manifest.files[0], std::as_bytes(std::span(bytes)), "fuzz");
  } catch (const lockstep::DataError&) {  // NOLINT(bugprone-empty-catch): refusing is right
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  use(text);
  // Behind the seal: what stands for the text before it is everything up to the last line that could be one.
  const std::size_t seal = lockstep::manifest_seal("").size();
  if (text.size() > seal && text.ends_with("\"\n}\n")) text.resize(text.size() - seal);
  use(text + lockstep::manifest_seal(text));
  return 0;
}
