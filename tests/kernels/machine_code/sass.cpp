// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Instructions of machine code, and statements of PTX, by what they do.
#include "tests/kernels/machine_code/cubin.hpp"
#include "tests/kernels/machine_code/program.hpp"
#include "tests/support/prelude.hpp"

#include <cxxabi.h>

#include <regex>

namespace lockstep::machine_code {
namespace {

/// Those that kernels of ours have. Only the first group computes with floating point.
const std::map<unsigned, std::string_view> kNames = {
    {0x008, "FSEL"},          {0x009, "FMNMX"},  {0x00A, "FSET"},      {0x00B, "FSETP"},    {0x020, "FMUL"},
    {0x021, "FADD"},          {0x023, "FFMA"},   {0x028, "DMUL"},      {0x029, "DADD"},     {0x02A, "DSETP"},
    {0x02B, "DFMA"},          {0x035, "HFMA2"},  {0x045, "I2FP"},      {0x102, "FCHK"},     {0x105, "F2I"},
    {0x106, "I2F"},           {0x107, "FRND"},   {0x108, "MUFU"},      {0x110, "F2F"},      {0x111, "F2I"},
    {0x112, "I2F"},           {0x113, "FRND"},

    {0x002, "MOV"},           {0x003, "P2R"},    {0x004, "R2P"},       {0x005, "CS2R"},     {0x006, "VOTE"},
    {0x007, "SEL"},           {0x00C, "ISETP"},  {0x00F, "VIMNMX3"},   {0x010, "IADD3"},    {0x011, "LEA"},
    {0x012, "LOP3"},          {0x013, "IABS"},   {0x016, "PRMT"},      {0x017, "IMNMX"},    {0x019, "SHF"},
    {0x01C, "PLOP3"},         {0x024, "IMAD"},   {0x025, "IMAD.WIDE"}, {0x027, "IMAD.HI"},  {0x036, "VIADD"},
    {0x046, "VIADDMNMX"},     {0x048, "VIMNMX"}, {0x082, "UMOV"},      {0x086, "VOTEU"},    {0x087, "USEL"},
    {0x08C, "UISETP"},        {0x090, "UIADD3"}, {0x091, "ULEA"},      {0x092, "ULOP3"},    {0x096, "UPRMT"},
    {0x099, "USHF"},          {0x0A4, "UIMAD"},  {0x0A5, "UIMAD"},     {0x0B9, "ULDC"},     {0x0BD, "UFLO"},
    {0x0BF, "UPOPC"},         {0x0CA, "R2UR"},   {0x109, "POPC"},      {0x118, "NOP"},      {0x119, "S2R"},
    {0x11B, "ENDCOLLECTIVE"}, {0x11D, "BAR"},    {0x141, "BSYNC"},     {0x142, "BREAK"},    {0x144, "CALL"},
    {0x145, "BSSY"},          {0x146, "YIELD"},  {0x147, "BRA"},       {0x148, "WARPSYNC"}, {0x149, "BRX"},
    {0x14D, "EXIT"},          {0x150, "RET"},    {0x180, "LD"},        {0x181, "LDG"},      {0x182, "LDC"},
    {0x183, "LDL"},           {0x184, "LDS"},    {0x186, "STG"},       {0x187, "STL"},      {0x188, "STS"},
    {0x189, "SHFL"},          {0x18E, "RED"},    {0x18F, "CCTL"},      {0x192, "MEMBAR"},   {0x1A8, "ATOMG"},
    {0x1AB, "ERRBAR"},        {0x1C2, "R2UR"},   {0x1C3, "S2UR"},
};

/// Target of a branch, in bytes.
std::optional<std::int64_t> target_of(const Instruction& instruction, std::int64_t address, int capability) {
  if (!instruction.is(Operation::kBra)) return std::nullopt;
  // 48 bits from bit 34 on; from 9.0 on, the lowest 8 of them are apart.
  std::int64_t steps =
      static_cast<std::int64_t>(instruction.high << 46 | (instruction.low >> 34 << 16)) >> 16;
  if (capability >= 90) steps = steps * 256 + static_cast<std::int64_t>(instruction.low >> 16 & 0xFF);
  return address + static_cast<std::int64_t>(Instruction::kBytes) + steps * 4;
}

}  // namespace

std::string_view name_of(Operation operation) {
  const auto found = kNames.find(static_cast<unsigned>(operation));
  return found == kNames.end() ? std::string_view{} : found->second;
}

std::vector<Loop> loops_of(const std::vector<Instruction>& code, int capability) {
  std::map<std::size_t, std::size_t> last_of;  // by first: several branches may lead back to one place
  for (std::size_t i = 0; i < code.size(); ++i) {
    const auto address = static_cast<std::int64_t>(i * Instruction::kBytes);
    const auto target = target_of(code[i], address, capability);
    if (!target || *target < 0 || *target >= address) continue;  // A branch to itself ends a kernel.
    last_of[static_cast<std::size_t>(*target) / Instruction::kBytes] = i;
  }
  std::vector<Loop> loops;
  for (const auto& [first, last] : last_of) loops.push_back({first, last});
  return loops;
}

namespace {

std::string_view trimmed(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t");
  return begin == std::string_view::npos ? std::string_view{} : line.substr(begin);
}

/// "fma.rn.f32" of "@%p1 fma.rn.f32 %f1, %f2, %f3, %f4;"; empty for what is no statement.
std::string_view operation_of(std::string_view line) {
  line = trimmed(line);
  if (line.substr(0, 1) == "{") line = trimmed(line.substr(1));  // a line of inline assembly
  if (line.substr(0, 1) == "@") line = trimmed(line.substr(std::min(line.find(' '), line.size())));
  if (line.empty() || line[0] < 'a' || line[0] > 'z') return {};
  return line.substr(0, line.find_first_of(" \t;"));
}

/// NAME of ".visible .entry NAME(".
std::string_view kernel_begun(std::string_view line) {
  for (const std::string_view word : {".entry ", ".func "}) {
    const auto at = line.find(word);
    if (at == std::string_view::npos || line.back() == ';') continue;
    std::string_view rest = trimmed(line.substr(at + word.size()));
    if (rest.substr(0, 1) == "(") rest = trimmed(rest.substr(std::min(rest.find(')') + 1, rest.size())));
    return rest.substr(0, rest.find_first_of("( \t"));
  }
  return {};
}

std::vector<std::string_view> words_of(std::string_view operation) {
  std::vector<std::string_view> words;
  for (std::size_t dot = 0; dot != std::string_view::npos;) {
    dot = operation.find('.');
    words.push_back(operation.substr(0, dot));
    operation.remove_prefix(dot == std::string_view::npos ? 0 : dot + 1);
  }
  return words;
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool has(const std::vector<std::string_view>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_float(std::string_view word) {
  return is_one_of(word, {"f32", "f64", "f32x2"});
}

bool is_narrow_float(std::string_view word) {
  constexpr std::string_view kBeginnings[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "e2m", "e3m", "ue8m0"};
  return std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                     [&](std::string_view type) { return word.substr(0, type.size()) == type; });
}

/// Why no kernel may hold it; empty, if one may.
std::string forbidden_everywhere(const std::vector<std::string_view>& words) {
  const std::string_view what = words.front();
  const bool computes = std::any_of(words.begin(), words.end(), is_float);
  if (has(words, "approx") || has(words, "full")) return "approximate";
  if (has(words, "ftz")) return "flushes denormal numbers";
  if (is_one_of(what, {"ex2", "lg2", "sin", "cos", "tanh", "rsqrt"})) return "approximate";
  if (is_one_of(what, {"mma", "wmma", "wgmma", "tcgen05"})) return "tensor cores";
  if (std::any_of(words.begin(), words.end(), is_narrow_float)) return "less than fp32";
  if (!computes) return "";
  if (has(words, "sat")) return "saturates";
  if (is_one_of(what, {"atom", "red"})) return "a sum whose order is chance";
  if (what == "mad") return "fused, or not";
  if (is_one_of(what, {"add", "sub", "mul", "fma", "div", "rcp", "sqrt"}) && !has(words, "rn"))
    return "not rounded to nearest, or free to be fused";
  if (what == "cvt" && std::any_of(words.begin(), words.end(), [](auto word) {
        return is_one_of(word, {"rz", "rm", "rp", "rna"});
      }))
    return "not rounded to nearest";
  return "";
}

/// Kernels by what readable() says.
struct Permission {
  const char* operation;
  const char* kernels;  ///< a regular expression
};

/// Kernels whose source says fma, or where doubles become floats.
const Permission kPermissions[] = {
    // Chains of products.
    {"fma.rn.f32", "^(convolve_directly|convolve_generic|scatter_rows)<"},
    {"fma.rn.f32", "^((square|staged)_weight_gradient<|generic_weight_gradient)"},
    {"fma.rn.f32", "^((forward_kernel|backward_data_kernel|backward_weights_kernel)<|linear_loss_kernel)"},
    // byte * scale + shift.
    {"fma.rn.f32", "^gather_(tile<unsigned char>|(augmented|mixed)_tile)"},
    // Polynomials: exp, log and the curves.
    {"fma.rn.f32", "^(loss_kernel|each<(Forward|Backward)<)"},
    // Batch norm: a number times its channel's weight plus its bias, and the running mean.
    {"fma.rn.f32", "^(norm_(forward|backward)<|move_running)"},
    // Norms within a sample, likewise; and a chain of products.
    {"fma.rn.f32", "^(normalise_groups|sum_channels)"},
    // The rules of optimisers.
    {"fma.rn.f32", "^(update_parameters<|measure_tensors<Lamb>)"},
    // Averages of weights.
    {"fma.rn.f32", "^move_average"},
    // Sums in double or fixed point, rounded once at their end: statistics of a channel, norms, mean gradients.
    {"cvt.rn.f32.f64",
     "^(find_statistics|find_gradients|take_running|measure_tensors<|for_packs<\\d, "
     "Convert>|update_parameters<)"},
    {"cvt.rn.f32.f64", "^(normalise_groups|sum_norm_weights|square_gradient|find_clip_factor)"},
};

bool needs_permission(std::string_view operation) {
  return operation == "fma.rn.f32" || operation == "fma.rn.f64" || operation == "cvt.rn.f32.f64";
}

bool is_permitted(std::string_view operation, const std::string& kernel) {
  return std::any_of(std::begin(kPermissions), std::end(kPermissions), [&](const Permission& permission) {
    return operation == permission.operation && std::regex_search(kernel, std::regex(permission.kernels));
  });
}

}  // namespace

int PtxKernel::count(std::string_view beginning) const {
  return static_cast<int>(std::count_if(
      operations.begin(), operations.end(),
      [&](const std::string& operation) { return operation.compare(0, beginning.size(), beginning) == 0; }));
}

std::vector<PtxKernel> kernels_of_ptx(std::string_view text) {
  std::vector<PtxKernel> kernels;
  bool inside = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty()) continue;
    if (const std::string_view name = kernel_begun(line); !name.empty()) {
      kernels.push_back({std::string(name), {}, 0});
      inside = true;
    }
    if (line[0] == '}') inside = false;
    const std::string_view operation = inside ? operation_of(line) : std::string_view{};
    if (!operation.empty()) kernels.back().operations.emplace_back(operation);
  }
  return kernels;
}

std::string readable(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  if (text == nullptr) return symbol;
  static const std::regex namespaces(
      R"((lockstep::|cuda::|\(anonymous namespace\)::|_GLOBAL__N__\w+::)|^void |\((lockstep::)?Activation\))");
  return std::regex_replace(std::string(text.get()), namespaces, "");
}

std::vector<std::string> findings_in(const PtxKernel& kernel) {
  const std::string name = readable(kernel.symbol);
  std::vector<std::string> findings;
  const std::set<std::string> operations(kernel.operations.begin(), kernel.operations.end());
  for (const std::string& operation : operations) {
    std::string why = forbidden_everywhere(words_of(operation));
    if (why.empty() && needs_permission(operation) && !is_permitted(operation, name))
      why = "this kernel's source is not known to have it";
    if (!why.empty()) findings.push_back(name + ": " + operation + ": " + why);
  }
  return findings;
}

}  // namespace lockstep::machine_code
