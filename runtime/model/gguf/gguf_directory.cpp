// runtime/model/gguf/gguf_directory.cpp -- writes what the other files say.
#include "runtime/model/gguf/gguf_directory.hpp"

#include "runtime/files/file_io.hpp"
#include "runtime/files/file_piece.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/mapped_file.hpp"
#include "runtime/model/files/safetensors_begin.hpp"
#include "runtime/model/gguf/gguf_blocks.hpp"
#include "runtime/model/gguf/gguf_model.hpp"
#include "runtime/model/gguf/gguf_tokenizer.hpp"
#include "runtime/model/hf/hf_directory.hpp"

#include <algorithm>
#include <bit>

namespace shoal::model::gguf {

namespace fs = std::filesystem;

namespace {

/// A tokenizer.json that lies beside the file: larger ones are refused unread.
constexpr std::uint64_t tokenizer_bytes_max = 256u << 20;
/// Values that are converted together.
constexpr std::uint64_t piece_values = 1u << 18;

bool is_quantised(block_type type) {
  return size_of(type).values > 1;
}

const char* written_type(block_type type) {
  switch (type) {
  case block_type::f32:
    return "F32";
  case block_type::f16:
    return "F16";
  default:
    return "BF16";
  }
}

std::uint64_t written_bytes(const tensor& t) {
  return t.count * (t.type == block_type::f32 ? 4 : 2);
}

/// The nearest, to even.
std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return std::uint16_t(bits >> 16 | 0x40); // not a number
  return std::uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// The values of whole rows, as they are written.
std::vector<std::byte>
written(block_type type, std::span<const std::byte> from) {
  if (!is_quantised(type))
    return {from.begin(), from.end()};
  const block_size size = size_of(type);
  std::vector<float> values(from.size() / size.bytes * size.values);
  to_floats(type, from, values);
  std::vector<std::byte> out(values.size() * 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = to_bf16(values[i]);
    out[2 * i] = std::byte(half & 0xff);
    out[2 * i + 1] = std::byte(half >> 8);
  }
  return out;
}

/// A file whose header is mapped, and whose values are read: a mapping ends the
/// process if the file shrinks.
struct source {
  const file& header;
  const input_file& bytes;
  const std::byte* mapped; ///< where the file begins
};

status write_tensor(const named_tensor& t, const source& all, file_writer& to) {
  const tensor& from = *t.from;
  const auto begin = std::uint64_t(from.data.data() - all.mapped);
  const std::uint64_t rows = from.shape.front();
  const std::uint64_t row_bytes = from.data.size() / rows;
  const std::uint64_t row_values = from.count / rows;
  const std::uint64_t together =
    std::max<std::uint64_t>(1, piece_values / row_values);
  std::vector<std::byte> piece;
  for (std::uint64_t row = 0; row < rows;) {
    const std::uint64_t last = std::min(rows, row + together);
    piece.clear();
    for (; row < last; ++row) {
      const std::uint64_t at =
        t.rotary_heads == 0 ? row : stored_row(row, rows / t.rotary_heads);
      piece.resize(piece.size() + row_bytes);
      if (status ok = all.bytes.read(begin + at * row_bytes,
                                     std::span(piece).last(row_bytes));
          !ok)
        return ok;
    }
    if (status ok = to.write(written(from.type, piece)); !ok)
      return ok;
  }
  return done{};
}

status
write_weights(const fs::path& path, const source& from,
              const std::vector<named_tensor>& tensors, const watch& told) {
  std::vector<tensor_entry> entries;
  std::uint64_t total = 0, bytes = 0;
  for (const named_tensor& t : tensors) {
    // Rows of a list of one dimension are its values: no block is cut.
    if (t.from->shape.size() == 1 && is_quantised(t.from->type))
      return failure{from.header.where() + ": tensor of " + t.name
                     + ": is a list of quantised values, which cannot be read"};
    entries.push_back({t.name, written_type(t.from->type), t.from->shape,
                       written_bytes(*t.from)});
    total += entries.back().bytes;
  }
  file_writer out(path);
  if (status ok = out.open(); !ok)
    return ok;
  const std::string begin = file_begin(entries);
  if (status ok = out.write(std::as_bytes(std::span(begin))); !ok)
    return ok;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (status on = tell(told, "converting weights", bytes, total); !on)
      return on;
    if (status ok = write_tensor(tensors[i], from, out); !ok)
      return ok;
    bytes += entries[i].bytes;
  }
  return out.commit();
}

status copy_text(const fs::path& from, const fs::path& to) {
  const auto text = read_file(from, tokenizer_bytes_max);
  return text ? write_file(to, *text) : status(text.why());
}

/// What lies beside the file comes before what its keys say.
status write_tokenizer_config(const fs::path& beside, const fs::path& into,
                              const file& from) {
  constexpr const char *config = "tokenizer_config.json",
                       *chat = "chat_template.jinja";
  std::error_code error;
  const bool has_config = fs::exists(beside / "tokenizer.json", error)
                          && fs::exists(beside / config, error);
  if (status ok = has_config
                    ? copy_text(beside / config, into / config)
                    : write_file(into / config, tokenizer_config_json(from));
      !ok)
    return ok;
  if (fs::exists(beside / chat, error))
    return copy_text(beside / chat, into / chat);
  if (!has_config || chat_template_of(from).empty())
    return done{};
  const auto text = read_file(beside / config, tokenizer_bytes_max);
  const auto said = text ? parse_json(*text) : nlohmann::json();
  return said.is_object() && said.contains("chat_template")
           ? status(done{})
           : write_file(into / chat, chat_template_of(from));
}

/// @returns why there is none
std::string write_tokenizer(const fs::path& beside, const fs::path& into,
                            const file& from) {
  constexpr const char* name = "tokenizer.json";
  std::error_code error;
  if (fs::exists(beside / name, error)) {
    if (status ok = copy_text(beside / name, into / name); !ok)
      return ok.message();
  } else {
    const auto text = tokenizer_json(from);
    if (!text)
      return text.message()
             + "; put the model's tokenizer.json beside the file";
    if (status ok = write_file(into / name, *text); !ok)
      return ok.message();
  }
  const status ok = write_tokenizer_config(beside, into, from);
  return ok ? std::string() : ok.message();
}

} // namespace

bool is_file(const fs::path& path) {
  std::error_code error;
  return path.extension() == ".gguf" && !fs::is_directory(path, error);
}

result<model_config> load_config(const fs::path& path) {
  const auto mapped = mapped_file::open(path);
  if (!mapped)
    return mapped.why();
  const auto from = file::parse((*mapped)->bytes(), path.string());
  if (!from)
    return from.why();
  return config_of(*from);
}

result<made_directory>
write_directory(const fs::path& path, const fs::path& into, const watch& told) {
  const auto mapped = mapped_file::open(path);
  if (!mapped)
    return mapped.why();
  const auto bytes = input_file::open(path);
  if (!bytes)
    return bytes.why();
  const auto from = file::parse((*mapped)->bytes(), path.string());
  if (!from)
    return from.why();
  const auto config = config_of(*from);
  if (!config)
    return config.why();
  const auto tensors = tensors_of(*from, *config);
  if (!tensors)
    return tensors.why();
  // Before slow work is done: the shapes.
  const unit_layout layout(*config);
  for (const tensor_info& t : layout.tensors()) {
    if (t.copy_of)
      continue;
    const auto at = std::ranges::find(*tensors, t.name, &named_tensor::name);
    if (at == tensors->end())
      return failure{path.string() + ": tensor of " + t.name + ": is missing"};
    if (!std::ranges::equal(at->from->shape, t.shape))
      return failure{path.string() + ": tensor " + at->from->name
                     + ": its shape is not that of " + t.name};
  }
  if (status ok = write_weights(into / "model.safetensors",
                                {*from, **bytes, (*mapped)->bytes().data()},
                                *tensors, told);
      !ok)
    return ok.why();
  for (const auto& [name, text] : small_files(layout, false))
    if (status ok = write_file(into / name, text); !ok)
      return ok.why();
  return made_directory{write_tokenizer(path.parent_path(), into, *from)};
}

} // namespace shoal::model::gguf
