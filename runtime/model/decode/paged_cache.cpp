// runtime/model/decode/paged_cache.cpp -- batches of rows through a stage.
#include "runtime/model/decode/paged_cache.hpp"

#include "runtime/model/decode/block_cached.hpp"

#include <algorithm>

namespace shoal::model {

using kernels::paged_rows;

static_assert(core::page_tokens == kernels::kv_page_positions);
static_assert(std::is_same_v<core::page_id, kernels::kv_page>);

std::optional<kv_type> kv_type_named(std::string_view name) {
  for (const kv_type type : {kv_type::f32, kv_type::bf16, kv_type::q8})
    if (name == kernels::name_of(type))
      return type;
  return std::nullopt;
}

kv_type usual_kv_type(const inference_stage& stage) {
  const unit_layout& layout = stage.layout();
  for (const inference_unit& unit : stage.units()) {
    if (unit.unit() == 0 || unit.unit() == layout.head_unit())
      continue;
    const auto infos = layout.tensors_of(unit.unit());
    for (std::size_t i = 0; i != infos.size(); ++i)
      if (infos[i].role != tensor_role::router
          && unit.matrix(i).type() != kernels::weight_type::f32)
        return kv_type::bf16;
  }
  return kv_type::f32;
}

paged_cache::paged_cache(inference_stage& stage, std::size_t pages,
                         kv_type type, std::size_t window_pages)
  : stage_(stage), pages_(pages), window_pages_(window_pages), type_(type) {
  SHOAL_ASSERT(pages >= 1);
  const std::uint64_t bytes = page_bytes(stage.config(), 1, type);
  for (const inference_unit& unit : stage.units())
    if (unit.unit() != 0 && unit.unit() != stage.layout().head_unit())
      blocks_.emplace_back(
        bytes * (windowed(unit.unit()) ? window_pages : pages) / sizeof(float));
}

/// Whether a block has pages of its own.
bool paged_cache::windowed(unit_index unit) const {
  return window_pages_ != 0 && window_of(stage_.config(), unit - 1) != 0;
}

std::size_t
paged_cache::window_pages_for(const model_config& config, std::size_t rows) {
  for (std::uint64_t layer = 0; layer != config.num_hidden_layers; ++layer)
    if (const std::uint64_t window = window_of(config, layer); window != 0)
      return core::window_ring(window, rows);
  return 0;
}

std::uint64_t paged_cache::page_bytes(const model_config& config,
                                      std::size_t blocks, kv_type type) {
  return blocks
         * kernels::kv_page_bytes(type, config.num_key_value_heads,
                                  config.head_dim);
}

std::uint64_t paged_cache::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const aligned_buffer& block : blocks_)
    sum += block.size() * sizeof(float);
  return sum;
}

bool paged_cache::accepts(const row_batch& batch) const {
  const std::size_t positions = stage_.config().max_position_embeddings;
  for (const row_batch::sequence& s : batch.sequences)
    if (s.rows == 0 || s.logits > s.rows || s.normed > s.rows
        || (s.logits != 0 && s.normed != 0) || s.first >= positions
        || s.rows > positions - s.first)
      return false;
  return !batch.sequences.empty() && accepts_pages(batch, false)
         && (window_pages_ == 0 || accepts_pages(batch, true));
}

/// Pages that a window hides are not looked at.
bool paged_cache::accepts_pages(const row_batch& batch, bool of_windows) const {
  const std::size_t window = of_windows ? stage_.config().sliding_window : 0;
  const std::size_t limit = of_windows ? window_pages_ : pages_;
  std::vector<core::page_id> written;
  for (const row_batch::sequence& s : batch.sequences) {
    const auto& pages = of_windows ? s.window_pages : s.pages;
    const std::size_t end = core::pages_for(s.first + s.rows);
    if (pages.size() < end)
      return false;
    const auto page = [&](std::size_t position) {
      return pages.begin() + std::ptrdiff_t(position / core::page_tokens);
    };
    const std::size_t seen =
      window != 0 && s.first >= window ? s.first + 1 - window : 0;
    if (std::any_of(page(seen), pages.begin() + std::ptrdiff_t(end),
                    [&](core::page_id p) { return p >= limit; }))
      return false;
    written.insert(written.end(), page(s.first),
                   pages.begin() + std::ptrdiff_t(end));
  }
  std::ranges::sort(written);
  return std::ranges::adjacent_find(written) == written.end();
}

/// A batch goes through the blocks in parts of batch_rows_max rows.
class paged_cache::batch_pass final : public pass {
public:
  batch_pass(paged_cache& cache, const row_batch& batch,
             std::span<const token_id> ids, std::span<const float> hidden_in,
             std::span<float> hidden_out, std::span<float> logits_out,
             std::span<float> normed_out)
    : cache_(cache), stage_(cache.stage_), batch_(batch), ids_(ids),
      hidden_in_(hidden_in), hidden_out_(hidden_out), logits_out_(logits_out),
      normed_out_(normed_out), width_(stage_.config().hidden_size),
      vocabulary_(stage_.config().vocab_size), rows_(batch.rows()) {
    SHOAL_ASSERT(cache.accepts(batch));
    if (stage_.has_embedding())
      SHOAL_ASSERT(ids.size() == rows_);
    else
      SHOAL_ASSERT(hidden_in.size() == rows_ * width_);
    if (stage_.has_head())
      SHOAL_ASSERT(logits_out.size() == batch.logits() * vocabulary_
                   && normed_out.size() == batch.normed() * width_);
    else
      SHOAL_ASSERT(hidden_out.size() == rows_ * width_);
  }

  std::optional<exchange> advance() override {
    SHOAL_ASSERT(!done());
    if (!c_)
      begin_part();
    if (next_ == cache_.blocks_.size()) {
      end_part();
      return std::nullopt;
    }
    if (!block_)
      begin_block();
    const auto met = block_->advance();
    if (block_->done()) {
      block_.reset();
      ++next_;
    }
    return met;
  }

  bool done() const override { return first_ == rows_; }

private:
  /// Calls body(sequence, its row, row of the part, rows) for the pieces of
  /// sequences that the part consists of.
  template <class Body>
  void each_piece(const Body& body) const {
    std::size_t begin = 0;
    for (const row_batch::sequence& s : batch_.sequences) {
      const std::size_t from = std::max(first_, begin);
      const std::size_t to = std::min(first_ + part_, begin + s.rows);
      if (from < to)
        body(s, from - begin, from - first_, to - from);
      begin += s.rows;
    }
  }

  void begin_part() {
    part_ = std::min(batch_rows_max, rows_ - first_);
    positions_.clear();
    pieces_.clear();
    window_pieces_.clear();
    each_piece([&](const row_batch::sequence& s, std::size_t row, std::size_t,
                   std::size_t count) {
      pieces_.push_back({s.pages, s.first + row, count});
      window_pieces_.push_back({s.window_pages, s.first + row, count});
      for (std::size_t r = 0; r != count; ++r)
        positions_.push_back(static_cast<std::int32_t>(s.first + row + r));
    });
    const model_config& config = stage_.config();
    c_.emplace(block_context{stage_.device_, *stage_.pool_, config,
                             family_of(config), layers(stage_.device_, config),
                             stage_.rope_, 1, part_, positions_});
    x_TD_ = c_->take(width_);
    if (stage_.has_embedding())
      embed(*c_, stage_.units_.front(), ids_.subspan(first_, part_),
            x_TD_.matrix());
    else
      c_->device.copy(x_TD_.vector(), of_part(hidden_in_, width_));
    next_ = 0;
  }

  void begin_block() {
    const model_config& config = stage_.config();
    const inference_unit& unit =
      stage_.units_[next_ + (stage_.has_embedding() ? 1 : 0)];
    const bool windowed = cache_.windowed(unit.unit());
    const kernels::kv_pages pages{
      reinterpret_cast<std::byte*>(cache_.blocks_[next_].data()),
      windowed ? cache_.window_pages_ : cache_.pages_, cache_.type_,
      config.num_key_value_heads, config.head_dim};
    block_ = begin_block_cached(*c_, unit, x_TD_.matrix(), pages,
                                windowed ? window_pieces_ : pieces_);
  }

  void end_part() {
    if (stage_.has_head()) {
      write_logits();
      write_normed();
    } else
      c_->device.copy(of_part(hidden_out_, width_), x_TD_.vector());
    x_TD_.release();
    c_.reset();
    first_ += part_;
  }

  struct range {
    std::size_t first, last;
  };
  /// Rows of the part; no two ranges are adjacent.
  struct wanted_rows {
    std::vector<range> ranges;
    std::size_t count = 0;
  };

  /// @param last  how many of a sequence's last rows are wanted
  wanted_rows wanted_of(std::size_t row_batch::sequence::*last_rows) const {
    wanted_rows out;
    each_piece([&](const row_batch::sequence& s, std::size_t row,
                   std::size_t at, std::size_t rows) {
      const std::size_t skipped = s.rows - s.*last_rows;
      const std::size_t first =
        at + std::min(rows, skipped - std::min(skipped, row));
      const std::size_t last = at + rows;
      if (first == last)
        return;
      out.count += last - first;
      if (!out.ranges.empty() && out.ranges.back().last == first)
        out.ranges.back().last = last;
      else
        out.ranges.push_back({first, last});
    });
    return out;
  }

  /// Logits of the wanted rows of the part.
  void write_logits() {
    const auto [wanted, count] = wanted_of(&row_batch::sequence::logits);
    if (count == 0)
      return;
    const kernels::matrix_view<float> to{
      logits_out_.data() + logits_written_ * vocabulary_, count, vocabulary_};
    logits_written_ += count;
    if (wanted.size() == 1) {
      head_logits(*c_, stage_.units_.back(),
                  x_TD_.matrix().slice_rows(wanted[0].first, wanted[0].last),
                  to);
      return;
    }
    const activation gathered(*stage_.pool_, count, width_);
    gather(gathered.matrix(), wanted);
    head_logits(*c_, stage_.units_.back(), gathered.matrix(), to);
  }

  /// Hidden states of the wanted rows after the final norm.
  void write_normed() {
    const auto [wanted, count] = wanted_of(&row_batch::sequence::normed);
    if (count == 0)
      return;
    const kernels::matrix_view<float> to{
      normed_out_.data() + normed_written_ * width_, count, width_};
    normed_written_ += count;
    gather(to, wanted);
    head_norm(*c_, stage_.units_.back(), to);
  }

  void gather(kernels::matrix_view<float> to,
              const std::vector<range>& wanted) const {
    std::size_t row = 0;
    for (const range& r : wanted) {
      const std::size_t end = row + (r.last - r.first);
      c_->device.copy(to.slice_rows(row, end),
                      x_TD_.matrix().slice_rows(r.first, r.last));
      row = end;
    }
  }

  template <class Value>
  std::span<Value> of_part(std::span<Value> all, std::size_t width) const {
    return all.subspan(first_ * width, part_ * width);
  }

  paged_cache& cache_;
  inference_stage& stage_;
  const row_batch batch_;
  const std::span<const token_id> ids_;
  const std::span<const float> hidden_in_;
  const std::span<float> hidden_out_, logits_out_, normed_out_;
  const std::size_t width_, vocabulary_;
  const std::size_t rows_;
  std::size_t first_ = 0; ///< row of the part in progress, or of the next
  std::size_t logits_written_ = 0, normed_written_ = 0;
  // Of the part in progress.
  std::size_t part_ = 0; ///< rows
  std::vector<std::int32_t> positions_;
  std::vector<paged_rows> pieces_, window_pieces_; ///< of sequences
  std::optional<block_context> c_;                 ///< empty between parts
  activation x_TD_;
  std::size_t next_ = 0; ///< block
  std::unique_ptr<pass> block_;
};

std::unique_ptr<pass>
paged_cache::begin_batch(const row_batch& batch, std::span<const token_id> ids,
                         std::span<const float> hidden_in,
                         std::span<float> hidden_out,
                         std::span<float> logits_out,
                         std::span<float> normed_out) {
  auto begun = std::make_unique<batch_pass>(*this, batch, ids, hidden_in,
                                            hidden_out, logits_out, normed_out);
  std::size_t positions = 0;
  for (const row_batch::sequence& s : batch.sequences)
    positions = std::max(positions, s.first + s.rows);
  stage_.need_positions(positions);
  return begun;
}

} // namespace shoal::model
