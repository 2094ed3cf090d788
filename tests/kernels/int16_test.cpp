// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Convolutions in 16-bit integers against their definition (int16_problem.hpp): the same bits on every engine and every
/// instruction set.
#include "common/error.hpp"
#include "kernels/cpu/int16/operands.hpp"
#include "kernels/cpu/int16/ops.hpp"
#include "tests/kernels/int16_problem.hpp"
#include "tests/kernels/reference/engines_in_memory.hpp"
#include "tests/kernels/reference/simd.hpp"
#include "tests/kernels/reference/trapped_tiles.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/test_settings.hpp"

namespace lockstep::int16_test {
namespace {

namespace int16 = cpu::int16;

void clear_padding(const Problem& p, Results& results) {
  for (Numbers* numbers : {&results.y, &results.dx})
    for (std::size_t i = 0; i < numbers->size(); ++i)
      if (is_padding(p, i)) (*numbers)[i] = 0;
}

/// With an odd number of samples the first op that reads an operand finds its maxima for all. Otherwise each op its own.
Results by_ops(const Problem& p) {
  const Conv2dShape& s = p.shape;
  Results results = room_for(p);
  std::vector<std::uint32_t> bits(2 * static_cast<std::size_t>(s.batch), 0x7FFFFFFF);
  cpu::ColumnMaxima of_x{bits.data()}, of_dy{bits.data() + s.batch};
  const bool are_kept = p.samples % 2 == 1;
  const cpu::Operand x(p.x.data(), are_kept ? &of_x : nullptr), dy(p.dy.data(), are_kept ? &of_dy : nullptr);
  int16::conv2d_forward(s, p.samples, x, p.w.data(), p.b.data(), results.y.data());
  int16::conv2d_backward_data(s, p.samples, dy, p.w.data(), nullptr, results.dx.data());
  int16::conv2d_backward_weights(s, p.samples, x, dy, results.dw.data());
  int16::bias_gradient(s.out_channels, s.out_height() * s.out_width(), s.batch, p.samples, dy,
                       results.db.data());
  EXPECT_EQ(of_x.are_found && of_dy.are_found, are_kept);
  clear_padding(p, results);
  return results;
}

std::string in_words(const Problem& p) {
  const Conv2dShape& s = p.shape;
  return fmt::format(
      "batch {} ({} samples) C {} H {} W {} K {} R {} S {} stride {} padding {} groups {} dilation {} read "
      "{}x{}",
      s.batch, p.samples, s.in_channels, s.in_height, s.in_width, s.out_channels, s.kernel_height,
      s.kernel_width, s.stride, s.padding, s.groups, s.dilation, s.read_height(), s.read_width());
}

void expect_results(const Results& expected, const Results& actual, const std::string& where) {
  EXPECT_EQ(first_difference("y", expected.y, actual.y) + first_difference("dx", expected.dx, actual.dx) +
                first_difference("dw", expected.dw, actual.dw) +
                first_difference("db", expected.db, actual.db),
            "")
      << where;
}

/// On every instruction set with every engine that is there, and with those in memory.
void expect_definition(const Problem& p,
                       const std::vector<std::int64_t>& targets = reference::all_targets()) {
  SCOPED_TRACE(in_words(p));
  const Results expected = by_definition(p);
  for (const std::int64_t target : targets) {
    const reference::ForcedTarget forced(target);
    for (const std::string& engine : int16::engine_choices()) {
      int16::choose_engine(engine);
      expect_results(expected, by_ops(p), engine + " on " + hwy::TargetName(target));
    }
  }
  for (const int16::Engine* engine : reference::engines_in_memory()) {
    int16::use_engine(*engine);
    expect_results(expected, by_ops(p), fmt::format("{} in memory", engine->name));
  }
  int16::choose_engine(int16::engine_choices().front());
}

TEST(Int16Test, RandomShapesHaveTheBitsOfTheDefinition) {
  std::mt19937 random(49);
  for (int i = 0; i < test::effort(1000, 50); ++i) expect_definition(draw_problem(random));
}

/// More channels and filters than a tile has, and such as leave the last one part empty. Few enough products to test.
Problem draw_wide_problem(std::mt19937& random) {
  const int channels[] = {15, 16, 17, 32, 48, 64, 65, 96, 130};
  for (;;) {
    Problem p = draw_problem(random);
    Conv2dShape& s = p.shape;
    s.batch = 16;
    p.samples = std::min(p.samples, 16);
    s.in_channels = s.groups * channels[random() % std::size(channels)];
    s.out_channels = s.groups * channels[random() % std::size(channels)];
    if (s.flops() > 3e7) continue;
    fill(p, random, {0, 0, 1, 3});
    return p;
  }
}

TEST(Int16Test, WideLayersHaveTheBitsOfTheDefinition) {
  std::mt19937 random(54);
  for (int i = 0; i < test::effort(50, 5); ++i)
    expect_definition(draw_wide_problem(random), {reference::all_targets().front()});
}

/// Lanes are samples where filters would leave them empty. Upper and lower part of a lane's sum must be of the same ones.
TEST(Int16Test, WeightGradientsOfWholeStepsHaveTheBitsOfTheDefinition) {
  std::mt19937 random(57);
  for (const Conv2dShape& shape : {Conv2dShape{64, 1, 28, 28, 10, 5, 5},
                                   {64, 2, 9, 8, 33, 3, 3, 1, 1},
                                   {128, 3, 7, 7, 5, 3, 3, 2},
                                   {192, 1, 6, 5, 1, 2, 2},
                                   {64, 3, 8, 7, 32, 3, 3, 1, 1}}) {
    Problem p{.shape = shape, .samples = shape.batch - 1};
    for (const int kind : {0, 1, 3}) {
      fill(p, random, {kind});
      expect_definition(p, {reference::all_targets().front()});
    }
  }
}

/// On a processor that has them every test above runs on them.
TEST(Int16Test, InstructionsForTilesDoWhatTilesInMemoryDo) {
#if defined(__x86_64__) && defined(__linux__)
  const auto choices = int16::engine_choices();
  if (choices.front() == "amx") GTEST_SKIP() << "this processor has AMX";
  if (cpu::simd_name() != "AVX-512") GTEST_SKIP() << "the engine amx wants AVX-512";
  const reference::TrappedTiles trapped;
  int16::use_engine(int16::kAmx);
  std::mt19937 random(55);
  for (int i = 0; i < test::effort(20, 5); ++i) {
    const Problem p = i % 4 == 0 ? draw_wide_problem(random) : draw_problem(random);
    expect_results(by_definition(p), by_ops(p), in_words(p));
    EXPECT_FALSE(reference::TrappedTiles::is_configured());
  }
  EXPECT_GT(reference::TrappedTiles::products(), test::effort(1000, 100));
  int16::choose_engine(choices.front());
#else
  GTEST_SKIP() << "AMX is of x86-64";
#endif
}

TEST(Int16Test, NumbersThatAreNotFiniteMakeTheirUnitsResultsNaN) {
  std::mt19937 random(50);
  for (int i = 0; i < 10; ++i) {
    Problem p = draw_problem(random);
    fill(p, random, {0, 6});
    expect_definition(p);
  }
}

/// Numbers that are all alike, but for some that make the unit 1.
Problem problem_of(const Conv2dShape& shape, float number, float weight) {
  Problem p{.shape = shape, .samples = shape.batch};
  p.x.assign(shape.in_size(), number);
  p.w.assign(shape.weight_size(), weight);
  p.b.assign(static_cast<std::size_t>(shape.out_channels), 2);
  p.dy.assign(shape.out_size(), weight);
  p.w[0] = p.dy[0] = 32639;
  return p;
}

// Shapes are batch, C, H, W, K, R, S.

/// Sums of 32 bits are as large as they may be, and flushed. They have 16,384 products of the largest numbers
/// and digits in y, 14,400 in dw.
TEST(Int16Test, LargestNumbersDoNotOverflow) {
  const std::pair<float, float> numbers[] = {
      {32639, 32639}, {-32639, 32639}, {32639, -128}, {32639, 32511}, {32511, 32639}};
  for (const auto& [number, weight] :
       std::span(numbers).first(test::effort(std::size(numbers), std::size_t{2})))
    for (const Conv2dShape& shape :
         {Conv2dShape{32, 1024, 4, 4, 2, 4, 4}, {16, 2, 30, 30, 18, 1, 1}, {64, 2, 12, 11, 6, 1, 1}})
      expect_definition(problem_of(shape, number, weight));
}

/// Beyond 2^17 products of the largest digits: of a target, and of a weight's gradient.
TEST(Int16Test, ManyLargestNumbersDoNotOverflow) {
  for (const Conv2dShape& shape : {Conv2dShape{16, test::effort(150000, 20000), 1, 1, 1, 1, 1},
                                   {16, 1, test::effort(95, 20), 100, 1, 1, 1}})
    expect_definition(problem_of(shape, 32639, 32639), {reference::all_targets().front()});
}

/// More products of a target than the engines sum at once.
TEST(Int16Test, ProductsBeyond2To17AreSummed) {
  std::mt19937 random(51);
  Problem p{.shape = {16, test::effort((1 << 17) + 3, 20003), 1, 1, 1, 1, 1}, .samples = 3};
  fill(p, random, {0});
  for (float& weight : p.w) weight = std::abs(weight);  // a large sum
  for (float& number : p.x) number = std::abs(number);
  expect_definition(p, {reference::all_targets().front()});
}

/// So many are no engine's. Most are over padding here.
TEST(Int16Test, FiltersOfMoreThan2To22TapsAreSummed) {
  std::mt19937 random(56);
  Problem p{.shape = {16, 2, 42, 41, 2, 1449, 1449, 1, 704}, .samples = 3};
  ASSERT_GT(p.shape.weight_size() / 2, int16::kExactTerms);
  fill(p, random, {0});
  const Results expected = by_definition(p);
  Results actual = room_for(p);
  int16::conv2d_forward(p.shape, p.samples, p.x.data(), p.w.data(), p.b.data(), actual.y.data());
  int16::conv2d_backward_data(p.shape, p.samples, p.dy.data(), p.w.data(), nullptr, actual.dx.data());
  clear_padding(p, actual);
  EXPECT_EQ(first_difference("y", expected.y, actual.y), "");
  EXPECT_EQ(first_difference("dx", expected.dx, actual.dx), "");
}

/// A gradient sums over more pixels than a double holds the sum of.
TEST(Int16Test, LargeImagesHaveExactGradients) {
  std::mt19937 random(52);
  Problem p{.shape = {16, 1, test::effort(1051, 20), 250, 1, 1, 1}, .samples = 16};
  fill(p, random, {0});
  expect_definition(p);
}

TEST(Int16Test, SamplesHaveTheirNumbersWhateverIsBesideThem) {
  std::mt19937 random(53);
  Problem together = draw_problem(random);
  together.shape.read = {};
  fill(together, random, {1});
  const auto batch = static_cast<std::size_t>(together.shape.batch);
  const Results expected = by_ops(together);
  for (std::size_t n = 0; n < static_cast<std::size_t>(together.samples); ++n) {
    Problem alone = together;
    alone.shape.batch = 16;
    alone.samples = 1;
    const auto only = [&](const Numbers& numbers) {
      Numbers some(numbers.size() / batch * 16);
      for (std::size_t i = 0; i < numbers.size() / batch; ++i) some[i * 16] = numbers[i * batch + n];
      return some;
    };
    alone.x = only(together.x);
    alone.dy = only(together.dy);
    const Results actual = by_ops(alone);
    for (std::size_t i = 0; i < actual.y.size() / 16; ++i)
      ASSERT_EQ(actual.y[i * 16], expected.y[i * batch + n]);
    for (std::size_t i = 0; i < actual.dx.size() / 16; ++i)
      ASSERT_EQ(actual.dx[i * 16], expected.dx[i * batch + n]);
  }
}

TEST(Int16Test, EnginesThatAreNotThereAreRefused) {
  std::string listed;
  for (const std::string& choice : int16::engine_choices()) listed += (listed.empty() ? "" : ", ") + choice;
  EXPECT_EQ(message_of<UsageError>([] { int16::choose_engine("abacus"); }),
            "LOCKSTEP_INTEGER_ENGINE=abacus is not an engine: choose one of " + listed);
  const std::string before = int16::engine_name();
  EXPECT_NO_THROW(int16::choose_engine(""));
  EXPECT_EQ(int16::engine_name(), before);
  const reference::ForcedTarget forced(reference::all_targets().back());
  if (int16::engine_choices().front() != "doubles") GTEST_SKIP() << "every instruction set here has others";
  for (const std::string name : {"vnni", "amx"})
    EXPECT_EQ(message_of<DeviceError>([&] { int16::choose_engine(name); }),
              "LOCKSTEP_INTEGER_ENGINE=" + name + ": this processor does not have it, but doubles");
}

/// Images with their borders, outputs, weights, sums, and what the engines keep besides.
TEST(Int16Test, RoomIsForTheLargestEngine) {
  Conv2dShape shape{16, 3, 4, 5, 2, 3, 3, 1, 1};
  constexpr std::uint64_t kImage = 19 * 6 * 7, kOutput = 18 * 4 * 5, kWeights = 7 * 19 * 18 * 9;
  constexpr std::uint64_t kAll = (kImage + 2 * kOutput) * 7 + kWeights + 64 * 27 + 24576;
  EXPECT_EQ(int16::scratch_numbers(shape, 7), kAll);
  shape.in_channels = 6, shape.out_channels = 4, shape.groups = 2;
  EXPECT_EQ(int16::scratch_numbers(shape, 7), kAll) << "one group after the other";
}

}  // namespace
}  // namespace lockstep::int16_test
