// apps/train/run_data.cpp -- a run's text and origin, read and uploaded.
#include "apps/train/run_data.hpp"

#include "apps/submit/run_submission.hpp"
#include "apps/transfer/model_upload.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/files/sha256.hpp"

namespace shoal::apps {

using model::failure;

model::result<model::corpus>
run_data::read(model::corpus_report& report, const model::watch& told) {
  if (resumed_)
    return read_text(run_, resumed_->tokenizer_of(run_), &report, told);
  return read_new_text(run_, tokenizer_, report, told);
}

std::string run_data::keep(const model::corpus& text) {
  bytes_ = model::serialise(text);
  digest_ = runtime::sha256(bytes_);
  return core::to_hex(digest_);
}

model::status
run_data::put_origin(runtime::client& client, core::job_entry& entry,
                     const std::string& where) const {
  const bool trained = !resumed_ && run_.data_tokenizer == "bpe";
  const put_pieces put = [&](std::span<const model::file_piece> pieces,
                             core::blob_digest& digest) -> model::status {
    if (client.put_pieces(pieces, digest))
      return failure{client.text() + where};
    return model::done{};
  };
  return apps::put_origin(
    entry, resumed_ ? resumed_->from() : std::filesystem::path(run_.model_path),
    resumed_ ? resumed_->step() : 0, trained ? &*tokenizer_ : nullptr, put);
}

model::status run_data::put(runtime::client& client, core::job_entry& entry,
                            const std::string& where) {
  if (client.put_blob(bytes_, entry.data))
    return failure{client.text() + where};
  entry.data_bytes = bytes_.size();
  return put_origin(client, entry, where);
}

std::string run_data::read_again() {
  if (held())
    return "";
  const auto text = tokenizer_
                      ? read_text(run_, *tokenizer_)
                      : read_text(run_, resumed_ ? resumed_->tokenizer_of(run_)
                                                 : std::filesystem::path());
  if (!text)
    return text.message();
  auto bytes = model::serialise(*text);
  if (runtime::sha256(bytes) != digest_)
    return "its files have changed since it was submitted";
  bytes_ = std::move(bytes);
  return "";
}

std::string run_data::put_again(runtime::client& client) {
  if (const std::string why = read_again(); !why.empty())
    return "no peer has the job's data, and it cannot be given again: " + why;
  core::job_entry again;
  if (const auto put = this->put(client, again, ""); !put)
    return "the job's data could not be given to " + client.where() + ": "
           + put.message();
  return "the job's data is given to " + client.where() + " again";
}

} // namespace shoal::apps
