// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Memory of readers and of a save. Hostile files of 1 MiB are built to cost as much as such a file can: the readers stay
/// under 64 MiB.
#include "common/error.hpp"
#include "common/safetensors.hpp"
#include "tests/support/prelude.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_settings.hpp"
#include "trainer/checkpoint/checkpoint.hpp"

#include <malloc.h>

namespace {

std::atomic<std::size_t> live_bytes{0}, peak_bytes{0};

void* counted_allocation(std::size_t size) {
  void* p = std::malloc(size);
  if (p == nullptr) throw std::bad_alloc();
  const std::size_t now = live_bytes += ::malloc_usable_size(p) + sizeof(std::size_t);
  if (now > peak_bytes) peak_bytes = now;
  return p;
}

void counted_free(void* p) noexcept {
  if (p == nullptr) return;
  live_bytes -= ::malloc_usable_size(p) + sizeof(std::size_t);
  std::free(p);
}

}  // namespace

void* operator new(std::size_t size) {
  return counted_allocation(size);
}
void* operator new[](std::size_t size) {
  return counted_allocation(size);
}
void operator delete(void* p) noexcept {
  counted_free(p);
}
void operator delete[](void* p) noexcept {
  counted_free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  counted_free(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  counted_free(p);
}

namespace lockstep {
namespace {

constexpr std::size_t kInputBytes = test::effort(std::size_t{1} << 20, std::size_t{1} << 18);
constexpr std::size_t kLimitBytes = 64 * kInputBytes;

/// Repeats the pieces one after another, until the text is nearly full. Each {} in a piece is a number of its own.
std::string repeated(const std::string& start, const std::string& piece, const std::string& end) {
  std::string text = start;
  for (std::size_t i = 0; text.size() + piece.size() + end.size() + 400 < kInputBytes; ++i) {
    if (i > 0) text += ',';
    const std::size_t hole = piece.find("{}");
    text += hole == std::string::npos ? piece
                                      : piece.substr(0, hole) + std::to_string(i) + piece.substr(hole + 2);
  }
  return text + end;
}

/// Peak memory of reading beyond the amount before.
std::size_t peak_of(const std::function<void()>& read) {
  const std::size_t before = live_bytes;
  peak_bytes = before;
  try {
    read();
  } catch (const DataError&) {  // NOLINT(bugprone-empty-catch): most of these files are refused
  }
  return peak_bytes - before;
}

std::size_t peak_of_safetensors(const std::string& header) {
  std::vector<std::byte> file(8 + header.size());
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<std::byte>(header.size() >> (8 * i));
  std::memcpy(file.data() + 8, header.data(), header.size());
  return peak_of([&] { SafetensorsFile::parse(std::move(file), "f"); }) + kInputBytes;
}

std::size_t peak_of_manifest(std::string text) {
  text += manifest_seal(text);
  return peak_of([&] { read_manifest(text, "m"); }) + kInputBytes;
}

TEST(MemoryBoundTest, SafetensorsReaderStaysUnder64MiB) {
  const std::string hostile[] = {
      repeated("{", R"("{}":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})", "}"),
      repeated("{", R"("{}":{"dtype":"U8","shape":[0,1,1,1,1,1,1,1,1],"data_offsets":[0,0]})", "}"),
      repeated(R"({"__metadata__":{)", R"("{}":"")", "}}"),
      repeated(R"({"a":{"dtype":"U8","shape":[)", "1", "]"),
      "{\"" + std::string(kInputBytes - 400, 'a') + "\":1}",
      "{\"a\":" + std::string(kInputBytes - 400, '[')};
  for (const std::string& header : hostile)
    EXPECT_LT(peak_of_safetensors(header), kLimitBytes) << header.substr(0, 80);
}

TEST(MemoryBoundTest, ManifestReaderStaysUnder64MiB) {
  const std::string hostile[] = {
      repeated(R"({"a":[)", "0", "]"),
      repeated(R"({"a":[)", "[]", "]"),
      repeated(R"({"a":[)", R"("")", "]"),
      repeated(R"({"a":[)", "{}", "]"),
      repeated("{", R"("{}":0)", ""),
      repeated("{", R"("{}":[])", ""),
      repeated(R"({"a":[)", "[[[0]]]", "]"),
      repeated(R"({"a":[)", R"({"":0})", "]"),
      "{\"a\":" + std::string(kInputBytes / 2 - 400, '[') + std::string(kInputBytes / 2 - 400, ']')};
  for (const std::string& text : hostile)
    EXPECT_LT(peak_of_manifest(text), kLimitBytes) << text.substr(0, 80);
}

constexpr std::size_t kTensorBytes = std::size_t{4} << 20;

/// A tensor and its momentum.
CheckpointState large_state() {
  constexpr std::size_t kNumbers = kTensorBytes / sizeof(float);
  CheckpointState state;
  state.facts.parameters = {{"fc.weight", {kNumbers}}};
  state.facts.gradient_units = {{0}, 0};
  state.weights.assign(kNumbers, 0.5F);
  state.optimizer = {{"momentum", std::vector<float>(kNumbers, 0.25F)}};
  return state;
}

TEST(MemoryBoundTest, ASaveCopiesNoTensor) {
  const testing::TemporaryDirectory run;
  const CheckpointState state = large_state();
  EXPECT_LT(peak_of([&] { save_checkpoint(Env::posix(), run.path(), state); }), kTensorBytes / 4);
}

/// The next one is made before anybody asks how this save went.
TEST(MemoryBoundTest, ASnapshotGoesOnceItIsWritten) {
  const testing::TemporaryDirectory run;
  AsyncCheckpointer saver(Env::posix(), run.path(), {});
  const std::size_t before = live_bytes;
  saver.save(large_state());
  while (!saver.finished_within(std::chrono::seconds(1))) continue;
  EXPECT_LT(live_bytes.load(), before + kTensorBytes / 4);
  saver.finish();
}

}  // namespace
}  // namespace lockstep
