// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The engines of 16-bit integers that a processor has, and what they read.
#include "kernels/cpu/int16/engines.hpp"
#include "kernels/cpu/int16/ops.hpp"
#include "tests/kernels/int16_problem.hpp"
#include "tests/kernels/reference/engines_in_memory.hpp"
#include "tests/kernels/reference/simd.hpp"

#include <sys/mman.h>
#include <unistd.h>

namespace lockstep::int16_test {
namespace {

/// A copy of numbers, with nothing after them that may be read.
class FencedNumbers {
 public:
  explicit FencedNumbers(const Numbers& numbers)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        bytes_(numbers.size() * sizeof(float)),
        whole_((bytes_ + page_ - 1) / page_ * page_),
        memory_(mmap(nullptr, whole_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    std::memcpy(begin(), numbers.data(), bytes_);
    if (mprotect(static_cast<char*>(memory_) + whole_, page_, PROT_NONE) != 0) throw std::bad_alloc();
  }
  ~FencedNumbers() { munmap(memory_, whole_ + page_); }
  FencedNumbers(const FencedNumbers&) = delete;
  FencedNumbers& operator=(const FencedNumbers&) = delete;

  const float* data() const { return reinterpret_cast<const float*>(begin()); }

 private:
  char* begin() const { return static_cast<char*>(memory_) + whole_ - bytes_; }

  std::size_t page_, bytes_, whole_;
  void* memory_;
};

/// Vectors are of 16 filters, and the second one has 5.
TEST(Int16EnginesTest, AWeightGradientReadsNothingBeyondDy) {
  std::mt19937 random(58);
  Problem p{.shape = {16, 2, 3, 3, 21, 2, 2}, .samples = 15};
  fill(p, random, {0});
  const Numbers expected = by_definition(p).dw;
  const FencedNumbers dy(p.dy);
  const auto expect_gradient = [&] {
    Numbers dw(p.w.size());
    cpu::int16::conv2d_backward_weights(p.shape, p.samples, p.x.data(), dy.data(), dw.data());
    EXPECT_EQ(first_difference("dw", expected, dw), "") << cpu::int16::engine_name();
  };
  for (const cpu::int16::Engine* engine : reference::engines_in_memory()) {
    cpu::int16::use_engine(*engine);
    expect_gradient();
  }
  const std::vector<std::string> choices = cpu::int16::engine_choices();
  for (const std::string& engine : choices) {
    cpu::int16::choose_engine(engine);
    expect_gradient();
  }
  cpu::int16::choose_engine(choices.front());
}

#if defined(__x86_64__) && defined(__linux__)

/// Linux may refuse tiles that a processor has.
TEST(Int16EnginesTest, FlagsOfTheProcessorNameThemAndTheBestIsFirst) {
  std::ifstream file("/proc/cpuinfo");
  const std::string flags(std::istreambuf_iterator<char>(file), {});
  for (const std::int64_t target : reference::all_targets()) {
    const reference::ForcedTarget forced(target);
    const bool is_wide = cpu::simd_name() == "AVX-512";
    std::vector<std::string> expected = {"doubles"}, choices = cpu::int16::engine_choices();
    if (is_wide && flags.find(" avx512_vnni") != std::string::npos) expected.insert(expected.begin(), "vnni");
    if (choices.front() == "amx") {
      EXPECT_TRUE(is_wide && flags.find(" amx_int8") != std::string::npos);
      choices.erase(choices.begin());
    }
    EXPECT_EQ(choices, expected) << hwy::TargetName(target);
  }
}

/// Doubles are half as many. Four instructions of fp32 are three of "vnni"; 32 a cycle are 256 products of "amx".
TEST(Int16EnginesTest, PeaksAreInMultiplyAddsOfFp32) {
  const std::string before = cpu::int16::engine_name();
  for (const auto& [engine, peaks] :
       {std::pair(&cpu::int16::kDoubles, 0.5), {&cpu::int16::kVnni, 4.0 / 3}, {&cpu::int16::kAmx, 8.0}}) {
    cpu::int16::use_engine(*engine);
    EXPECT_EQ(cpu::int16::engine_peak(), peaks) << engine->name;
  }
  cpu::int16::choose_engine(before);
}

#endif

}  // namespace
}  // namespace lockstep::int16_test
