// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "tests/kernels/machine_code/cubin.hpp"

#include <dlfcn.h>
#include <elf.h>

namespace lockstep::machine_code {

namespace {

constexpr std::string_view kText = ".text.", kInfo = ".nv.info", kShared = ".nv.shared.";
constexpr std::uint8_t kHasBytes = 4;  ///< format of an attribute: its size and as many bytes follow
constexpr std::uint8_t kMostThreads = 0x05, kFrameSize = 0x11, kRegisters = 0x2F;

using Attribute = std::function<void(std::uint8_t attribute, std::string_view bytes)>;

void for_each_attribute(std::string_view info, const Attribute& take) {
  while (info.size() >= 4) {
    const auto format = read_at<std::uint8_t>(info, 0), attribute = read_at<std::uint8_t>(info, 1);
    const std::size_t size = format == kHasBytes ? read_at<std::uint16_t>(info, 2) : 0;
    take(attribute, part_of(info, 4, size));
    info.remove_prefix(4 + size);
  }
}

/// Attributes that name a symbol and give it a number.
void take_of_symbols(const ElfFile& elf, std::string_view info, std::vector<CubinKernel>& kernels) {
  for_each_attribute(info, [&](std::uint8_t attribute, std::string_view bytes) {
    if (attribute != kFrameSize && attribute != kRegisters) return;
    const Symbol& symbol = elf.symbols.at(read_at<std::uint32_t>(bytes, 0));
    const auto number = static_cast<int>(read_at<std::uint32_t>(bytes, 4));
    for (CubinKernel& kernel : kernels) {
      if (kernel.symbol == symbol.name)
        (attribute == kRegisters ? kernel.registers : kernel.stack_bytes) = number;
    }
  });
}

void take_of_kernel(std::string_view info, CubinKernel& kernel) {
  for_each_attribute(info, [&](std::uint8_t attribute, std::string_view bytes) {
    if (attribute != kMostThreads) return;
    kernel.most_threads =
        static_cast<int>(read_at<std::uint32_t>(bytes, 0) * read_at<std::uint32_t>(bytes, 4) *
                         read_at<std::uint32_t>(bytes, 8));
  });
}

std::vector<Instruction> instructions_of(std::string_view code) {
  std::vector<Instruction> instructions;
  for (std::size_t at = 0; at + Instruction::kBytes <= code.size(); at += Instruction::kBytes)
    instructions.push_back({read_at<std::uint64_t>(code, at), read_at<std::uint64_t>(code, at + 8)});
  return instructions;
}

std::vector<Routine> routines_in(const ElfFile& elf, std::size_t section) {
  std::vector<Routine> routines;
  for (const Symbol& symbol : elf.symbols) {
    if (symbol.section != section || symbol.name.find("$__cuda") == std::string_view::npos) continue;
    routines.push_back({std::string(symbol.name), symbol.begin / Instruction::kBytes,
                        (symbol.begin + symbol.size) / Instruction::kBytes});
  }
  return routines;
}

}  // namespace

const Routine* CubinKernel::routine_of(std::size_t instruction) const {
  const auto found = std::find_if(routines.begin(), routines.end(), [&](const Routine& routine) {
    return instruction >= routine.begin && instruction < routine.end;
  });
  return found == routines.end() ? nullptr : &*found;
}

std::vector<CubinKernel> kernels_of_cubin(std::string_view cubin, int capability) {
  const ElfFile elf(cubin);
  std::vector<CubinKernel> kernels;
  for (std::size_t i = 0; i < elf.sections.size(); ++i) {
    const Section& section = elf.sections[i];
    if (!section.name.starts_with(kText)) continue;
    CubinKernel kernel;
    kernel.symbol = section.name.substr(kText.size());
    kernel.capability = capability;
    kernel.instructions = instructions_of(section.bytes);
    kernel.routines = routines_in(elf, i);
    kernels.push_back(std::move(kernel));
  }
  for (const Section& section : elf.sections) {
    if (section.name == kInfo) take_of_symbols(elf, section.bytes, kernels);
    for (CubinKernel& kernel : kernels) {
      if (section.name == std::string(kInfo) + "." + kernel.symbol) take_of_kernel(section.bytes, kernel);
      if (section.name == std::string(kShared) + kernel.symbol)
        kernel.shared_bytes = static_cast<int>(section.size);
    }
  }
  return kernels;
}

namespace {

std::string_view name_at(std::string_view names, std::size_t place) {
  const std::string_view rest = names.substr(std::min(place, names.size()));
  return rest.substr(0, rest.find('\0'));
}

std::vector<Elf64_Shdr> headers_of(std::string_view file, const Elf64_Ehdr& elf) {
  std::vector<Elf64_Shdr> headers;
  for (std::size_t i = 0; i < elf.e_shnum; ++i)
    headers.push_back(read_at<Elf64_Shdr>(file, elf.e_shoff + i * sizeof(Elf64_Shdr)));
  return headers;
}

std::string_view bytes_of(std::string_view file, const Elf64_Shdr& section) {
  return section.sh_type == SHT_NOBITS ? std::string_view{}
                                       : part_of(file, section.sh_offset, section.sh_size);
}

std::vector<Symbol> symbols_of(std::string_view table, std::string_view names) {
  std::vector<Symbol> symbols;
  for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= table.size(); at += sizeof(Elf64_Sym)) {
    const auto symbol = read_at<Elf64_Sym>(table, at);
    symbols.push_back({name_at(names, symbol.st_name), symbol.st_shndx, symbol.st_value, symbol.st_size});
  }
  return symbols;
}

}  // namespace

std::string_view part_of(std::string_view file, std::uint64_t begin, std::uint64_t size) {
  if (begin > file.size() || size > file.size() - begin) throw std::runtime_error("a file ends early");
  return file.substr(begin, size);
}

ElfFile::ElfFile(std::string_view file) {
  if (file.substr(0, SELFMAG) != ELFMAG) throw std::runtime_error("no ELF file");
  const auto elf = read_at<Elf64_Ehdr>(file, 0);
  const std::vector<Elf64_Shdr> headers = headers_of(file, elf);
  const std::string_view names = bytes_of(file, headers.at(elf.e_shstrndx));
  for (const Elf64_Shdr& header : headers) {
    sections.push_back({name_at(names, header.sh_name), bytes_of(file, header), header.sh_size});
    if (header.sh_type == SHT_SYMTAB)
      symbols = symbols_of(bytes_of(file, header), bytes_of(file, headers.at(header.sh_link)));
  }
}

namespace {

constexpr std::uint32_t kMagic = 0xBA55ED50;
constexpr std::uint64_t kZstd = 0x8000, kLz4 = 0x2000;  ///< flags

struct GroupHeader {
  std::uint32_t magic;
  std::uint16_t version, header_size;
  std::uint64_t size;  ///< bytes of the images that follow
};

struct ImageHeader {
  std::uint16_t kind, version;
  std::uint32_t header_size;
  std::uint64_t size;  ///< bytes that follow, padded
  std::uint32_t compressed_size, options_header;
  std::uint16_t minor, major;
  std::uint32_t capability;
  std::uint64_t name;
  std::uint64_t flags;
  std::uint64_t unused;
  std::uint64_t uncompressed_size;
  std::uint32_t options, options_size;  ///< offset from this header's beginning; bytes
};

/// From the shared library, which every Debian has: dpkg needs it.
std::string unpack_zstd(std::string_view packed, std::size_t size) {
  using Decompress = std::size_t (*)(void*, std::size_t, const void*, std::size_t);
  void* const library = dlopen("libzstd.so.1", RTLD_NOW);
  void* const symbol = library != nullptr ? dlsym(library, "ZSTD_decompress") : nullptr;
  if (symbol == nullptr) throw Unreadable("libzstd.so.1, which unpacks PTX, is not installed");
  std::string unpacked(size, '\0');
  const std::size_t made =
      reinterpret_cast<Decompress>(symbol)(unpacked.data(), size, packed.data(), packed.size());
  if (made != size) throw std::runtime_error("a packed image is damaged");
  return unpacked;
}

std::string contents(const ImageHeader& header, std::string_view rest) {
  if ((header.flags & kZstd) != 0)
    return unpack_zstd(part_of(rest, 0, header.compressed_size), header.uncompressed_size);
  if ((header.flags & kLz4) != 0)
    throw Unreadable("this nvcc packs PTX with LZ4, which this test does not unpack");
  return std::string(part_of(rest, 0, header.size));
}

std::string text_at(std::string_view bytes, std::size_t place, std::size_t size) {
  const std::string_view text = part_of(bytes, place, size);
  return std::string(text.substr(0, text.find('\0')));
}

Image image_at(std::string_view bytes, const ImageHeader& header) {
  Image image = {static_cast<ImageKind>(header.kind), static_cast<int>(header.capability), "",
                 contents(header, bytes.substr(header.header_size))};
  if (header.options_header != 0 && header.options_size > 0)
    image.options = text_at(bytes, header.options, header.options_size);
  if (image.kind == ImageKind::kPtx) image.bytes.resize(std::min(image.bytes.find('\0'), image.bytes.size()));
  return image;
}

void add_group(std::string_view images, std::vector<Image>& to) {
  while (images.size() >= sizeof(ImageHeader)) {
    const auto header = read_at<ImageHeader>(images, 0);
    const std::string_view bytes = part_of(images, 0, header.header_size + header.size);
    to.push_back(image_at(bytes, header));
    images.remove_prefix(bytes.size());
  }
}

}  // namespace

std::vector<Image> images_of(std::string_view program) {
  const ElfFile elf(program);
  const auto section = std::find_if(elf.sections.begin(), elf.sections.end(),
                                    [](const Section& s) { return s.name == ".nv_fatbin"; });
  if (section == elf.sections.end()) throw std::runtime_error("a program without kernels for GPUs");
  std::vector<Image> images;
  std::string_view rest = section->bytes;
  while (rest.size() >= sizeof(GroupHeader)) {
    const auto group = read_at<GroupHeader>(rest, 0);
    if (group.magic != kMagic) throw std::runtime_error("the section .nv_fatbin is not as known");
    add_group(part_of(rest, group.header_size, group.size), images);
    rest.remove_prefix(group.header_size + group.size);
    while (rest.size() >= 8 && read_at<std::uint64_t>(rest, 0) == 0) rest.remove_prefix(8);  // Padding.
  }
  return images;
}

}  // namespace lockstep::machine_code
